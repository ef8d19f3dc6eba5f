-- Finding: the machine's speed drifts
-- Means: one path costs 2 % more or less per token in the last third of a run (of an experiment:
--   of the arm's runs) than in the first; an arm that ran later is judged by the machine, not by
--   what it does. In a run of one request a growing context does the same.
-- Do: interleave the arms (tauscope experiment does), let the machine cool, keep other work off.
-- Grain: one row a (workload, arm, machine, model, experiment, stretch, outcome) with at least 48
-- cycles to compare; a stretch is a run, or all runs of an arm in an experiment.
-- Units: ms per token of the path; drift is last third over first third, less 1. The view
-- `drifts` is sql/drift.sql, which the verdicts use, over all cycles.
SELECT workload, arm, stretch, outcome, cycles, first_ms_per_token, last_ms_per_token, drift
FROM drifts
WHERE ABS(drift) >= 0.02
ORDER BY ABS(drift) DESC
