"""Sanitizers for the outputs of a run, so that a page which shows them loads nothing remote."""

from dm_jupyter.core.inert.bare import bare_html
from dm_jupyter.core.inert.bundle import inert_bundle, inert_content, inert_output, is_heavy
from dm_jupyter.core.inert.markdown import inert_markdown
from dm_jupyter.core.inert.markup import inert_html, inert_svg

__all__ = [
    "bare_html",
    "inert_bundle",
    "inert_content",
    "inert_html",
    "inert_markdown",
    "inert_output",
    "inert_svg",
    "is_heavy",
]
