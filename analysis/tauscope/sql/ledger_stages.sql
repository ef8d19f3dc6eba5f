-- Question: where did the milliseconds of a token go?
-- Grain: one row a ({dims}, stage). Units: ms; ms_per_token is over the group's Σ emitted.
-- `in no stage` is wall_ms less the stages, in cycles that log the whole cycle; a plain step
-- is a cycle without a draft or a stage. Cycles whose times were not logged count in
-- `untimed` and make the sums a lower bound.
WITH parts AS (
  SELECT
    {dims}, outcome, emitted, wall_ms, draft_ms, snapshot_ms, verify_ms, commit_ms,
    decode_ms, base_ms,
    COALESCE(draft_ms, 0) + COALESCE(snapshot_ms, 0) + COALESCE(verify_ms, 0)
      + COALESCE(commit_ms, 0) + COALESCE(decode_ms, 0) + COALESCE(base_ms, 0) AS staged_ms,
    COALESCE(outcome IN ('undrafted', 'bypassed'), FALSE) AS plain
  FROM cycles
  WHERE {where}
), sums AS (
  SELECT
    {dims},
    SUM(emitted) AS emitted,
    COUNT(*) FILTER (wall_ms IS NULL AND staged_ms = 0) AS untimed,
    MAP {
      'draft': SUM(draft_ms), 'snapshot': SUM(snapshot_ms), 'verify': SUM(verify_ms),
      'commit': SUM(commit_ms), 'decode of folds': SUM(decode_ms), 'base decode': SUM(base_ms),
      'plain step': SUM(wall_ms) FILTER (plain AND staged_ms = 0),
      'in no stage': SUM(wall_ms - staged_ms) FILTER (NOT (plain AND staged_ms = 0))
    } AS stages
  FROM parts
  GROUP BY {dims}
)
SELECT
  {dims}, stage.key AS stage, stage.value AS ms,
  ratio(stage.value, emitted) AS ms_per_token, emitted::BIGINT AS emitted, untimed
FROM (SELECT *, UNNEST(MAP_ENTRIES(stages)) AS stage FROM sums)
WHERE stage.value IS NOT NULL AND stage.value <> 0
ORDER BY {dims}, ms DESC
