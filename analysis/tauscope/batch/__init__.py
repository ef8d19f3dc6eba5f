"""Reports in batch: notebooks through papermill into pages that stand by themselves.

- `params`: which notebooks, with what, checked before anything runs
- `kernels`: running them, several at a time, whatever they do
- `inputs`: what a page was made from, and whether that changed
- `render`, `export`, `index`: the page, the files beside it, the page of pages
- `report`: the whole, in a dated folder
"""
