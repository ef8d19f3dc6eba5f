-- Finding: the text repeats itself
-- Means: text that is its own copy is easy to draft; what it shows does not hold for real text.
-- Do: use prompts that real traffic would send; filler text measures the filler.
-- Grain: one row a request with at least 100 known tokens of which fewer than a quarter differ
-- (of its first 400), or with at least 200 judged first drafts of which 98 % were right.
-- Units: tokens and shares.
WITH told AS (
  SELECT
    workload, arm, run_id, request_id, prompt_id, outcome,
    COALESCE(next_token, draft_token) AS token,
    first_draft_right(drafted, free_checked, free_accepted, verified, accepted, draft_token,
                      next_token) AS first_right,
    ROW_NUMBER() OVER (PARTITION BY run_id, request_id ORDER BY cycle) AS place
  FROM cycles
)
SELECT
  workload, arm, run_id, request_id, prompt_id,
  COUNT(token) FILTER (place <= 400) AS known_tokens,
  ratio(COUNT(DISTINCT token) FILTER (place <= 400), known_tokens) AS different,
  draft_accuracy(first_right, outcome) AS draft_accuracy
FROM told
GROUP BY workload, arm, run_id, request_id, prompt_id
HAVING (known_tokens >= 100 AND different < 0.25)
    OR (draft_accuracy_den(first_right, outcome) >= 200 AND draft_accuracy >= 0.98)
ORDER BY workload, arm, run_id, request_id
