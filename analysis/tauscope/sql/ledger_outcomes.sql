-- Question: what did the cycles come to?
-- Grain: one row a ({dims}, outcome). Units: cycles and tokens; a sum over a column that
-- is unknown in any of the cycles is NULL. `share` is of the group's cycles.
SELECT
  {dims}, outcome,
  COUNT(*) AS cycles,
  COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY {dims}) AS share,
  strict_sum(emitted)::BIGINT AS emitted,
  strict_sum(drafted)::BIGINT AS drafted,
  strict_sum(verified)::BIGINT AS verified,
  strict_sum(accepted)::BIGINT AS accepted,
  strict_sum(wall_ms) AS wall_ms
FROM cycles
WHERE {where}
GROUP BY {dims}, outcome
ORDER BY {dims}, cycles DESC
