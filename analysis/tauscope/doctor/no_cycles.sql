-- Finding: a run with speculation logged no cycle
-- Means: what was drafted and accepted is unknown, which is not the same as nothing.
-- Do: where draft_depth is 1, ds4's own path speculates on nothing: run it with --mtp-draft 2;
--   else record it again with DS4_MTP_TIMING=1 (tauscope record sets it), or correct the arm's
--   label with tauscope label.
-- Grain: one row a request without cycles in an arm that is said to speculate. Units: tokens.
SELECT workload, arm, run_id, request_id, prompt_id, generated_tokens, draft_depth
FROM request_sums
WHERE arm NOT IN ('off', 'unlabelled') AND cycles IS NULL
  -- Requests that ran side by side have cycles; whose they are can't be told.
  AND run_id NOT IN (SELECT run_id FROM cycles WHERE request_id IS NULL)
ORDER BY workload, arm, run_id, request_id
