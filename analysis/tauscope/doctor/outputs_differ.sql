-- Finding: outputs differ between arms
-- Means: the same prompt gave other text, or text of another length, with speculation than
--   without; times per token then compare different work, and the decoding isn't lossless.
-- Do: check temperature 0 and the verifier (DS4_MTP_STRICT=1); near-ties flipped by batching
--   are the harmless cause.
-- Grain: one row a (workload, machine, model, experiment, prompt) in several arms.
-- Units: tokens are lists in the order of arms.
SELECT
  workload, machine, model, experiment, prompt_id,
  LIST(arm ORDER BY arm, run_id, request_id) AS arms,
  LIST(generated_tokens ORDER BY arm, run_id, request_id) AS tokens,
  COUNT(DISTINCT output_hash) AS different_outputs
FROM request_sums
WHERE prompt_id IS NOT NULL AND arm <> 'unlabelled'
GROUP BY workload, simulated, machine, model, experiment, prompt_id
HAVING COUNT(DISTINCT arm) > 1
   AND (COUNT(DISTINCT output_hash) > 1 OR COUNT(DISTINCT generated_tokens) > 1)
ORDER BY workload, machine, model, experiment, prompt_id
