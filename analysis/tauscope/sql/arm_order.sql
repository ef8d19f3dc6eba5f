-- Question: in which order were the arms of an experiment run?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, run).
-- Units: place is the run's place in its experiment, from 0; NULL where it was in none.
WITH chosen AS (
  SELECT DISTINCT workload, arm, simulated, machine, model, experiment, run_id
  FROM request_sums
  WHERE {where}
), places AS (
  SELECT run_id, MIN(TRY_CAST(value AS BIGINT)) AS place
  FROM facts
  WHERE name = 'experiment_order'
  GROUP BY run_id
)
SELECT chosen.*, place
FROM chosen LEFT JOIN places USING (run_id)
ORDER BY place, run_id
