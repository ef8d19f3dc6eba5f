-- Question: the ledger of runs, with the many runs of an experiment's arm as one row.
-- Grain: one row a (simulated, machine, model, experiment, arm) of an experiment, one row a run
-- elsewhere. Units and columns: those of ledger_runs, summed; NULL where one of the runs doesn't
-- know. `run_id` is NULL where there are several.
WITH ledger AS (
{ledger_runs}
)
SELECT
  COALESCE(experiment, run_id) AS stretch,
  COUNT(*) AS runs,
  CASE WHEN COUNT(*) = 1 THEN MIN(run_id) END AS run_id,
  COALESCE(experiment, MIN(source)) AS source,
  STRING_AGG(DISTINCT source_kind, ', ' ORDER BY source_kind) AS source_kind,
  simulated, arm,
  LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(workloads)))) AS workloads,
  model, machine, experiment,
  STRING_AGG(DISTINCT state, ', ' ORDER BY state) AS state,
  LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(dialects)))) AS dialects,
  CASE WHEN COUNT(*) = COUNT(baseline_drafts) THEN BOOL_OR(baseline_drafts) END AS baseline_drafts,
  SUM(requests)::BIGINT AS requests,
  SUM(cycles)::BIGINT AS cycles,
  strict_sum(generated_tokens)::BIGINT AS generated_tokens,
  strict_sum(emitted)::BIGINT AS emitted,
  strict_sum(unattributed_tokens)::BIGINT AS unattributed_tokens,
  strict_sum(decode_ms) AS decode_ms,
  strict_sum(cycles_ms) AS cycles_ms,
  ROUND(strict_sum(unattributed_ms), 6) AS unattributed_ms,
  SUM(unlogged)::BIGINT AS unlogged,
  SUM(unknown)::BIGINT AS unknown,
  strict_sum(lines)::BIGINT AS lines,
  strict_sum(ignored_lines)::BIGINT AS ignored_lines,
  strict_sum(unfit_lines)::BIGINT AS unfit_lines,
  LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(unknown_kinds)))) AS unknown_kinds,
  strict_sum(refused_rows)::BIGINT AS refused_rows
FROM ledger
GROUP BY COALESCE(experiment, run_id), simulated, arm, model, machine, experiment
ORDER BY simulated, source, stretch, arm
