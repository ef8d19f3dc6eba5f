-- Finding: impossible counters
-- Means: a row contradicts itself: more accepted than verified, stages longer than their cycle,
--   a time that is no time of a decode; rows that break the ledger are kept out of every figure.
-- Do: look at the lines (tauscope show RUN:CYCLE); a counter read at two moments, or a unit
--   other than ms, is the usual cause.
-- Grain: one row a refused row, a cycle with impossible times, or a run whose cycles report
-- more time than it decoded. Units: ms.
SELECT run_id, cycle, line, reason FROM refused
UNION ALL
SELECT
  run_id, cycle, line,
  'stages of ' || ROUND(staged, 3) || ' ms in a cycle of ' || ROUND(whole, 3) || ' ms' AS reason
FROM (
  SELECT *, COALESCE(wall_ms, reported_ms) AS whole,
         staged_ms(draft_ms, snapshot_ms, verify_ms, commit_ms, decode_ms)
         + COALESCE(base_ms, 0) AS staged
  FROM cycles
)
WHERE staged > 1.02 * whole + 1
UNION ALL
SELECT run_id, cycle, line, ROUND(whole, 4) || ' ms for ' || emitted || ' tokens'
FROM (SELECT *, COALESCE(wall_ms, reported_ms) AS whole FROM cycles)
WHERE emitted > 0 AND (whole / emitted < 0.01 OR whole / emitted > 60000)
UNION ALL
SELECT run_id, cycle, line, accepted || ' accepted of ' || verified || ' verified'
FROM cycles
WHERE accepted > verified OR free_accepted > free_checked
UNION ALL
SELECT
  run_id, NULL, NULL,
  'cycles report ' || ROUND(reported, 1) || ' ms of a decode of ' || ROUND(decoded, 1) || ' ms'
FROM (
  SELECT c.run_id, SUM(COALESCE(c.wall_ms, c.reported_ms)) AS reported, ANY_VALUE(decoded) AS decoded
  FROM cycles AS c
  JOIN (SELECT run_id, strict_sum(decode_ms) AS decoded FROM requests GROUP BY run_id) USING (run_id)
  GROUP BY c.run_id
)
WHERE reported > 1.05 * decoded + 5
ORDER BY run_id, cycle
