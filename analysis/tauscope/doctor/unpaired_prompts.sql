-- Finding: prompts are not paired
-- Means: a prompt ran in some arms and not in others, or has no name, so that a difference
--   between arms may be one between prompts.
-- Do: run every prompt in every arm (tauscope experiment does), and name them with --prompt-id.
-- Grain: one row a (workload, machine, model, experiment, prompt) where several arms ran.
-- Units: requests is their number; arms and lacking are lists of arms.
WITH asked AS (
  SELECT workload, simulated, machine, model, experiment, prompt_id, arm, COUNT(*) AS requests
  FROM request_sums
  WHERE arm NOT IN ('shadow', 'unlabelled')
  GROUP BY ALL
), arms AS (
  SELECT workload, simulated, machine, model, experiment, LIST_SORT(LIST(DISTINCT arm)) AS every_arm
  FROM asked
  GROUP BY ALL
)
SELECT
  a.workload, a.machine, a.model, a.experiment, a.prompt_id, SUM(a.requests)::BIGINT AS requests,
  LIST_SORT(LIST(DISTINCT a.arm)) AS arms,
  LIST_FILTER(ANY_VALUE(g.every_arm), LAMBDA x: NOT LIST_CONTAINS(LIST(DISTINCT a.arm), x)) AS lacking
FROM asked AS a
JOIN arms AS g
  ON g.workload = a.workload AND g.simulated = a.simulated
  AND g.machine IS NOT DISTINCT FROM a.machine AND g.model IS NOT DISTINCT FROM a.model
  AND g.experiment IS NOT DISTINCT FROM a.experiment
WHERE LEN(g.every_arm) > 1
GROUP BY a.workload, a.simulated, a.machine, a.model, a.experiment, a.prompt_id
HAVING a.prompt_id IS NULL OR LEN(lacking) > 0
ORDER BY a.workload, a.machine, a.model, a.experiment, a.prompt_id
