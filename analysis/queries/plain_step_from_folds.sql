-- What does an ordinary token cost where the gate folds? A fold without a base pass of its
-- own, less its draft, is one: compare it with the off arm's wall_ms.
-- One row an arm; ms.
SELECT workload, arm, COUNT(*) AS folds,
       AVG(plain_fold_ms(free_accepted, wall_ms, draft_ms)) AS plain_step_ms,
       AVG(decode_ms) AS decode_ms
FROM cycles
WHERE outcome = 'folded'
GROUP BY workload, arm
ORDER BY workload, arm
