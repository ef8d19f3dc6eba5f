-- Question: did a path get slower or faster while an experiment ran?
-- Grain: one row a (arm, outcome) with at least 48 timed cycles in the first and in the last
-- third of that arm's runs, in the order in which they were run.
-- Units: ms per token of the path; drift is last third over first third, less 1.
WITH ordered AS (
  SELECT run_id, arm, NTILE(3) OVER (PARTITION BY arm ORDER BY value::BIGINT) AS third
  FROM facts JOIN runs USING (run_id)
  WHERE name = 'experiment_order' AND experiment = $experiment
), timed AS (
  SELECT o.arm, o.third, c.outcome, c.emitted, COALESCE(c.wall_ms, c.reported_ms) AS path_ms
  FROM ordered AS o JOIN cycles AS c USING (run_id)
  WHERE path_ms IS NOT NULL AND c.emitted > 0
)
SELECT
  arm, outcome,
  SUM(path_ms) FILTER (third = 1) / SUM(emitted) FILTER (third = 1) AS first_ms_per_token,
  SUM(path_ms) FILTER (third = 3) / SUM(emitted) FILTER (third = 3) AS last_ms_per_token,
  ratio(last_ms_per_token, first_ms_per_token) - 1 AS drift
FROM timed
GROUP BY ALL
HAVING COUNT(*) FILTER (third = 1) >= 48 AND COUNT(*) FILTER (third = 3) >= 48
ORDER BY ALL
