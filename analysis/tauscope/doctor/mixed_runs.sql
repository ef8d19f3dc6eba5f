-- Finding: one run stands in another's log
-- Means: a log holds several runs under one label although their configurations differ, or a
--   run's clock or position goes back; labels given to the log don't fit all of it.
-- Do: label the runs apart with tauscope label, or import the right log alone.
-- Grain: one row a log with unlike runs under one label, or a run whose clock goes back.
-- Units: back is how many cycles start before the one before them ended.
WITH unlike AS (
  SELECT
    log_id, ANY_VALUE(source) AS source, workload, arm, LIST(run_id ORDER BY run_index) AS runs,
    COUNT(DISTINCT [COALESCE(drafter, ''), COALESCE(draft_depth::VARCHAR, ''),
                    COALESCE(threshold::VARCHAR, ''), COALESCE(machine, ''), COALESCE(model, ''),
                    COALESCE(baseline_drafts::VARCHAR, '')]) AS configurations
  FROM runs
  WHERE arm <> 'unlabelled'
  GROUP BY log_id, workload, arm, prompt_id
  HAVING COUNT(*) > 1 AND configurations > 1
), steps AS (
  SELECT
    run_id, t_ms < LAG(t_ms) OVER own AS clock_back,
    pos < LAG(pos) OVER same_request AS position_back
  FROM cycles
  WINDOW own AS (PARTITION BY run_id ORDER BY cycle),
         same_request AS (PARTITION BY run_id, request_id ORDER BY cycle)
), jumps AS (
  SELECT run_id, COUNT(*) FILTER (clock_back OR position_back) AS back
  FROM steps
  GROUP BY run_id
  HAVING back > 0
)
SELECT log_id, source, workload, arm, runs, configurations, NULL::BIGINT AS back FROM unlike
UNION ALL
SELECT r.log_id, r.source, r.workload, r.arm, [j.run_id], NULL, j.back
FROM jumps AS j JOIN runs AS r USING (run_id)
ORDER BY ALL
