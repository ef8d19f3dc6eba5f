-- Question: did a path get slower or faster while the arm ran?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, stretch, outcome) with
-- at least 48 cycles to compare. A stretch is a run, or all runs of an arm in an experiment.
-- Units: ms per token of the path; drift is last third of the stretch over first third, less 1.
-- Like is held against like: cycles that verified and emitted as much, and, where there are
-- several requests, at the same 64 positions; else a growing context would pass for a machine
-- that slows down. In a stretch of one request the two can't be told apart. Warm-up cycles are
-- left out. Where the whole cycle was not logged its reported part stands in.
WITH places AS (
  SELECT run_id, MIN(TRY_CAST(value AS BIGINT)) AS place
  FROM facts
  WHERE name = 'experiment_order'
  GROUP BY run_id
), timed AS (
  SELECT
    workload, arm, simulated, machine, model, experiment,
    COALESCE(experiment, run_id) AS stretch, outcome, verified, emitted, pos,
    COALESCE(wall_ms, reported_ms) AS path_ms,
    NTILE(3) OVER (in_turn) AS third,
    MIN((run_id, request_id)) OVER (whole) < MAX((run_id, request_id)) OVER (whole) AS several
  FROM cycles LEFT JOIN warmup USING (run_id) LEFT JOIN places USING (run_id)
  WHERE cycle >= COALESCE(warmup_cycles, 0) AND {where}
  WINDOW
    whole AS (
      PARTITION BY workload, arm, simulated, machine, model, experiment,
        COALESCE(experiment, run_id)
    ),
    in_turn AS (whole ORDER BY place, run_id, cycle)
), alike AS (
  SELECT
    workload, arm, simulated, machine, model, experiment, stretch, outcome, verified, emitted,
    CASE WHEN several THEN pos // 64 END AS band,
    COUNT(*) FILTER (third = 1) AS n_first,
    COUNT(*) FILTER (third = 3) AS n_last,
    AVG(path_ms) FILTER (third = 1) AS ms_first,
    AVG(path_ms) FILTER (third = 3) AS ms_last,
    LEAST(n_first, n_last) AS n
  FROM timed
  WHERE path_ms IS NOT NULL AND emitted > 0
  GROUP BY ALL
)
SELECT
  workload, arm, simulated, machine, model, experiment, stretch, outcome,
  SUM(n)::BIGINT AS cycles,
  ratio(SUM(n * ms_first), SUM(n * emitted)) AS first_ms_per_token,
  ratio(SUM(n * ms_last), SUM(n * emitted)) AS last_ms_per_token,
  ratio(last_ms_per_token, first_ms_per_token) - 1 AS drift
FROM alike
WHERE n > 0
GROUP BY ALL
HAVING SUM(n) >= 48
ORDER BY ALL
