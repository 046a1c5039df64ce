"""`%%analyze` in a notebook: `%load_ext dm_jupyter`, then a file and a question.

- `extension.py`: load and unload, and how a cell becomes an `await`; `arguments.py`: the line
- `handoff.py`: asks whoever shows the notebook to write the analysis into cells of its own
- `inline.py`: else runs it here, as outputs of one cell; `pane.py`: those outputs, as they grow
- `show.py`: events as display bundles; `harmless.py`: what a trusted page may be shown
- `answer.py`: the value of the cell
"""
