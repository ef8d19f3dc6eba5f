-- What does a cycle of each outcome cost, in ms, and where does the time go?
SELECT
  arm, outcome, COUNT(*) AS cycles,
  AVG(draft_ms) AS draft_ms, AVG(verify_ms) AS verify_ms, AVG(decode_ms) AS decode_ms,
  AVG(wall_ms) AS wall_ms, QUANTILE_CONT(wall_ms, 0.95) AS wall_ms_p95
FROM cycles
GROUP BY arm, outcome
ORDER BY arm, cycles DESC
