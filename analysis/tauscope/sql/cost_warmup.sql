-- Question: how many first cycles of each run stay out of time ratios?
-- Grain: one row a (stretch, arm) that has cycles; a stretch is a run, or all runs of an arm in
-- an experiment. Units: cycles, warm-up the most of a run; NULL where the runs are too short or
-- log no whole cycles, so that none could be found.
SELECT
  COALESCE(experiment, run_id) AS stretch, arm, BOOL_OR(simulated) AS simulated,
  COUNT(DISTINCT run_id) AS runs, COUNT(*) AS cycles, MAX(warmup_cycles) AS warmup_cycles
FROM cycles LEFT JOIN warmup USING (run_id)
WHERE {where}
GROUP BY stretch, arm
ORDER BY stretch, arm
