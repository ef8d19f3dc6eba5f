-- Question: what would other tools call and print for these cycles?
-- Grain: one row a ({dims}, name). Units: as the tool's own; num over den is the value, to
-- which `plus` is added. A sum over a column unknown in any cycle is NULL.
-- Depth is the greatest that a run of the group tells or that was drafted at once: DSpark's
-- start-up line tells 1 and its cycles draft more.
-- Printed lines are those of the legacy timing switch: misses print none.
WITH chosen AS (
  SELECT
    *,
    COALESCE(dialect = 'legacy'
      AND outcome NOT IN ('missed', 'unlogged', 'bypassed', 'undrafted'), FALSE) AS printed
  FROM cycles
  WHERE arm NOT IN ('off', 'shadow') AND {where}
), by_request AS (
  SELECT
    {dims}, run_id, request_id,
    COUNT(*)::DOUBLE AS cycles,
    strict_sum(emitted) AS emitted,
    strict_sum(free_accepted + accepted) AS hits,
    strict_sum(free_checked + verified) AS tested,
    strict_sum((free_checked + verified > 0)::INTEGER) AS testing_cycles,
    COUNT(*) FILTER (printed)::DOUBLE AS lines,
    strict_sum(CASE WHEN printed THEN free_accepted + accepted ELSE 0 END) AS line_hits,
    strict_sum(CASE WHEN printed THEN accepted ELSE 0 END) AS line_accepted,
    strict_sum(CASE WHEN printed THEN drafted ELSE 0 END) AS line_drafted,
    MAX(MAX(draft_depth)) OVER own AS run_depth,
    MAX(MAX(drafted)) OVER own AS most_drafted
  FROM chosen
  GROUP BY {dims}, run_id, request_id
  WINDOW own AS (PARTITION BY {dims})
), sums AS (
  SELECT
    {dims},
    SUM(cycles) AS cycles,
    strict_sum(emitted) AS emitted,
    strict_sum(hits) AS hits,
    strict_sum(tested) AS tested,
    strict_sum(testing_cycles) AS testing_cycles,
    SUM(lines) AS lines,
    strict_sum(line_hits) AS line_hits,
    strict_sum(line_accepted) AS line_accepted,
    strict_sum(line_drafted) AS line_drafted,
    strict_sum((emitted - cycles) / (GREATEST(run_depth, most_drafted) * cycles)) AS mean_num,
    COUNT(*)::DOUBLE AS mean_den,
    ANY_VALUE(GREATEST(run_depth, most_drafted)) AS depth
  FROM by_request
  GROUP BY {dims}
)
SELECT {dims}, entry.name AS name, entry.num AS num, entry.den AS den, entry.plus AS plus,
       entry.plus + ratio(entry.num, entry.den) AS value, depth
FROM (
  SELECT *, UNNEST([
    {'name': 'vllm_length', 'num': hits, 'den': testing_cycles, 'plus': 1.0},
    {'name': 'vllm_rate', 'num': hits, 'den': tested, 'plus': 0.0},
    {'name': 'sglang_length', 'num': emitted, 'den': cycles, 'plus': 0.0},
    {'name': 'sglang_rate', 'num': hits, 'den': cycles * depth, 'plus': 0.0},
    {'name': 'sglang_rate_old', 'num': emitted, 'den': cycles * (depth + 1), 'plus': 0.0},
    {'name': 'tensorrt_rate', 'num': mean_num, 'den': mean_den, 'plus': 0.0},
    {'name': 'spec_bench', 'num': emitted, 'den': cycles, 'plus': 0.0},
    {'name': 'lines_committed', 'num': line_hits, 'den': line_drafted, 'plus': 0.0},
    {'name': 'lines_committed_less_1', 'num': line_accepted, 'den': line_drafted - lines,
     'plus': 0.0},
    {'name': 'lines_tau', 'num': line_hits, 'den': lines, 'plus': 1.0}
  ]) AS entry
  FROM sums
)
ORDER BY {dims}
