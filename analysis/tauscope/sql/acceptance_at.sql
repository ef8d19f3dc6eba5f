-- Question: how often is the draft at each depth accepted?
-- Grain: one row a ({dims}, position), from 1 to the deepest verification of the group.
-- Units: bets. Conditional: accepted at i / bets whose drafts 1…i−1 were all accepted and that
-- verified i. Marginal: accepted at i / all bets. The drafts counted are the verified ones: one
-- that is checked for free stands before them.
WITH bets AS (
  SELECT {dims}, verified, accepted, COUNT(*) AS bets
  FROM {cycles}
  WHERE is_bet(outcome) AND verified > 0 AND {where}
  GROUP BY {dims}, verified, accepted
), depths AS (
  SELECT {dims}, UNNEST(RANGE(1, MAX(verified) + 1)) AS position
  FROM bets
  GROUP BY {dims}
)
SELECT
  {of_depths}, position,
  COALESCE(SUM(bets) FILTER (accepted >= position), 0)::BIGINT AS num,
  COALESCE(SUM(bets) FILTER (verified >= position AND accepted >= position - 1), 0)::BIGINT
    AS conditional_den,
  SUM(bets)::BIGINT AS marginal_den,
  ratio(num, conditional_den) AS conditional,
  ratio(num, marginal_den) AS marginal
FROM depths JOIN bets ON {same}
GROUP BY {of_depths}, position
ORDER BY {of_depths}, position
