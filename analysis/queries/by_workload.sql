-- Tokens per cycle, acceptance and fold rate of each workload and arm.
SELECT
  workload, arm, COUNT(*) AS cycles,
  tau(emitted) AS tau,
  committed_acceptance(accepted, verified, outcome) AS committed_acceptance,
  fold_rate(outcome) AS fold_rate
FROM cycles
GROUP BY workload, arm
ORDER BY workload, arm
