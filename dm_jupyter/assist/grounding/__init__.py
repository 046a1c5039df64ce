"""Whether each number of an answer follows from the outputs of the cells, and from which cell.

- `numbers.py`: the numbers of a text; `words.py`: the words around them, in a comparable form
- `blocks.py`: values with their labels; `tables.py`, `lines.py`, `outputs.py`: those of outputs
- `names.py`: numbers that are labels; `statements.py`: what an answer says of each other number
- `sizes.py`: whether a value is the stated number, rounded or in another unit
- `rivals.py`, `faults.py`: why a value that fits in size is not the one that is meant
- `spans.py`, `pools.py`: values that belong together; `recomputed.py`: what follows from them
- `derived.py`: which derivations the words allow; `claims.py`: counts, ranks, the question's
  numbers
- `binding.py`: the verdict on each number
"""

from dm_jupyter.assist.grounding.binding import ground, unsupported_numbers
from dm_jupyter.assist.grounding.faults import unshown_values, unused_names
from dm_jupyter.assist.grounding.numbers import stated_numbers

__all__ = ["ground", "stated_numbers", "unshown_values", "unsupported_numbers", "unused_names"]
