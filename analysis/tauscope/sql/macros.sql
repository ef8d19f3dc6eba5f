-- Question: what does each metric divide by what?
-- Grain: aggregate macros; use them over `cycles` with any GROUP BY.
-- A metric `m` is `m_num` over `m_den`; `m` itself is their ratio. Sums over sums,
-- never means of ratios. A sum over a column that is unknown in any row of the
-- selection is NULL, and so is a ratio whose denominator is 0.
-- Units and denominators stand beside each macro and in `tauscope schema`.

CREATE MACRO strict_sum(x) AS CASE WHEN COUNT(x) = COUNT(*) THEN SUM(x)::DOUBLE END;

CREATE MACRO ratio(num, den) AS num / NULLIF(den, 0);

CREATE MACRO is_bet(outcome) AS outcome IN ('all_accepted', 'partial', 'rejected');

-- A cycle of unknown kind may have folded or bet: shares of outcomes are then unknown.
CREATE MACRO count_outcome(outcome, wanted) AS
  CASE WHEN COUNT(*) FILTER (outcome = 'unknown') = 0
       THEN COUNT(*) FILTER (outcome = wanted)::DOUBLE END;

-- τ, tokens per cycle [tokens/cycle]: Σ emitted / cycles.
CREATE MACRO tau_num(emitted) AS strict_sum(emitted);
CREATE MACRO tau_den(emitted) AS COUNT(*)::DOUBLE;
CREATE MACRO tau(emitted) AS ratio(tau_num(emitted), tau_den(emitted));

-- τ per target pass [tokens/pass]: Σ emitted / Σ target_forwards.
CREATE MACRO tau_forward_num(emitted, target_forwards) AS strict_sum(emitted);
CREATE MACRO tau_forward_den(emitted, target_forwards) AS strict_sum(target_forwards);
CREATE MACRO tau_forward(emitted, target_forwards) AS
  ratio(tau_forward_num(emitted, target_forwards), tau_forward_den(emitted, target_forwards));

-- Committed-draft acceptance [ratio]: Σ accepted / Σ verified, fallback cycles left out.
CREATE MACRO committed_acceptance_num(accepted, verified, outcome) AS
  strict_sum(CASE WHEN outcome = 'fallback' THEN 0 ELSE accepted END);
CREATE MACRO committed_acceptance_den(accepted, verified, outcome) AS
  strict_sum(CASE WHEN outcome = 'fallback' THEN 0 ELSE verified END);
CREATE MACRO committed_acceptance(accepted, verified, outcome) AS
  ratio(committed_acceptance_num(accepted, verified, outcome),
        committed_acceptance_den(accepted, verified, outcome));

-- Fold rate [ratio]: folded / all cycles.
CREATE MACRO fold_rate_num(outcome) AS count_outcome(outcome, 'folded');
CREATE MACRO fold_rate_den(outcome) AS COUNT(*)::DOUBLE;
CREATE MACRO fold_rate(outcome) AS ratio(fold_rate_num(outcome), fold_rate_den(outcome));

-- Gated fold rate [ratio]: folded / cycles whose margin the gate read. A bet whose margin was
-- not logged may have been read by the gate, so the rate is NULL beside one.
CREATE MACRO gated_fold_rate_num(outcome, margin) AS
  CASE WHEN COUNT(*) FILTER (outcome = 'unknown') = 0
       THEN COUNT(*) FILTER (outcome = 'folded' AND margin IS NOT NULL)::DOUBLE END;
CREATE MACRO gated_fold_rate_den(outcome, margin) AS
  CASE WHEN COUNT(*) FILTER (is_bet(outcome) AND margin IS NULL) = 0
       THEN COUNT(margin)::DOUBLE END;
CREATE MACRO gated_fold_rate(outcome, margin) AS
  ratio(gated_fold_rate_num(outcome, margin), gated_fold_rate_den(outcome, margin));

-- Draft hit rate [ratio]: Σ (free_accepted + accepted) / Σ (free_checked + verified).
CREATE MACRO draft_hit_rate_num(free_checked, free_accepted, verified, accepted) AS
  strict_sum(free_accepted + accepted);
CREATE MACRO draft_hit_rate_den(free_checked, free_accepted, verified, accepted) AS
  strict_sum(free_checked + verified);
CREATE MACRO draft_hit_rate(free_checked, free_accepted, verified, accepted) AS
  ratio(draft_hit_rate_num(free_checked, free_accepted, verified, accepted),
        draft_hit_rate_den(free_checked, free_accepted, verified, accepted));

-- Draft yield [ratio]: Σ (free_accepted + accepted) / Σ drafted.
CREATE MACRO draft_yield_num(free_accepted, accepted, drafted) AS
  strict_sum(free_accepted + accepted);
