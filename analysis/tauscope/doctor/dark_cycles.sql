-- Finding: dark cycles can't be recovered
-- Means: first-draft misses print a line only under DS4_MTP_SPEC_LOG; without those lines and
--   without an exact token count, τ and every rate over cycles come out too high.
-- Do: record with DS4_MTP_SPEC_LOG=1, or import again with --tokens N, the exact count made.
-- Grain: one row a run of the legacy path that logs no miss and whose tokens don't prove that
-- there was none. Units: tokens and cycles.
WITH counted AS (
  SELECT
    run_id, COUNT(*) AS cycles, SUM(emitted)::BIGINT AS emitted,
    COUNT(*) FILTER (outcome IN ('missed', 'unlogged')) AS misses,
    COUNT(*) FILTER (dialect = 'legacy' AND free_checked > 0) AS judged
  FROM cycles
  GROUP BY run_id
), made AS (
  SELECT run_id, CASE WHEN COUNT(generated_tokens) = COUNT(*) THEN SUM(generated_tokens) END::BIGINT
    AS generated_tokens
  FROM requests
  GROUP BY run_id
)
SELECT r.workload, r.arm, c.run_id, r.source, c.cycles, c.emitted, m.generated_tokens
FROM counted AS c JOIN runs AS r USING (run_id) LEFT JOIN made AS m USING (run_id)
WHERE c.judged > 0 AND c.misses = 0 AND m.generated_tokens IS DISTINCT FROM c.emitted
ORDER BY r.workload, r.arm, c.run_id
