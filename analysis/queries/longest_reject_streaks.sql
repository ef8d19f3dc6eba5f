-- Where did bets fail again and again? Streaks of rejected bets, longest first.
WITH bets AS (
  SELECT run_id, request_id, cycle, outcome,
         SUM((outcome <> 'rejected')::INTEGER) OVER (PARTITION BY run_id ORDER BY cycle) AS streak
  FROM cycles
  WHERE is_bet(outcome)
)
SELECT run_id, request_id, MIN(cycle) AS first_cycle, COUNT(*) AS rejected_in_a_row
FROM bets
WHERE outcome = 'rejected'
GROUP BY run_id, request_id, streak
HAVING COUNT(*) > 1
ORDER BY rejected_in_a_row DESC, run_id, first_cycle
LIMIT 20
