-- Question: how far ahead was the first choice of the draft that the gate read, and was it right?
-- Grain: one row a ({dims}, bin of `$width` logits), bins without a reading included. The last
-- bin holds all beyond `$most`; where that is more than its width, `margin_hi` is NULL.
-- Units: logits; `share` is of the group's readings; `right` of `known` gated drafts. The gate
-- reads the draft that a bet would verify: of a cycle that tests its first draft for free, the
-- second. Of a bet `accepted` tells whether it was right, of a fold only the next token.
WITH read AS (
  SELECT
    {dims}, margin, threshold,
    LEAST(GREATEST(FLOOR(margin / $width), FLOOR($least / $width)),
          FLOOR($most / $width))::BIGINT AS bin,
    CASE WHEN is_bet(outcome) THEN accepted > 0
         WHEN drafted > free_checked THEN draft_token = next_token END AS gated_right
  FROM cycles
  WHERE margin IS NOT NULL AND ISFINITE(margin) AND {where}
), binned AS (
  SELECT
    {dims}, bin, COUNT(*) AS readings, COUNT(*) FILTER (gated_right) AS hits,
    COUNT(gated_right) AS known, MAX(threshold) AS threshold, MAX(margin) AS most
  FROM read
  GROUP BY {dims}, bin
), bins AS (
  SELECT
    UNNEST(GENERATE_SERIES(FLOOR($least / $width)::BIGINT, FLOOR($most / $width)::BIGINT)) AS place,
    (SELECT MAX(most) FROM binned) AS most
)
SELECT
  {dims}, place * $width AS margin_lo,
  CASE WHEN place < FLOOR($most / $width) OR b.most < (place + 1) * $width
       THEN (place + 1) * $width END AS margin_hi,
  (place + 0.5) * $width AS margin,
  COALESCE(SUM(readings) FILTER (bin = place), 0)::BIGINT AS readings,
  COALESCE(SUM(readings) FILTER (bin = place), 0) / SUM(readings) AS share,
  COALESCE(SUM(hits) FILTER (bin = place), 0)::BIGINT AS right,
  COALESCE(SUM(known) FILTER (bin = place), 0)::BIGINT AS known,
  MAX(threshold) AS threshold
FROM binned CROSS JOIN bins AS b
GROUP BY {dims}, place, b.most
ORDER BY {dims}, place
