-- Question: what did each prompt's cycles cost, part by part, and what did they win?
-- Grain: one row a (workload, arm, simulated, machine, model, experiment, cluster); a cluster
-- is a prompt of a workload.
-- Units: ms, tokens and counts, as sums over cycles; warm-up cycles are left out where the
-- whole cycle was logged, and from every sum alike.
-- total_ms and total_tokens: Σ wall_ms and Σ emitted (time_basis `cycles`), else the
-- requests' own decode time and tokens (`run`), by what all requests of the arm can give.
-- NULL where a needed column is unknown in one of the cycles.
WITH parts AS (
  SELECT
    run_id, request_id,
    COUNT(*) AS timed_cycles,
    strict_sum(emitted) AS emitted,
    strict_sum(accepted) AS accepted,
    strict_sum(free_accepted) AS free_accepted,
    strict_sum(CASE WHEN outcome = 'fallback' THEN 0 ELSE verified END) AS verified,
    BOOL_OR(free_checked > 0) AS two_pass,
    -- Drafting: a draft checked for free stands in no draft_ms.
    COALESCE(SUM(draft_ms), 0) AS draft_ms,
    COALESCE(SUM(draft_ms) FILTER (drafted > free_checked), 0) AS d_num,
    COUNT(draft_ms) FILTER (drafted > free_checked) AS d_den,
    COALESCE(SUM(drafted - free_checked) FILTER (draft_ms IS NOT NULL), 0) AS d_tokens,
    COUNT(*) FILTER (drafted > free_checked AND draft_ms IS NULL) AS d_unlogged,
    -- A dark cycle is a miss that printed nothing: it drafted.
    COUNT(*) FILTER (drafted > 0 OR outcome = 'unlogged') AS drafting,
    -- Bets: the pass itself, and with it the snapshot before and the repair after.
    COUNT(*) FILTER (is_bet(outcome)) AS bets,
    strict_sum(CASE WHEN is_bet(outcome) THEN verify_ms ELSE 0 END) AS v_num,
    strict_sum(CASE WHEN is_bet(outcome) THEN paid_ms(verify_ms, snapshot_ms, commit_ms)
                    ELSE 0 END) AS bet_ms,
    COALESCE(SUM(draft_ms) FILTER (is_bet(outcome)), 0) AS bet_draft_ms,
    COUNT(draft_ms) FILTER (is_bet(outcome)) AS bet_drafts_logged,
    strict_sum(CASE WHEN is_bet(outcome) THEN verified ELSE 0 END) AS bet_verified,
    COUNT(*) FILTER (won(outcome, accepted)) AS won,
    strict_sum(CASE WHEN won(outcome, accepted) THEN paid_ms(verify_ms, snapshot_ms, commit_ms)
                    ELSE 0 END) AS won_ms,
    COUNT(*) FILTER (outcome = 'rejected') AS lost,
    strict_sum(CASE WHEN outcome = 'rejected' THEN paid_ms(verify_ms, snapshot_ms, commit_ms)
                    ELSE 0 END) AS lost_ms,
    -- Folds: one ordinary token; without a base pass of its own the cycle less its draft is one.
    COUNT(*) FILTER (outcome = 'folded') AS folds,
    COUNT(*) FILTER (outcome = 'folded' AND decode_ms IS NULL) AS folds_derived,
    strict_sum(CASE WHEN outcome <> 'folded' THEN 0
                    ELSE COALESCE(decode_ms, plain_fold_ms(free_accepted, wall_ms, draft_ms))
               END) AS fold_ms,
    COALESCE(SUM(plain_fold_ms(free_accepted, wall_ms, draft_ms))
             FILTER (outcome = 'folded'), 0) AS fold_wall_num,
    COUNT(plain_fold_ms(free_accepted, wall_ms, draft_ms))
      FILTER (outcome = 'folded') AS fold_wall_den,
    COALESCE(SUM(decode_ms) FILTER (outcome = 'folded'), 0) AS fold_decode_num,
    COUNT(decode_ms) FILTER (outcome = 'folded') AS fold_decode_den,
    COUNT(*) FILTER (outcome IN ('missed', 'unlogged')) AS missed,
    COALESCE(SUM(base_ms), 0) AS base_num,
    COUNT(base_ms) AS base_den,
    COALESCE(SUM(reported_ms), 0) AS reported_ms,
    COUNT(reported_ms) AS reported_cycles,
    COALESCE(SUM(staged_ms(draft_ms, snapshot_ms, verify_ms, commit_ms, decode_ms)), 0)
      AS staged_ms,
    COUNT(*) FILTER (outcome = 'folded' AND draft_token = next_token) AS folds_right_num,
    COUNT(*) FILTER (outcome = 'folded' AND (draft_token = next_token) IS NOT NULL)
      AS folds_right_den
  FROM cycle_rows LEFT JOIN warmup USING (run_id)
  WHERE cycle >= COALESCE(warmup_cycles, 0)
  GROUP BY run_id, request_id
), chosen AS (
  SELECT s.workload, s.arm, s.simulated, s.machine, s.model, s.experiment, s.cluster, s.prompt_id,
         s.baseline_drafts, s.warmup_cycles, s.wall_num, s.wall_den, s.run_num, s.run_den,
         s.run_weightless, s.cycles, p.* EXCLUDE (run_id, request_id)
  FROM (SELECT * FROM request_sums WHERE {where}) AS s
  LEFT JOIN parts AS p
    ON p.run_id = s.run_id AND p.request_id IS NOT DISTINCT FROM s.request_id
), based AS (
  SELECT
    *,
    BOOL_AND(COALESCE(wall_num IS NOT NULL AND wall_den > 0, FALSE)) OVER own AS own_cycles,
    BOOL_AND(COALESCE(run_num > 0 AND run_den > 0, FALSE)) OVER own AS own_run,
    BOOL_OR(COALESCE(run_weightless, FALSE)) OVER own AS weightless,
    COUNT(*) OVER own AS requests_of_arm
  FROM chosen
  WINDOW own AS (PARTITION BY workload, arm, simulated, machine, model, experiment)
), timed AS (
  SELECT *, CASE WHEN own_cycles THEN 'cycles'
                 WHEN own_run AND (NOT weightless OR requests_of_arm = 1) THEN 'run'
            END AS time_basis
  FROM based
)
SELECT
  workload, arm, simulated, machine, model, experiment, cluster,
  ANY_VALUE(prompt_id) AS prompt_id,
  ANY_VALUE(prompt_id) IS NOT NULL AS named,
  COUNT(*) AS requests,
  COUNT(cycles) AS requests_with_cycles,
  ANY_VALUE(time_basis) AS time_basis,
  BOOL_OR(weightless) AS weightless,
  strict_sum(CASE time_basis WHEN 'cycles' THEN wall_num WHEN 'run' THEN run_num END)
    AS total_ms,
  strict_sum(CASE time_basis WHEN 'cycles' THEN wall_den WHEN 'run' THEN run_den END)
    AS total_tokens,
  BOOL_OR(baseline_drafts) AS baseline_drafts,
  SUM(warmup_cycles)::BIGINT AS warmup_cycles,
  COALESCE(BOOL_OR(two_pass), FALSE) AS two_pass,
  -- A request without cycles has nothing to add to a count; one with an unknown count has.
  {sums}
FROM timed
GROUP BY workload, arm, simulated, machine, model, experiment, cluster
ORDER BY workload, arm, simulated, machine, model, experiment, cluster
