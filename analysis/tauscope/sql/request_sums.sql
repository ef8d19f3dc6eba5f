-- Question: what does each request add to every metric?
-- Grain: one row a request (a run where cycles can't be told apart), and a value of {also}, which
-- is nothing in the view. Numerators and denominators of every metric, summed over its cycles,
-- with the request's own times beside. Units: counts, tokens, ms.
WITH sums AS (
  SELECT
    run_id, request_id, {also}
    COUNT(*) AS cycles,
    COUNT(*) FILTER (outcome = 'all_accepted') AS all_accepted,
    COUNT(*) FILTER (outcome = 'partial') AS partial,
    COUNT(*) FILTER (outcome = 'rejected') AS rejected,
    COUNT(*) FILTER (outcome = 'folded') AS folded,
    COUNT(*) FILTER (outcome = 'missed') AS missed,
    COUNT(*) FILTER (outcome = 'bypassed') AS bypassed,
    COUNT(*) FILTER (outcome = 'undrafted') AS undrafted,
    COUNT(*) FILTER (outcome = 'unverified') AS unverified,
    COUNT(*) FILTER (outcome = 'unlogged') AS unlogged,
    COUNT(*) FILTER (outcome = 'unknown') AS unknown,
    COUNT(*) FILTER (outcome = 'fallback') AS fallback,
    {measures}
  FROM {cycles}
  GROUP BY {also} run_id, request_id
), warm AS (
  SELECT run_id, request_id, {also} SUM(wall_ms) AS wall_num, SUM(emitted) AS wall_den,
         COUNT(*) AS warmup_cycles
  FROM {cycles} JOIN warmup AS k USING (run_id)
  WHERE cycle < 256 AND cycle < k.warmup_cycles
  GROUP BY {also} run_id, request_id
)
SELECT
  COALESCE(s.run_id, q.run_id) AS run_id,
  COALESCE(s.request_id, q.request_id) AS request_id,
  COALESCE(q.workload, r.workload, 'unlabelled') AS workload,
  COALESCE(r.arm, 'unlabelled') AS arm,
  COALESCE(q.prompt_id, r.prompt_id) AS prompt_id,
  -- A prompt of a workload is the unit of evidence; unnamed, each request stands alone.
  COALESCE(q.workload, r.workload, 'unlabelled') || '/' || COALESCE(
    q.prompt_id, r.prompt_id,
    COALESCE(s.run_id, q.run_id) || ':' || COALESCE(s.request_id, q.request_id, -1)) AS cluster,
  r.simulated, r.machine, r.model, r.experiment, r.drafter, r.draft_depth, r.log_id, r.source,
  r.baseline_drafts,
  s.* EXCLUDE (run_id, request_id, wall_num, wall_den)
      -- Where cycles may be missing, what is divided by cycles or sums over them is unknown;
      -- bets are printed whole, so their acceptance is not.
      REPLACE (
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.tau_num END AS tau_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.tau_forward_num END AS tau_forward_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.fold_rate_num END AS fold_rate_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.gated_fold_rate_num END AS gated_fold_rate_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.draft_hit_rate_num END AS draft_hit_rate_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.draft_yield_num END AS draft_yield_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.draft_accuracy_num END AS draft_accuracy_num,
        CASE WHEN r.hidden_cycles THEN NULL ELSE s.drafting_share_num END AS drafting_share_num),
  COALESCE(r.hidden_cycles, FALSE) AND s.cycles IS NOT NULL AS hidden,
  s.tau_num AS emitted,
  q.run_id IS NOT NULL AS is_request,
  COALESCE(w.warmup_cycles, 0) AS warmup_cycles,
  s.wall_num - COALESCE(w.wall_num, 0) AS wall_num,
  s.wall_den - COALESCE(w.wall_den, 0) AS wall_den,
  q.generated_tokens, q.decode_ms, q.prefill_ms, q.prompt_tokens, q.output_hash, q.overlapped,
  -- The engine's own time and tokens for the request; one token's worth where only the
  -- speed was printed (usable alone, never added up).
  COALESCE(q.decode_ms, 1000.0 / NULLIF(q.decode_tokens_per_s, 0)) AS run_num,
  CASE WHEN q.decode_ms IS NOT NULL THEN q.generated_tokens::DOUBLE
       WHEN q.decode_tokens_per_s > 0 THEN 1.0 END AS run_den,
  q.decode_ms IS NULL AND q.decode_tokens_per_s > 0 AS run_weightless
FROM sums AS s
{which} JOIN request_rows AS q USING (run_id, request_id)
LEFT JOIN warm AS w ON w.run_id = s.run_id AND w.request_id IS NOT DISTINCT FROM s.request_id {same}
LEFT JOIN run_rows AS r ON r.run_id = COALESCE(s.run_id, q.run_id)
