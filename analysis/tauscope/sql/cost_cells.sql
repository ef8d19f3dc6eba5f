-- Question: what does each single cycle of a selection add to the mean costs, in order?
-- Grain: one row a cycle. Units: ms and counts; warm-up cycles are left out, and so is what
-- a cycle doesn't log (numerator and denominator both 0).
SELECT
  COALESCE(wall_ms, 0) AS wall_num,
  CASE WHEN wall_ms IS NULL THEN 0 ELSE COALESCE(emitted, 0) END AS wall_den,
  CASE WHEN drafted > free_checked THEN COALESCE(draft_ms, 0) ELSE 0 END AS d_num,
  (drafted > free_checked AND draft_ms IS NOT NULL)::INTEGER AS d_den,
  CASE WHEN is_bet(outcome) THEN COALESCE(verify_ms, 0) ELSE 0 END AS v_num,
  (is_bet(outcome) AND verify_ms IS NOT NULL)::INTEGER AS v_den,
  CASE WHEN is_bet(outcome) THEN COALESCE(paid_ms(verify_ms, snapshot_ms, commit_ms), 0) ELSE 0
    END AS bet_num,
  (is_bet(outcome) AND verify_ms IS NOT NULL)::INTEGER AS bet_den,
  CASE WHEN outcome = 'folded'
       THEN COALESCE(plain_fold_ms(free_accepted, wall_ms, draft_ms), 0) ELSE 0
    END AS fold_wall_num,
  (outcome = 'folded' AND plain_fold_ms(free_accepted, wall_ms, draft_ms) IS NOT NULL)::INTEGER
    AS fold_wall_den,
  CASE WHEN outcome = 'folded' THEN COALESCE(decode_ms, 0) ELSE 0 END AS fold_decode_num,
  (outcome = 'folded' AND decode_ms IS NOT NULL)::INTEGER AS fold_decode_den,
  COALESCE(base_ms, 0) AS base_num,
  (base_ms IS NOT NULL)::INTEGER AS base_den,
  (outcome = 'folded' AND COALESCE(draft_token = next_token, FALSE))::INTEGER AS right_num,
  (outcome = 'folded' AND (draft_token = next_token) IS NOT NULL)::INTEGER AS right_den
FROM cycles LEFT JOIN warmup USING (run_id)
WHERE cycle >= COALESCE(warmup_cycles, 0) AND {where}
ORDER BY run_id, cycle
