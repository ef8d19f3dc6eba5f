-- Question: do a run's tokens and times add up, and how good is its log?
-- Grain: one row a run. Units: tokens, ms, lines, rows. unattributed_tokens is what the
-- engine says it generated less Σ emitted; unattributed_ms its decode time less Σ wall_ms;
-- both NULL where a side is unknown. They stay rows of their own and are never spread out.
WITH sums AS (
  SELECT
    run_id,
    COUNT(*) FILTER (is_request) AS requests,
    COUNT(cycles) FILTER (is_request) AS requests_with_cycles,
    COALESCE(SUM(cycles), 0)::BIGINT AS cycles,
    COALESCE(SUM(unlogged), 0)::BIGINT AS unlogged,
    COALESCE(SUM(unknown), 0)::BIGINT AS unknown,
    strict_sum(generated_tokens)::BIGINT AS generated_tokens,
    CASE WHEN COUNT(cycles) = COUNT(*) THEN strict_sum(emitted)::BIGINT END AS emitted,
    strict_sum(decode_ms) AS decode_ms
  FROM request_sums
  WHERE {where}
  GROUP BY run_id
), walls AS (
  SELECT run_id, strict_sum(wall_ms) AS cycles_ms FROM cycles WHERE {where} GROUP BY run_id
), labels AS (
  SELECT run_id, LIST_SORT(LIST_DISTINCT(LIST(workload))) AS workloads
  FROM requests
  GROUP BY run_id
)
SELECT
  r.run_id, r.source, r.source_kind, r.simulated, r.arm,
  COALESCE(labels.workloads, [r.workload]) AS workloads, r.model, r.machine, r.experiment,
  r.state, r.dialects, r.baseline_drafts,
  COALESCE(s.requests, 0) AS requests, COALESCE(s.cycles, 0) AS cycles,
  s.generated_tokens, s.emitted, s.generated_tokens - s.emitted AS unattributed_tokens,
  s.decode_ms, w.cycles_ms, ROUND(s.decode_ms - w.cycles_ms, 6) AS unattributed_ms,
  COALESCE(s.unlogged, 0) AS unlogged, COALESCE(s.unknown, 0) AS unknown,
  r.lines, r.ignored_lines, r.unfit_lines, r.unknown_kinds, r.refused_rows,
  r.raw_bytes, r.version
FROM runs AS r
LEFT JOIN sums AS s USING (run_id)
LEFT JOIN walls AS w USING (run_id)
LEFT JOIN labels USING (run_id)
WHERE {runs}
ORDER BY r.simulated, r.source, r.run_id
