-- Finding: the baseline drafts
-- Means: a drafter is loaded and makes a draft for every token although nothing speculates;
--   against it speculation looks better than it is.
-- Do: record an off arm without --mtp, or with --mtp-draft 1.
-- Grain: one row a run. Units: draft_depth in tokens.
SELECT workload, arm, run_id, source, drafter, draft_depth
FROM runs
WHERE baseline_drafts AND arm IN ('off', 'unlabelled')
ORDER BY workload, arm, run_id
