-- Question: how far ahead was the draft's first choice, and was it right?
-- Grain: one row a ({dims}, bin of `$width` logits; the last bin holds all beyond `$most`).
-- Units: logits; `share` is of the group's readings; `right` of `known` first drafts.
WITH read AS (
  SELECT
    {dims}, margin, threshold,
    LEAST(GREATEST(FLOOR(margin / $width), FLOOR($least / $width)),
          FLOOR($most / $width))::BIGINT AS bin,
    first_draft_right(drafted, free_checked, free_accepted, verified, accepted,
                      draft_token, next_token) AS first_right
  FROM cycles
  WHERE margin IS NOT NULL AND ISFINITE(margin) AND {where}
)
SELECT
  {dims}, bin * $width AS margin_lo, (bin + 1) * $width AS margin_hi,
  (bin + 0.5) * $width AS margin,
  COUNT(*) AS readings,
  COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY {dims}) AS share,
  COUNT(*) FILTER (first_right) AS right,
  COUNT(first_right) AS known,
  MAX(threshold) AS threshold
FROM read
GROUP BY {dims}, bin
ORDER BY {dims}, bin
