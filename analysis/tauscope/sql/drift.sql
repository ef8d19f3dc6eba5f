-- Question: did a path get slower or faster while the arm ran?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, run, outcome) with
-- at least 48 timed cycles in the first and in the last third of that workload's cycles.
-- Units: ms per token of the path; drift is last third over first third, less 1. Warm-up
-- cycles are left out. Where the whole cycle was not logged its reported part stands in.
WITH placed AS (
  SELECT
    workload, arm, simulated, machine, model, experiment, run_id, outcome, emitted,
    COALESCE(wall_ms, reported_ms) AS path_ms,
    NTILE(3) OVER (PARTITION BY run_id, workload ORDER BY cycle) AS third
  FROM cycles LEFT JOIN warmup USING (run_id)
  WHERE cycle >= COALESCE(warmup_cycles, 0) AND {where}
)
SELECT
  workload, arm, simulated, machine, model, experiment, run_id, outcome,
  SUM(path_ms) FILTER (third = 1) / SUM(emitted) FILTER (third = 1) AS first_ms_per_token,
  SUM(path_ms) FILTER (third = 3) / SUM(emitted) FILTER (third = 3) AS last_ms_per_token,
  ratio(last_ms_per_token, first_ms_per_token) - 1 AS drift
FROM placed
WHERE path_ms IS NOT NULL AND emitted > 0
GROUP BY ALL
HAVING COUNT(*) FILTER (third = 1) >= 48 AND COUNT(*) FILTER (third = 3) >= 48
ORDER BY ALL
