"""More than one try at a task: votes, and a tree search guided by values. Both only call `step`.

- `candidates.py`: runs that ended, and how one of them is chosen
- `strategies.py`: a single try, N tries and a vote, a tree
- `puct.py`: the bookkeeping of a tree; `tree.py`: the search over it
- `drawing.py`: several turns from one reading of the conversation
"""
