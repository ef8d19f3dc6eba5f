-- Finding: prompts repeat
-- Means: a greedy repeat of a prompt is no new evidence; it counts as one prompt, also where
--   the same output stands under two names.
-- Do: add other prompts; take the repeats as a check of the machine's steadiness only.
-- Grain: one row a (workload, arm, prompt run more than once) or a (workload, arm, output under
-- several names). Units: requests is their number.
WITH asked AS (
  SELECT workload, arm, simulated, machine, model, experiment, prompt_id, output_hash
  FROM request_sums
  WHERE arm <> 'unlabelled'
)
SELECT workload, arm, machine, model, experiment, [prompt_id] AS prompts, NULL AS output_hash,
       COUNT(*) AS requests
FROM asked
WHERE prompt_id IS NOT NULL
GROUP BY workload, arm, simulated, machine, model, experiment, prompt_id
HAVING COUNT(*) > 1
UNION ALL
SELECT workload, arm, machine, model, experiment, LIST_SORT(LIST(DISTINCT prompt_id)), output_hash,
       COUNT(*)
FROM asked
WHERE prompt_id IS NOT NULL AND output_hash IS NOT NULL
GROUP BY workload, arm, simulated, machine, model, experiment, output_hash
HAVING COUNT(DISTINCT prompt_id) > 1
ORDER BY ALL
