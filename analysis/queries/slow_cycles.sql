-- The twenty slowest cycles, ready for tauscope show.
SELECT run_id || ':' || cycle AS row, workload, outcome, wall_ms, verify_ms, draft_ms
FROM cycles
WHERE wall_ms IS NOT NULL
ORDER BY wall_ms DESC
LIMIT 20
