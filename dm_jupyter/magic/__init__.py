"""`%%analyze` in a notebook: `%load_ext dm_jupyter`, then a file and a question.

- `extension.py`: load and unload, and how a cell becomes an `await`; `arguments.py`: the line
- `handoff.py`: asks whoever shows the notebook to write the analysis into cells of its own
- `inline.py`: else runs it here, as outputs of one cell, whose value is the answer
- `show.py`: events as display bundles, and those outputs as they grow
- `harmless.py`: what a trusted page may be shown
"""
