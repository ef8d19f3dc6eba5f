-- Finding: speculation was not applied
-- Means: half of the cycles or fewer drafted anything in an arm that is said to speculate, or
--   cycles bet in an arm that is said to be off; the figures describe something else.
-- Do: look at why (a scheduler, a temperature above 0, a flag), run it again, or relabel the
--   arm with tauscope label.
-- Grain: one row a (workload, arm, run). Units: cycles; drafting_share is a share of cycles.
SELECT
  workload, arm, run_id, COUNT(*) AS cycles,
  COUNT(*) FILTER (outcome = 'bypassed') AS bypassed,
  COUNT(*) FILTER (is_bet(outcome)) AS bets,
  COUNT(*) FILTER (drafted > 0 OR outcome = 'unlogged')
    / NULLIF(COUNT(*) FILTER (drafted IS NOT NULL OR outcome = 'unlogged'), 0) AS drafting_share
FROM cycles
WHERE arm NOT IN ('shadow', 'unlabelled')
GROUP BY workload, arm, run_id
HAVING (arm <> 'off' AND drafting_share <= 0.5) OR (arm = 'off' AND bets > 0)
ORDER BY workload, arm, run_id
