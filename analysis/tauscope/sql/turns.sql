-- Question: how long does a whole request take, prompt by prompt?
-- Grain: one row a ({dims}, cluster with a prompt id); a repeat of a prompt is averaged in.
-- Units: seconds, prefill and decode of one request; NULL where a request has no decode time.
SELECT
  {dims}, cluster,
  COUNT(*) AS requests,
  strict_sum(decode_ms) / COUNT(*) / 1000 AS decode_s,
  strict_sum(prefill_ms) / COUNT(*) / 1000 AS prefill_s
FROM request_sums
WHERE prompt_id IS NOT NULL AND arm <> 'shadow' AND {where}
GROUP BY {dims}, cluster
ORDER BY {dims}, cluster
