-- Question: what does a store hold, with every label in place?
-- Grain: one view a table; `asked_rows` has one row a request, and one a run (request_id NULL),
-- with all columns of both, `cycles_asked_rows` the same beside every cycle: for conditions and
-- groups.
-- The relations run_rows, request_rows, cycle_rows and refused_rows are the files as
-- they are, cast to the schema; these views add the labels and the sums.

CREATE VIEW runs AS
SELECT * REPLACE (COALESCE(workload, 'unlabelled') AS workload,
                  COALESCE(arm, 'unlabelled') AS arm)
FROM run_rows;

CREATE VIEW requests AS
SELECT
  q.* REPLACE (COALESCE(q.workload, r.workload, 'unlabelled') AS workload,
               COALESCE(q.prompt_id, r.prompt_id) AS prompt_id),
  COALESCE(r.arm, 'unlabelled') AS arm,
  r.simulated, r.machine, r.model, r.experiment, r.drafter, r.draft_depth, r.log_id,
  r.source, r.baseline_drafts
FROM request_rows AS q
LEFT JOIN run_rows AS r USING (run_id);

CREATE VIEW cycles AS
SELECT
  c.*,
  COALESCE(q.workload, r.workload, 'unlabelled') AS workload,
  COALESCE(r.arm, 'unlabelled') AS arm,
  COALESCE(q.prompt_id, r.prompt_id) AS prompt_id,
  r.simulated, r.machine, r.model, r.experiment, r.drafter, r.draft_depth, r.log_id, r.source
FROM cycle_rows AS c
LEFT JOIN request_rows AS q USING (run_id, request_id)
LEFT JOIN run_rows AS r USING (run_id);

CREATE VIEW refused AS
SELECT
  c.*,
  COALESCE(q.workload, r.workload, 'unlabelled') AS workload,
  COALESCE(r.arm, 'unlabelled') AS arm,
  COALESCE(q.prompt_id, r.prompt_id) AS prompt_id,
  r.simulated
FROM refused_rows AS c
LEFT JOIN request_rows AS q USING (run_id, request_id)
LEFT JOIN run_rows AS r USING (run_id);

CREATE VIEW facts AS
SELECT run_id, fact.name AS name, fact.value AS value, fact.line AS line
FROM (SELECT run_id, UNNEST(facts) AS fact FROM run_rows);

CREATE VIEW unfit_lines AS
SELECT run_id, example.line AS line, example.text AS text
FROM (SELECT run_id, UNNEST(unfit_examples) AS example FROM run_rows);

-- Warm-up: how many first cycles of a run are slower than the rest and stay out of time
-- ratios. A cycle's time is held against the median of its outcome in the same request
-- (another prompt may be slower all through) from cycle 32 to 4095; the warm-up ends where
-- eight cycles in a row average less than 5 % above it. A run that never settles has none,
-- nor has one of 512 cycles or less: there any disturbance would pass for warm-up.
CREATE VIEW warmup AS
WITH long AS (
  SELECT run_id FROM cycle_rows WHERE cycle = 512
), settled AS (
  SELECT run_id, request_id, outcome, MEDIAN(wall_ms) AS usual_ms
  FROM cycle_rows SEMI JOIN long USING (run_id)
  WHERE cycle BETWEEN 32 AND 4095 AND wall_ms > 0
  GROUP BY run_id, request_id, outcome
  HAVING COUNT(*) >= 8
), early AS (
  SELECT
    run_id, cycle,
    AVG(wall_ms / usual_ms) OVER (
      PARTITION BY run_id ORDER BY cycle ROWS BETWEEN CURRENT ROW AND 7 FOLLOWING) AS excess
  FROM cycle_rows JOIN settled USING (run_id, request_id, outcome)
  WHERE cycle < 256
)
SELECT run_id, COALESCE(MIN(cycle) FILTER (excess < 1.05), 0) AS warmup_cycles
FROM early
GROUP BY run_id;

CREATE VIEW asked_rows AS
WITH keys AS (
  SELECT run_id, request_id FROM request_rows
  UNION ALL
  SELECT run_id, NULL FROM run_rows
)
SELECT
  k.run_id, k.request_id,
  COALESCE(q.workload, r.workload, 'unlabelled') AS workload,
  COALESCE(r.arm, 'unlabelled') AS arm,
  COALESCE(q.prompt_id, r.prompt_id) AS prompt_id,
  q.* EXCLUDE (run_id, request_id, workload, prompt_id),
  r.* EXCLUDE ({of_requests})
FROM keys AS k
LEFT JOIN request_rows AS q USING (run_id, request_id)
LEFT JOIN run_rows AS r USING (run_id);

CREATE VIEW cycles_asked_rows AS
SELECT c.*, a.* EXCLUDE ({of_cycles})
FROM cycle_rows AS c
LEFT JOIN asked_rows AS a
  ON a.run_id = c.run_id AND a.request_id IS NOT DISTINCT FROM c.request_id;

CREATE VIEW request_sums AS
{request_sums};

CREATE VIEW drifts AS
{drift};
