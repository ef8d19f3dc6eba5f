-- Question: what can be asked for?
-- Grain: one row a column of a view, then one a macro, with comments from the database.
WITH listed AS (
  SELECT 1 AS part, view_name || ': ' || COALESCE(v.comment, '') AS of, column_index AS place,
         column_name AS name, data_type AS type, c.comment AS about
  FROM duckdb_columns() AS c
  JOIN duckdb_views() AS v ON v.view_name = c.table_name AND NOT v.internal
  WHERE NOT c.internal AND NOT ends_with(view_name, '_rows')
  UNION ALL
  SELECT 2, 'macros', 0,
         function_name || '(' || array_to_string(parameters, ', ') || ')', 'macro', comment
  FROM duckdb_functions()
  WHERE function_type = 'macro' AND NOT internal
    AND NOT (ends_with(function_name, '_num') OR ends_with(function_name, '_den'))
)
SELECT of, name, type, about FROM listed ORDER BY part, of, place, name
