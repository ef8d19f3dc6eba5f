-- Question: how did the cost of each path move in the course of a run?
-- Grain: one row a (run, outcome, twentieth of the run's cycles).
-- Units: ms; cycle_ms is the mean of the whole cycle, or of its reported part where the whole
-- was not logged. Warm-up cycles are kept, and marked: this is where one sees them.
WITH placed AS (
  SELECT
    run_id, workload, arm, simulated, cycle, t_ms, outcome, emitted,
    COALESCE(wall_ms, reported_ms) AS cycle_ms,
    NTILE(20) OVER (PARTITION BY run_id ORDER BY cycle) AS slice,
    cycle < COALESCE(warmup_cycles, 0) AS warm
  FROM cycles LEFT JOIN warmup USING (run_id)
  WHERE {where}
)
SELECT
  run_id, ANY_VALUE(arm) AS arm, ANY_VALUE(simulated) AS simulated, outcome, slice,
  MIN(cycle) AS first_cycle,
  MIN(t_ms) AS t_ms,
  COUNT(*) AS cycles,
  AVG(cycle_ms) AS cycle_ms,
  SUM(cycle_ms) / NULLIF(SUM(emitted), 0) AS ms_per_token,
  BOOL_OR(warm) AS warm
FROM placed
WHERE cycle_ms IS NOT NULL
GROUP BY run_id, outcome, slice
ORDER BY run_id, outcome, slice
