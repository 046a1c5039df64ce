"""More than one try at a task: votes, and a tree search guided by values. Both only call `step`.

- `strategies.py`: a single try, N tries with a vote, and what a strategy returns
- `tree.py`: the search and its settings; `puct.py`: the bookkeeping of its tree; `states.py`: what
  the nodes stand for, and how they are kept
- `presampled.py`: several turns from one reading of the conversation
- `best_of_n.py`: tries in fresh kernels before the run that a person sees
"""
