-- Question: which rows broke a rule of the ledger, and which lines fit no shape?
-- Grain: one row a (run, rule or line). Units: line numbers of the raw log.
SELECT run_id, 'refused row' AS kind, line, reason AS text
FROM refused
WHERE run_id IN (SELECT run_id FROM runs AS r WHERE {runs})
UNION ALL
SELECT run_id, 'line of no known shape', line, text
FROM unfit_lines
WHERE run_id IN (SELECT run_id FROM runs AS r WHERE {runs})
ORDER BY run_id, kind, line
LIMIT 200
