-- Question: how many first cycles of each run stay out of time ratios?
-- Grain: one row a run that has cycles. Units: cycles; NULL where the run is too short or
-- logs no whole cycles, so that none could be found.
SELECT
  run_id, ANY_VALUE(arm) AS arm, ANY_VALUE(simulated) AS simulated, COUNT(*) AS cycles,
  ANY_VALUE(warmup_cycles) AS warmup_cycles
FROM cycles LEFT JOIN warmup USING (run_id)
WHERE {where}
GROUP BY run_id
ORDER BY run_id
