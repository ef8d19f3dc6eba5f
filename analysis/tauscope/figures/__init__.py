"""Frames in, charts, tables and sentences out; never a query.

- `charts`, `tables`, `words`: of the metrics, the ledger and other tools' names
- `cause_charts`, `cause_tables`, `cause_words`: of costs, comparisons and routing
- `shapes`, `cells`: what charts and tables of several pages have in common
- `drawing`, `tabling`: how a chart or a table leaves a notebook
- `palette`, `grouping`, `evidence`: colours, order, and the query behind a figure
"""
