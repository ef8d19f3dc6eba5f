-- Finding: the machine's speed drifts
-- Means: one path costs 2 % more or less per token in the last third of a run than in the
--   first; an arm that ran later is judged by the machine, not by what it does.
-- Do: interleave the arms (tauscope experiment does), let the machine cool, keep other work off.
-- Grain: one row a (workload, arm, run, outcome) with at least 48 timed cycles in both thirds.
-- Units: ms per token of the path; drift is last third over first third, less 1. The same as
-- sql/drift.sql, which the verdicts use, in one piece to paste.
WITH placed AS (
  SELECT
    workload, arm, run_id, outcome, emitted, COALESCE(wall_ms, reported_ms) AS path_ms,
    NTILE(3) OVER (PARTITION BY run_id, workload ORDER BY cycle) AS third
  FROM cycles LEFT JOIN warmup USING (run_id)
  WHERE cycle >= COALESCE(warmup_cycles, 0)
)
SELECT
  workload, arm, run_id, outcome,
  SUM(path_ms) FILTER (third = 1) / SUM(emitted) FILTER (third = 1) AS first_ms_per_token,
  SUM(path_ms) FILTER (third = 3) / SUM(emitted) FILTER (third = 3) AS last_ms_per_token,
  ratio(last_ms_per_token, first_ms_per_token) - 1 AS drift
FROM placed
WHERE path_ms IS NOT NULL AND emitted > 0
GROUP BY workload, arm, run_id, outcome
HAVING COUNT(*) FILTER (third = 1) >= 48 AND COUNT(*) FILTER (third = 3) >= 48
   AND ABS(drift) >= 0.02
ORDER BY ABS(drift) DESC
