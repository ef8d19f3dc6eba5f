-- Finding: too few bets
-- Means: fewer than 30 drafts were verified, too few to say how many are accepted.
-- Do: record longer outputs or more prompts.
-- Grain: one row a (workload, arm, machine, model, experiment) that drafted. Units: drafts.
SELECT workload, arm, machine, model, experiment, COUNT(*) AS cycles,
       COUNT(*) FILTER (is_bet(outcome)) AS bets, SUM(verified)::BIGINT AS verified
FROM cycles
WHERE arm NOT IN ('off', 'shadow')
GROUP BY workload, arm, simulated, machine, model, experiment
HAVING COUNT(*) FILTER (drafted > 0) > 0 AND COALESCE(SUM(verified), 0) < 30
   AND COUNT(*) FILTER (outcome = 'unknown') = 0
ORDER BY workload, arm, machine, model, experiment
