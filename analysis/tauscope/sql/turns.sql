-- Question: how long does a whole request take, prompt by prompt?
-- Grain: one row a ({dims}, cluster with a prompt id); a repeat of a prompt is averaged in.
-- Units: seconds, prefill and decode of one request: the engine's decode time, or else that of
-- its cycles without warm-up; NULL where a request has neither.
SELECT
  {dims}, cluster,
  COUNT(*) AS requests,
  strict_sum(COALESCE(decode_ms, wall_num)) / COUNT(*) / 1000 AS decode_s,
  strict_sum(prefill_ms) / COUNT(*) / 1000 AS prefill_s
FROM request_sums
WHERE prompt_id IS NOT NULL AND arm <> 'shadow' AND {where}
GROUP BY {dims}, cluster
ORDER BY {dims}, cluster