CREATE MACRO draft_yield_den(free_accepted, accepted, drafted) AS strict_sum(drafted);
CREATE MACRO draft_yield(free_accepted, accepted, drafted) AS
  ratio(draft_yield_num(free_accepted, accepted, drafted),
        draft_yield_den(free_accepted, accepted, drafted));

-- Was the first draft right? TRUE, FALSE, or NULL where nothing tells.
CREATE MACRO first_draft_right(drafted, free_checked, free_accepted, verified, accepted,
                               draft_token, next_token) AS
  CASE WHEN drafted > 0 AND free_checked > 0 THEN free_accepted > 0
       WHEN drafted > 0 AND free_checked = 0 AND verified > 0 THEN accepted > 0
       WHEN drafted > 0 AND free_checked = 0 THEN draft_token = next_token END;

-- Draft accuracy [ratio]: first draft right / cycles in which that is known, folds included.
-- Cycles that were printed nowhere are the ones whose draft was wrong: beside them it is NULL.
CREATE MACRO draft_accuracy_num(first_right, outcome) AS
  CASE WHEN COUNT(*) FILTER (outcome = 'unlogged') = 0
       THEN COUNT(*) FILTER (first_right)::DOUBLE END;
CREATE MACRO draft_accuracy_den(first_right, outcome) AS
  CASE WHEN COUNT(*) FILTER (outcome = 'unlogged') = 0 THEN COUNT(first_right)::DOUBLE END;
CREATE MACRO draft_accuracy(first_right, outcome) AS
  ratio(draft_accuracy_num(first_right, outcome), draft_accuracy_den(first_right, outcome));

-- Drafting share [ratio]: cycles with drafted > 0 / cycles.
CREATE MACRO drafting_share_num(drafted) AS strict_sum((drafted > 0)::INTEGER);
CREATE MACRO drafting_share_den(drafted) AS COUNT(*)::DOUBLE;
CREATE MACRO drafting_share(drafted) AS
  ratio(drafting_share_num(drafted), drafting_share_den(drafted));

-- Milliseconds per token from cycles [ms/token]: Σ wall_ms / Σ emitted.
CREATE MACRO ms_per_token_num(wall_ms, emitted) AS strict_sum(wall_ms);
CREATE MACRO ms_per_token_den(wall_ms, emitted) AS strict_sum(emitted);
CREATE MACRO ms_per_token(wall_ms, emitted) AS
  ratio(ms_per_token_num(wall_ms, emitted), ms_per_token_den(wall_ms, emitted));

-- Tokens per second [tokens/s]: 1000 / ms_per_token; decode only.
CREATE MACRO tokens_per_s(ms_per_token) AS ratio(1000.0, ms_per_token);

-- Verify over draft [×]: mean verify_ms / mean draft_ms, over bets that log both.
CREATE MACRO verify_draft_ratio_num(outcome, verify_ms, draft_ms) AS
  CASE WHEN COUNT(*) FILTER (is_bet(outcome))
          = COUNT(verify_ms + draft_ms) FILTER (is_bet(outcome))
       THEN SUM(verify_ms) FILTER (is_bet(outcome)) END;
CREATE MACRO verify_draft_ratio_den(outcome, verify_ms, draft_ms) AS
  CASE WHEN COUNT(*) FILTER (is_bet(outcome))
          = COUNT(verify_ms + draft_ms) FILTER (is_bet(outcome))
       THEN SUM(draft_ms) FILTER (is_bet(outcome)) END;
CREATE MACRO verify_draft_ratio(outcome, verify_ms, draft_ms) AS
  ratio(verify_draft_ratio_num(outcome, verify_ms, draft_ms),
        verify_draft_ratio_den(outcome, verify_ms, draft_ms));

-- What a bet paid for its verification [ms]: the pass, the snapshot before it and the repair
-- or replay after it; NULL where the pass was not logged.
CREATE MACRO paid_ms(verify_ms, snapshot_ms, commit_ms) AS
  verify_ms + COALESCE(snapshot_ms, 0) + COALESCE(commit_ms, 0);

-- Did the paid pass win a draft, or was a draft taken by it without a bet?
CREATE MACRO won(outcome, accepted) AS
  (is_bet(outcome) AND accepted > 0) OR outcome = 'unverified';

-- A fold without a base pass of its own, less its draft [ms]: one ordinary token.
CREATE MACRO plain_fold_ms(free_accepted, wall_ms, draft_ms) AS
  CASE WHEN free_accepted = 0 THEN wall_ms - draft_ms END;

-- The stages of a cycle that have a column, base pass apart [ms].
CREATE MACRO staged_ms(draft_ms, snapshot_ms, verify_ms, commit_ms, decode_ms) AS
  COALESCE(draft_ms, 0) + COALESCE(snapshot_ms, 0) + COALESCE(verify_ms, 0)
  + COALESCE(commit_ms, 0) + COALESCE(decode_ms, 0);
