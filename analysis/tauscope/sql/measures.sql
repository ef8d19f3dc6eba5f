-- Question: what does one group of cycles add to each metric?
-- Grain: a select list, put into `request_sums` and `cycle_values` at {measures}; the
-- metrics themselves are the macros of macros.sql.
-- Units: counts, tokens and ms.
tau_num(emitted) AS tau_num, tau_den(emitted) AS tau_den,
tau_forward_num(emitted, target_forwards) AS tau_forward_num,
tau_forward_den(emitted, target_forwards) AS tau_forward_den,
committed_acceptance_num(accepted, verified, outcome) AS committed_acceptance_num,
committed_acceptance_den(accepted, verified, outcome) AS committed_acceptance_den,
fold_rate_num(outcome) AS fold_rate_num, fold_rate_den(outcome) AS fold_rate_den,
gated_fold_rate_num(outcome, margin) AS gated_fold_rate_num,
gated_fold_rate_den(outcome, margin) AS gated_fold_rate_den,
draft_hit_rate_num(free_checked, free_accepted, verified, accepted) AS draft_hit_rate_num,
draft_hit_rate_den(free_checked, free_accepted, verified, accepted) AS draft_hit_rate_den,
draft_yield_num(free_accepted, accepted, drafted) AS draft_yield_num,
draft_yield_den(free_accepted, accepted, drafted) AS draft_yield_den,
draft_accuracy_num(first_draft_right(drafted, free_checked, free_accepted, verified,
                                     accepted, draft_token, next_token), outcome)
  AS draft_accuracy_num,
draft_accuracy_den(first_draft_right(drafted, free_checked, free_accepted, verified,
                                     accepted, draft_token, next_token), outcome)
  AS draft_accuracy_den,
drafting_share_num(drafted) AS drafting_share_num,
drafting_share_den(drafted) AS drafting_share_den,
verify_draft_ratio_num(outcome, verify_ms, draft_ms) AS verify_draft_ratio_num,
verify_draft_ratio_den(outcome, verify_ms, draft_ms) AS verify_draft_ratio_den,
ms_per_token_num(wall_ms, emitted) AS wall_num,
ms_per_token_den(wall_ms, emitted) AS wall_den
