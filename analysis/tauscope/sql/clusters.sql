-- Question: what are the sums behind every metric, prompt by prompt?
-- Grain: one row a (group, cluster); the group is {dims}, a cluster is a prompt of a workload.
-- Units: ms and tokens; every metric is <metric>_num over <metric>_den.
-- time_basis: `cycles` (Σ wall_ms / Σ emitted, warm-up left out) where every request of the
-- group can give it in every arm, else `run` (decode time / tokens), else NULL; one for all of
-- a group, never two.
WITH chosen AS (
  SELECT
    *,
    (wall_num IS NOT NULL AND wall_den > 0) AS cycles_ok,
    (run_num > 0 AND run_den > 0) AS run_ok
  FROM {sums_of}
  WHERE {where}
), basis AS (
  SELECT
    *,
    BOOL_AND(COALESCE(cycles_ok, FALSE)) OVER every_arm AS every_cycles,
    BOOL_AND(COALESCE(run_ok, FALSE)) OVER every_arm AS every_run,
    BOOL_AND(COALESCE(cycles_ok, FALSE)) OVER own AS own_cycles,
    BOOL_AND(COALESCE(run_ok, FALSE)) OVER own AS own_run,
    BOOL_OR(COALESCE(run_weightless, FALSE)) OVER own AND COUNT(*) OVER own > 1 AS unweighted
  FROM chosen
  WINDOW every_arm AS (PARTITION BY {cell}arm = 'shadow'),
         own AS (PARTITION BY {dims})
), timed AS (
  SELECT
    *,
    CASE WHEN every_cycles THEN 'cycles' WHEN every_run AND NOT unweighted THEN 'run'
         WHEN own_cycles THEN 'cycles' WHEN own_run AND NOT unweighted THEN 'run' END AS time_basis
  FROM basis
)
SELECT
  {dims}, cluster,
  ANY_VALUE(prompt_id) IS NOT NULL AS named,
  COUNT(*) FILTER (is_request) AS requests,
  COUNT(cycles) FILTER (is_request) AS requests_with_cycles,
  BOOL_OR(hidden) AS hidden,
  BOOL_OR(COALESCE(overlapped, FALSE)) AS overlapped,
  strict_sum(CASE WHEN cycles IS NULL THEN 0 ELSE emitted END) AS emitted,
  COALESCE(SUM(cycles), 0)::BIGINT AS cycles,
  COALESCE(SUM(all_accepted), 0)::BIGINT AS all_accepted,
  COALESCE(SUM(partial), 0)::BIGINT AS partial,
  COALESCE(SUM(rejected), 0)::BIGINT AS rejected,
  COALESCE(SUM(folded), 0)::BIGINT AS folded,
  COALESCE(SUM(missed), 0)::BIGINT AS missed,
  COALESCE(SUM(bypassed), 0)::BIGINT AS bypassed,
  COALESCE(SUM(undrafted), 0)::BIGINT AS undrafted,
  COALESCE(SUM(unverified), 0)::BIGINT AS unverified,
  COALESCE(SUM(unlogged), 0)::BIGINT AS unlogged,
  COALESCE(SUM(unknown), 0)::BIGINT AS unknown,
  COALESCE(SUM(fallback), 0)::BIGINT AS fallback,
  -- A request without cycles has nothing to add; one with an unknown count has.
  {sums},
  ANY_VALUE(time_basis) AS time_basis,
  ANY_VALUE(unweighted) AS unweighted,
  SUM(warmup_cycles)::BIGINT AS warmup_cycles,
  strict_sum(CASE time_basis WHEN 'cycles' THEN wall_num WHEN 'run' THEN run_num END)
    AS ms_per_token_num,
  strict_sum(CASE time_basis WHEN 'cycles' THEN wall_den WHEN 'run' THEN run_den END)
    AS ms_per_token_den,
  strict_sum(generated_tokens) AS generated_tokens,
  -- Greedy repeats of a prompt say the same; NULL where one request has no hash.
  CASE WHEN COUNT(output_hash) = COUNT(*) THEN LIST_SORT(LIST_DISTINCT(LIST(output_hash))) END
    AS outputs,
  BOOL_OR(baseline_drafts) AS baseline_drafts
FROM timed
GROUP BY {dims}, cluster
ORDER BY {dims}, cluster
