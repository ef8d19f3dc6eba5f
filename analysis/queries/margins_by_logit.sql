-- Is the margin a good judge? Share of right drafts by margin, one row a logit and arm.
SELECT
  workload, arm, simulated, FLOOR(margin) AS margin_from, COUNT(*) AS drafts,
  AVG((draft_token = next_token)::INTEGER) AS right_share
FROM cycles
WHERE margin IS NOT NULL AND next_token IS NOT NULL
GROUP BY workload, arm, simulated, margin_from
ORDER BY workload, arm, simulated, margin_from
