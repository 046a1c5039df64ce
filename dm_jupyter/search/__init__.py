"""Several attempts at a task: votes, and a tree search guided by values. Both only call `step`.

- `strategies.py`: a single attempt, N attempts with a vote, and what a strategy returns
- `tree.py`: the search and its settings; `puct.py`: the bookkeeping of its tree; `states.py`: the
  states of its nodes, and how they are recorded
- `presampled.py`: several turns from one reading of the conversation
- `best_of_n.py`: attempts in fresh kernels before the run that a person sees
"""
