-- Would the drafts that the gate folded have been accepted? In bins of half a logit of margin,
-- where the log says the next token; a share above what one more bet needs (tauscope cost)
-- means that the gate is too shy there.
-- One row a bin; right is a share of the folds whose fate is known.
SELECT workload, arm, FLOOR(margin * 2) / 2 AS margin_from, COUNT(*) AS folds,
       AVG((draft_token = next_token)::INTEGER) AS "right"
FROM cycles
WHERE outcome = 'folded' AND (draft_token = next_token) IS NOT NULL
GROUP BY ALL
ORDER BY workload, arm, margin_from
