-- Question: how often were the shadow arm's drafts right where the gate would have folded?
-- Grain: one row a prompt. Units: drafts; right_num of right_den, margin below $bar (logits).
SELECT
  workload, COALESCE(prompt_id, run_id || ':' || COALESCE(request_id, -1)) AS prompt,
  COUNT(*) FILTER (draft_token = next_token) AS right_num,
  COUNT(*) FILTER ((draft_token = next_token) IS NOT NULL) AS right_den
FROM cycles
WHERE drafted > 0 AND margin < $bar AND {where}
GROUP BY ALL
ORDER BY ALL
