-- Finding: prefill stands in the speed
-- Means: a decode time holds the time for the prompt, or a first cycle does; long prompts then
--   look like slow decoding.
-- Do: take decode time from the engine's own line without prefill, or start the clock after it.
-- Grain: one row a request whose decode time exceeds what its cycles or its printed speed
-- account for by at least half its prefill and 5 %, or whose first cycle holds that much.
-- Units: ms; expected_ms is what the cycles, or tokens over the printed speed, come to.
WITH walls AS (
  SELECT
    run_id, request_id,
    CASE WHEN COUNT(wall_ms) = COUNT(*) THEN SUM(wall_ms) END AS cycles_ms,
    MEDIAN(wall_ms) AS usual_ms,
    ARG_MIN(wall_ms, cycle) AS first_ms
  FROM cycles
  GROUP BY run_id, request_id
), held AS (
  SELECT
    q.workload, q.arm, q.run_id, q.request_id, q.prefill_ms, q.decode_ms, w.first_ms, w.usual_ms,
    COALESCE(w.cycles_ms, 1000.0 * q.generated_tokens / NULLIF(q.decode_tokens_per_s, 0))
      AS expected_ms
  FROM requests AS q LEFT JOIN walls AS w USING (run_id, request_id)
)
SELECT *
FROM held
WHERE prefill_ms > 0
  AND ((decode_ms - expected_ms >= 0.5 * prefill_ms AND decode_ms >= 1.05 * expected_ms)
    OR (first_ms - usual_ms >= 0.5 * prefill_ms AND first_ms >= 5 * usual_ms))
ORDER BY workload, arm, run_id, request_id
