-- Question: what does each path through a cycle cost?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, outcome, drafts
-- verified, replayed or not).
-- Units: ms, means over the cycles that log the stage; cycles is how many there were. Warm-up
-- cycles are left out.
SELECT
  workload, arm, simulated, machine, model, experiment, outcome, verified,
  COALESCE(replayed, FALSE) AS replayed,
  COUNT(*) AS cycles,
  AVG(draft_ms) AS draft_ms,
  AVG(snapshot_ms) AS snapshot_ms,
  AVG(verify_ms) AS verify_ms,
  AVG(commit_ms) AS commit_ms,
  AVG(decode_ms) AS decode_ms,
  AVG(base_ms) AS base_ms,
  AVG(reported_ms) AS reported_ms,
  AVG(wall_ms) AS wall_ms,
  MEDIAN(COALESCE(wall_ms, reported_ms)) AS median_ms,
  AVG(emitted) AS emitted
FROM cycles LEFT JOIN warmup USING (run_id)
WHERE cycle >= COALESCE(warmup_cycles, 0) AND {where}
GROUP BY ALL
ORDER BY workload, arm, simulated, machine, model, experiment, outcome, verified, replayed
