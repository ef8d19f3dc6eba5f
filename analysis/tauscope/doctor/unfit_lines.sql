-- Finding: lines that fit no shape
-- Means: lines that begin like speculation and could not be read; cycles may be missing.
-- Do: see whether the log was cut or written by two writers; otherwise tell the project the
--   shape.
-- Grain: one row an example, the first three of a run. Units: unfit_lines is how many there were.
SELECT r.workload, r.arm, u.run_id, r.unfit_lines, u.line, u.text
FROM unfit_lines AS u JOIN runs AS r USING (run_id)
ORDER BY u.run_id, u.line
