-- Question: do cycles get dearer as the context grows?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, outcome, position
-- band); a band reaches from `pos_from` to twice that (0 to 255 is one band).
-- Units: ms, means over the cycles that log the stage; positions in tokens of context. Cycles
-- without a position and warm-up cycles are left out.
SELECT
  workload, arm, simulated, machine, model, experiment, outcome,
  CASE WHEN pos < 256 THEN 0 ELSE (2 ** FLOOR(LOG2(pos)))::BIGINT END AS pos_from,
  COUNT(*) AS cycles,
  AVG(verify_ms) AS verify_ms,
  AVG(decode_ms) AS decode_ms,
  AVG(draft_ms) AS draft_ms,
  AVG(COALESCE(wall_ms, reported_ms)) AS cycle_ms
FROM cycles LEFT JOIN warmup USING (run_id)
WHERE pos >= 0 AND cycle >= COALESCE(warmup_cycles, 0) AND {where}
GROUP BY ALL
ORDER BY workload, arm, simulated, machine, model, experiment, outcome, pos_from
