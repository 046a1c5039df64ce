"""Formatting of a free answer for people: numbers with meaningful digits, and proper lists.

The trajectory keeps what the model stated, and scores and checks read that. Covered: decimals too
long to mean anything, and lists that Markdown would not render as lists. Left unchanged: integers,
dates, versions, quoted values, code, links, formulas, coordinates, closed-form answers, numbers
that outputs do not support, and two numbers that would become equal.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from dm_jupyter.core.grounded import AnswerNumber
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["Readable", "readable", "shown_answer", "shown_numbers"]

_MOST_CHARS = 12_000
"""Limit above which an answer is shown unchanged."""
_MOST_PASSES = 5
"""Passes after which a text that still changes is shown as stated."""
_LONGEST = 60
"""Most characters of a number that is rounded."""
_ENOUGH_DECIMALS, _ENOUGH_DIGITS = 4, 3
"""Decimals that are left alone, and the digits that a number below 1 is shown with."""
_CENTS = 2
_MOST_DECIMALS = 6
"""Most decimals shown of a number that would otherwise look like an integer."""
_NOISE_DIGITS = 12
"""Digits that a float represents reliably; the rest is storage noise."""
_TABLE_DIGITS = 7
"""Digits below which a number in a table is left unchanged."""
_LONG_INTEGER = 10
"""Digits before the point from which a number is probably a time stamp."""

_KEPT: Final = re.compile(
    r"""(?xs)
      ^[ \t]*(?P<fence>`{3,8}|~{3,8})[^\n]*\n.*?(?:^[ \t]*(?P=fence)|\Z)
    | (?<!`)(?P<ticks>`{1,8})(?!`)[^\n]{0,400}?(?<!`)(?P=ticks)(?!`)
    | \]\([^()\n]{0,500}\) | <[A-Za-z/!][^<>\n]{0,300}> | \b(?:https?|file|ftp)://\S+ | \bdoi:\S+
    | @[ \t]?\w[\w .%()/\\-]{0,119}\[[^\n]*
    | \$\$.{0,200}?\$\$ | (?<![\\$])\$(?=[^\s\d$])[^$\n]*\$ | \\\(.{0,200}?\\\) | \\\[.{0,200}?\\\]
    | ^(?:\ {4}|\t)[^\n]*
    """,
    re.MULTILINE,
)
"""Everything that is not prose: code, addresses, tags, named values, formulas."""
_NUMBER: Final = re.compile(
    r"(?<![\w.,:/\\#'\"“‘@])(?P<money>[$€£¥]\s?)?(?<![\w.])(?P<sign>[-−+]|(?<![-−+]))"
    r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)\.(?P<part>\d+)(?P<power>[eE][-+]?\d{1,3})?"
    r"(?:(?=(?:[kcm]?m|[km]?g|m?s|k?Wh?|[kMG]?B|[kMx])\b)|(?!\w))"
    r"(?![:/\\'\"”’]|\.\w|,\d|-\d|\s?[°º](?!\s?[CFK]\b))(?P<after>\s?(?:dollars?|euros?|USD|EUR|GBP|CHF)\b)?"
)
_NAMED = re.compile(
    r"(?i)\b(?:version|release|id|no\.?|number|code|isbn|build|section|figure|fig\.?|table|step|v)\s*$"
)
_PLACE = re.compile(r"(?i)\b(?:lat(?:itude)?|lon(?:g(?:itude)?)?|lng|coordinates?|gps)\b")
_ROW = re.compile(r"^\s*\|.*\|\s*$|^[^|\n]+\|[^|\n]+\|")
_ALIGNED = re.compile(r"\S {2,}\S")
"""A table aligned with spaces, where one digit less would move a column."""

_SIGNS = "•◦▪●‣∙"
"""Signs that begin a list entry and mean nothing else."""
_BULLET = re.compile(rf"^(?P<indent>[ \t]*)(?P<mark>[{_SIGNS}·–—])[ \t\u00a0]+(?=\S)")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S")
_FIRST = re.compile(r"^[ \t]*(?:[-*+]|1[.)])[ \t]+\S")
"""What may begin a list. Another line that starts with a number is the rest of a sentence."""
_DASHED = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>-) (?=\S)")
_NO_TEXT = re.compile(r"^\s*(?:$|#|>|\||<|---|===|\*\*\*|[-*+]\s|\d{1,3}[.)]\s)")
_INTRODUCED = re.compile(
    r"^(?P<indent>)(?![ \t]*(?:[-*+>|]|\d{1,3}[.)])\s)[^\n]*?\S:(?P<space>\s+)"
    r"(?P<mark>[-•◦▪●]) (?=\S)"
)
_MOST_WORDS = 4
"""Limit for an entry of a list that has no other sign of being one."""

_PRECISION = re.compile(
    r"(?i)\bdecimals?\b|\bdigits?\b|\bprecis|\bexact|\bsignificant figures?\b|\bround"
)
"""Words by which a question asks for certain digits."""

_Edit = tuple[int, int, str]
_SURE = Context(prec=_NOISE_DIGITS)


@dataclass(frozen=True, slots=True)
class Readable:
    """A text as it is shown, and the edits that map positions of the stated text to it."""

    text: str
    passes: tuple[tuple[_Edit, ...], ...] = ()
    """Start, end and replacement of each edit, in order, pass by pass; no two overlap."""

    def place(self, at: int) -> int:
        """Return the position in the shown text of a position in the stated text.

        Args:
            at: position in characters.
        """
        for edits in self.passes:
            at = _moved(edits, at)
        return at

    def part(self, start: int, end: int) -> str:
        """Return the shown form of a part of the stated text.

        Args:
            start: start of the part, in characters.
            end: end of the part, exclusive.
        """
        return self.text[self.place(start) : self.place(end)]


def _moved(edits: tuple[_Edit, ...], at: int) -> int:
    count = bisect_right([end for _, end, _ in edits], at)
    moved = at + sum(len(new) - (end - start) for start, end, new in edits[:count])
    if count < len(edits) and edits[count][0] < at:
        start, _, new = edits[count]
        return moved - (at - start) + min(at - start, len(new))
    return moved


def readable(answer: str, keeps: Collection[tuple[int, int]] = ()) -> Readable:
    """Return a free answer formatted for people; formatting it again changes nothing.

    Args:
        answer: the answer as the model stated it.
        keeps: start and end of each part that stays unchanged.
    """
    shown = Readable(answer)
    if len(answer) > _MOST_CHARS:
        return shown
    for _ in range(_MOST_PASSES):  # a list may turn out to contain another one
        kept = [(shown.place(start), shown.place(end)) for start, end in keeps]
        edits = _edits(shown.text, kept)
        if not edits:
            return shown
        shown = Readable(_edited(shown.text, edits), (*shown.passes, edits))
    return Readable(answer)


def _edits(text: str, keeps: list[tuple[int, int]]) -> tuple[_Edit, ...]:
    kept = _Kept([*(found.span() for found in _KEPT.finditer(text)), *keeps])
    return tuple(sorted([*_rounded(text, kept), *_listed(text, kept)]))


def _edited(text: str, edits: tuple[_Edit, ...]) -> str:
    parts, at = list[str](), 0
    for start, end, new in edits:
        parts += (text[at:start], new)
        at = end
    return "".join([*parts, text[at:]])


def shown_answer(trajectory: Trajectory) -> Readable:
    """Return the answer of an ended run, formatted for people.

    If the task asks for a format or for a number of digits, the answer is shown as stated.

    Args:
        trajectory: the run; without an answer, the text is empty.
    """
    answer, task = trajectory.answer or "", trajectory.task
    if task.answer_format.strip() or _PRECISION.search(f"{task.question}\n{task.constraints}"):
        return Readable(answer)
    doubtful = [(one.start, one.end) for one in trajectory.grounding if one.is_doubtful]
    return readable(answer, doubtful)


def shown_numbers(trajectory: Trajectory, cell_ids: Mapping[int, str]) -> tuple[AnswerNumber, ...]:
    """Return the shown numbers of an answer, with their positions and source cells.

    Args:
        trajectory: the run.
        cell_ids: the notebook's cell ids, by the index of the step that ran the cell.
    """
    shown = shown_answer(trajectory)
    return tuple(
        AnswerNumber(
            text,
            shown.place(one.start),
            one.verdict.value,
            None if one.cell is None else cell_ids.get(one.cell),
            one.why,
            full=one.text if text != one.text else "",
        )
        for one in trajectory.grounding
        if (text := shown.part(one.start, one.end).strip())
    )


class _Kept:
    """The parts of an answer that stay unchanged."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        """Join overlapping spans."""
        self._starts, self._ends = list[int](), list[int]()
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def touches(self, start: int, end: int) -> bool:
        """Whether any character of the range is kept."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end


def _rounded(answer: str, kept: _Kept) -> Iterator[_Edit]:
    """Yield the numbers to shorten, but never two different ones to the same text."""
    shorter: list[tuple[int, str, str]] = []
    for begin, line in _lines(answer):
        is_left = bool(_PLACE.search(line) or _ALIGNED.search(line.strip()))
        is_row = bool(_ROW.match(line))
        for one in _NUMBER.finditer(line):
            written, at = _written(one), begin + one.start("sign")
            if len(written) > _LONGEST or kept.touches(at, at + len(written)):
                continue
            new = written if is_left or _is_meant(line, one, is_row) else _shorter(one)
            shorter.append((at, written, new))
    meant: dict[str, set[str]] = {}
    for _, written, new in shorter:
        meant.setdefault(new, set()).add(written)
    for at, written, new in shorter:
        if new != written and len(meant[new]) == 1:
            yield at, at + len(written), new


def _written(number: re.Match[str]) -> str:
    return f"{number['sign']}{number['whole']}.{number['part']}{number['power'] or ''}"


def _is_meant(line: str, number: re.Match[str], is_row: bool) -> bool:
    """Whether all digits may be intended: in a name, a time stamp, or a short table number."""
    whole = number["whole"].replace(",", "")
    digits = len((whole + number["part"]).lstrip("0"))
    if len(whole) >= _LONG_INTEGER or (is_row and digits < _TABLE_DIGITS):
        return True
    return _NAMED.search(line[max(0, number.start() - 20) : number.start()]) is not None


def _shorter(number: re.Match[str]) -> str:
    """Return the number with the digits that a person needs."""
    written = _written(number)
    is_money = bool(number["money"] or number["after"]) and not number["power"]
    for _ in range(3):  # a carry may add a digit
        short = _once_shorter(written, is_money=is_money)
        if short == written:
            break
        written = short
    return written


def _once_shorter(written: str, *, is_money: bool) -> str:
    mantissa, mark, power = [*re.split(r"([eE])", written, maxsplit=1), "", ""][:3]
    sign = mantissa[:1] if mantissa[0] in "-−+" else ""
    size = Decimal(mantissa.removeprefix(sign).replace(",", ""))
    decimals = len(mantissa.partition(".")[2])
    enough = _CENTS if is_money and size >= 1 else _ENOUGH_DECIMALS
    wanted = _CENTS if mark else _wanted(size, decimals, enough)
    if decimals <= max(wanted, enough):
        return written
    shown = f"{size:,.{wanted}f}" if "," in mantissa else f"{size:.{wanted}f}"
    return f"{sign}{shown}{mark}{power}"


def _wanted(size: Decimal, decimals: int, enough: int) -> int:
    """Return how many decimals of a number are shown."""
    sure = -int(_SURE.create_decimal(size).normalize(_SURE).as_tuple().exponent)
    if sure < decimals and sure <= enough and len(size.as_tuple().digits) > _NOISE_DIGITS:
        return max(1, sure)
    wanted = least = _CENTS if size >= 1 else _ENOUGH_DIGITS - 1 - size.adjusted() if size else 1
    while wanted < _MOST_DECIMALS and _looks_whole(size, wanted):
        wanted += 1
    return least if _looks_whole(size, wanted) else wanted


def _looks_whole(size: Decimal, decimals: int) -> bool:
    rounded = round(size, decimals)
    return rounded == rounded.to_integral_value()


def _listed(answer: str, kept: _Kept) -> Iterator[_Edit]:
    """Yield the edits that repair lists: markers, one line an entry, an empty line before."""
    lines = list(_lines(answer))
    is_in_list = False
    for number, (start, line) in enumerate(lines):
        if kept.touches(start, start + 1):  # code
            is_in_list = False
            continue
        bullet = _BULLET.match(line)
        is_item = bool(bullet or _ITEM.match(line))
        begins = bool(bullet or _FIRST.match(line))
        if begins and not is_in_list and number and not _NO_TEXT.match(lines[number - 1][1]):
            yield start, start, "\n"
        if bullet:
            yield start + bullet.start("mark"), start + bullet.end(), "- "
        neighbours = (lines[at][1] for at in (number - 1, number + 1) if 0 <= at < len(lines))
        is_alone = not any(map(_DASHED.match, neighbours))
        yield from _split(start, line, kept, is_alone=is_alone)
        is_in_list = is_item or (is_in_list and bool(line.strip()))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _split(start: int, line: str, kept: _Kept, *, is_alone: bool) -> Iterator[_Edit]:
    """Yield the edits that put each entry of a one-line list on a line of its own."""
    found = _BULLET.match(line) or _DASHED.match(line) or _INTRODUCED.search(line)
    if found is None:
        return
    mark, begin = found["mark"], found.end()
    places = [
        one.span() for one in re.finditer(rf"\s+{re.escape(mark)}[ \u00a0]+(?=\S)", line[begin:])
    ]
    places = [(begin + first, begin + last) for first, last in places]
    if not places or any(kept.touches(start + a, start + b) for a, b in places):
        return
    entries = _between(line, begin, places)
    if mark not in _SIGNS and not _are_entries(entries, is_alone=is_alone):
        return
    indent = found["indent"]
    if found.re is _INTRODUCED:
        yield start + found.start("mark") - len(found["space"]), start + begin, "\n\n- "
    for first, last in places:
        yield start + first, start + last, f"\n{indent}- "


def _between(line: str, begin: int, places: list[tuple[int, int]]) -> list[str]:
    starts = [begin, *(last for _, last in places)]
    ends = [*(first for first, _ in places), len(line)]
    return [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]


def _are_entries(entries: list[str], *, is_alone: bool) -> bool:
    """Whether the parts between dashes are entries, not a name and its description."""
    if all(re.match(r"[^:]{1,60}: \S", entry) for entry in entries):
        return True
    is_short = all(len(entry.split()) <= _MOST_WORDS for entry in entries)
    is_alike = len({entry[:1].isupper() for entry in entries}) == 1
    has_number = any(re.match(r"[-−+$€£]?\d", entry) for entry in entries)
    return is_alone and is_short and is_alike and not has_number
