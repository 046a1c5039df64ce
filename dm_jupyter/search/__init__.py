"""More than one try at a task: votes, and a tree search guided by values. Both only call `step`.

- `candidates.py`: runs that ended, and how one of them is chosen
- `strategies.py`: a single try, and N tries with a vote; `solution.py`: what a strategy returns
- `puct.py`: the bookkeeping of a tree; `tree.py`: the search, and `settings.py` how far it goes;
  `states.py`: what its nodes stand for; `tree_record.py`: how it is kept
- `drawing.py`: several turns from one reading of the conversation
- `try_harder.py`: tries in fresh kernels before the run that a person sees
"""
