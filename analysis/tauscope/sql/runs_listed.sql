-- Question: which runs does the store hold?
-- Grain: one row a run. Units: counts of requests, cycles and lines; tokens.
WITH sums AS (
  SELECT run_id, COUNT(*) AS cycles, strict_sum(emitted)::BIGINT AS emitted
  FROM cycle_rows GROUP BY run_id
), made AS (
  SELECT run_id, COUNT(*) AS requests, strict_sum(generated_tokens)::BIGINT AS generated_tokens
  FROM request_rows GROUP BY run_id
)
SELECT
  run_id, source, workload, arm, prompt_id, state, simulated,
  COALESCE(requests, 0) AS requests, COALESCE(cycles, 0) AS cycles,
  emitted, generated_tokens, generated_tokens - emitted AS unattributed_tokens,
  refused_rows, unfit_lines, unlogged_cycles, baseline_drafts, machine
FROM runs
LEFT JOIN sums USING (run_id)
LEFT JOIN made USING (run_id)
ORDER BY simulated, log_id, run_index
