-- Finding: cycles of an unknown kind
-- Means: a cycle line of a kind whose accounting isn't documented; its counts are unknown, and
--   so is every figure that would need them.
-- Do: see the lines (tauscope show RUN:CYCLE); leave those runs out of comparisons.
-- Grain: one row a (run, path). Units: cycles; first_line is a line number of the log.
SELECT r.workload, r.arm, c.run_id, c.path, COUNT(*) AS cycles, MIN(c.line) AS first_line
FROM cycles AS c JOIN runs AS r USING (run_id)
WHERE c.outcome = 'unknown'
GROUP BY ALL
ORDER BY ALL
