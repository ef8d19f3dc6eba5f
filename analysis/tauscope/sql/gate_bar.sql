-- Question: at which bar did the gate of an arm fold?
-- Grain: one row a bar; more than one means that the arm has no single bar. Unit: logits.
SELECT threshold AS bar, COUNT(*) AS folds
FROM cycles
WHERE outcome = 'folded' AND {where}
GROUP BY threshold
ORDER BY threshold
