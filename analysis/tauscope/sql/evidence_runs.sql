-- Question: which runs does a decision rest on, from when, written by which version?
-- Grain: one row a run. Units: requests and cycles are counts; first_at and last_at are the
-- log's own time stamps, NULL where it prints none.
SELECT
  s.run_id, ANY_VALUE(s.arm) AS arm, ANY_VALUE(s.source) AS source,
  LIST_SORT(LIST(DISTINCT s.workload)) AS workloads,
  COUNT(*) AS requests, COALESCE(SUM(s.cycles), 0)::BIGINT AS cycles,
  MIN(q.started_at) AS first_at, MAX(q.started_at) AS last_at,
  ANY_VALUE(s.drafter) AS drafter, ANY_VALUE(s.draft_depth) AS draft_depth,
  ANY_VALUE(r.threshold) AS threshold, ANY_VALUE(r.raw_sha256) AS raw_sha256,
  ANY_VALUE(r.version) AS written_by
FROM (SELECT * FROM request_sums WHERE {where}) AS s
JOIN runs AS r USING (run_id)
LEFT JOIN requests AS q ON q.run_id = s.run_id AND q.request_id = s.request_id
GROUP BY s.run_id
ORDER BY arm, s.run_id
