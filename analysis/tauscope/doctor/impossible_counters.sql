-- Finding: impossible counters
-- Means: a row contradicts itself: more accepted than verified, stages longer than their cycle,
--   a time that is no time of a decode; rows that break the ledger are kept out of every figure.
-- Do: look at the lines (tauscope show RUN:CYCLE); a counter read at two moments, or a unit
--   other than ms, is the usual cause.
-- Grain: one row a refused row, or a cycle with impossible times. Units: ms.
SELECT run_id, cycle, line, reason FROM refused
UNION ALL
SELECT
  run_id, cycle, line,
  'stages of ' || ROUND(staged, 3) || ' ms in a cycle of ' || ROUND(wall_ms, 3) || ' ms' AS reason
FROM (
  SELECT *, staged_ms(draft_ms, snapshot_ms, verify_ms, commit_ms, decode_ms)
            + COALESCE(base_ms, 0) AS staged
  FROM cycles
)
WHERE staged > 1.02 * wall_ms + 1
UNION ALL
SELECT run_id, cycle, line, ROUND(wall_ms, 4) || ' ms for ' || emitted || ' tokens'
FROM cycles
WHERE emitted > 0 AND (wall_ms / emitted < 0.01 OR wall_ms / emitted > 60000)
ORDER BY run_id, cycle
