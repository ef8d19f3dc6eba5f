-- Question: over which span do margins spread? One row; logits; NULL where none was read.
SELECT MIN(margin) AS least, QUANTILE_CONT(margin, 0.995) AS most
FROM cycles
WHERE margin IS NOT NULL AND ISFINITE(margin) AND {where}
