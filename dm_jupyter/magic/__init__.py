"""`%%analyze` in a notebook: `%load_ext dm_jupyter`, then a file and a question.

- `extension.py`: load and unload, and the `await` before a call; `arguments.py`: the options
- `handoff.py`: asks the server or page of the notebook to write the analysis into new cells
- `inline.py`: otherwise runs it here, as outputs of one cell, whose value is the answer
- `show.py`: events as display bundles, and those outputs as they grow
- `harmless.py`: outputs made safe for a trusted page
"""
