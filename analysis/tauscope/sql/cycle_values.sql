-- Question: what does each single cycle of a selection add to each metric, in order?
-- Grain: one row a cycle. Units: counts, tokens and ms; warm-up cycles add no time.
SELECT * EXCLUDE (warm, wall_num, wall_den),
       CASE WHEN warm THEN 0 ELSE wall_num END AS ms_per_token_num,
       CASE WHEN warm THEN 0 ELSE wall_den END AS ms_per_token_den
FROM (
  SELECT
    run_id, cycle,
    ANY_VALUE(cycle < COALESCE(k.warmup_cycles, 0)) AS warm,
    {measures}
  FROM {cycles} LEFT JOIN warmup AS k USING (run_id)
  WHERE {where}
  GROUP BY run_id, cycle
)
ORDER BY run_id, cycle
