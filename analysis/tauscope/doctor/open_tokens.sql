-- Finding: tokens that no cycle shows
-- Means: the cycles' tokens differ from what the engine says it made by more than 1 % and more
--   than 2 tokens a request; something is missing from the log, or counted twice.
-- Do: see tauscope ledger for the runs; record with DS4_MTP_SPEC_LOG=1, give --tokens N.
-- Grain: one row a (workload, arm, run) whose requests log cycles. Units: tokens.
SELECT
  workload, arm, run_id, COUNT(*) FILTER (is_request) AS requests, SUM(generated_tokens)::BIGINT AS generated_tokens,
  SUM(request_sums.emitted)::BIGINT AS emitted, (SUM(generated_tokens) - SUM(request_sums.emitted))::BIGINT AS open_tokens
FROM request_sums
WHERE cycles IS NOT NULL AND generated_tokens IS NOT NULL AND request_sums.emitted IS NOT NULL
GROUP BY workload, arm, run_id
HAVING ABS(open_tokens) > 0.01 * SUM(generated_tokens) AND ABS(open_tokens) > 2 * COUNT(*) FILTER (is_request)
ORDER BY workload, arm, run_id
