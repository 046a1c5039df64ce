"""Whether each number of an answer follows from what the cells have shown, and from which cell.

- `numbers.py`: the numbers of a text; `words.py`: the words around them, so that they compare
- `tables.py`: tables in plain text; `outputs.py`: what a cell showed, as labelled values
- `statements.py`: what an answer says of each of its numbers
- `sizes.py`: whether a value is the stated number, rounded or in another unit
- `derived.py`: differences, ratios, shares and counts, recomputed from values
- `binding.py`: the verdict on each number
"""

from dm_jupyter.assist.grounding.binding import ground, unsupported_numbers
from dm_jupyter.assist.grounding.numbers import stated_numbers

__all__ = ["ground", "stated_numbers", "unsupported_numbers"]
