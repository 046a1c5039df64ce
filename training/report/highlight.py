"""Code with its keywords, strings, numbers and comments marked, in little markup."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer, SqlLexer  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

from training.report.words import plain

__all__ = ["highlight"]

_MAX_CHARS = 20_000
"""Longer code is shown without marks: an adversary could choose what a lexer is slow on."""

_LEXERS: dict[str, Lexer] = {
    "python": PythonLexer(stripnl=False, ensurenl=False),
    "sql": SqlLexer(stripnl=False, ensurenl=False),
}
_MARKS = (
    (Token.Comment, "c"),
    (Token.String, "s"),
    (Token.Number, "n"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Decorator, "f"),
)


def highlight(source: str, language: str) -> Markup:
    """Returns code as markup; what is in no known language, or very long, without marks."""
    lexer = _LEXERS.get(language)
    if lexer is None or len(source) > _MAX_CHARS:
        return escape(plain(source))
    return Markup("").join(
        Markup('<i class="{}">{}</i>').format(mark, text) if mark else escape(text)
        for mark, text in _pieces(lexer, plain(source))
    )


def _pieces(lexer: Lexer, source: str) -> Iterator[tuple[str, str]]:
    """Stretches of code with the same mark."""
    marked = ((_mark(kind), text) for kind, text in lexer.get_tokens(source))
    for mark, stretch in groupby(marked, key=lambda piece: piece[0]):
        yield mark, "".join(text for _, text in stretch)


def _mark(kind: object) -> str:
    return next((mark for token, mark in _MARKS if kind in token), "")
