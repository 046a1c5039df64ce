"""Writes a run into the notebook's file while no tab holds the notebook."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import nbformat
from jupyter_core.utils import ensure_async
from nbformat.corpus.words import generate_corpus_id
from tornado.web import HTTPError

from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.protocol import Operated
from dm_jupyter.server.protocol.operations import apply

__all__ = ["write_file"]

_log = logging.getLogger(__name__)


async def write_file(contents: Any, notebook_path: str, journals: Iterable[Journal]) -> bool:
    """Applies what the file does not hold yet, in one read and one write; returns whether it did.

    A notebook that was moved or deleted is left alone: the journal keeps everything until a tab
    opens it again.

    Args:
        contents: the server's contents manager.
        notebook_path: as the contents API names it.
        journals: of the notebook's runs, oldest first.
    """
    behind = [(journal, journal.last) for journal in journals if journal.in_file < journal.last]
    if not behind:
        return False
    try:
        model = await ensure_async(contents.get(notebook_path, content=True, type="notebook"))
        document = _with_ids(model["content"])
        for journal, _ in behind:
            for message in journal.messages(after=journal.applied_for_sure()):
                if isinstance(message, Operated):
                    apply(message.operation, document)
        nbformat.validate(document)
        saved = {"type": "notebook", "format": "json", "content": document}
        await ensure_async(contents.save(saved, notebook_path))
    except (HTTPError, OSError, nbformat.ValidationError) as error:
        _log.warning("%s can't be written now: %s", notebook_path, error)
        return False
    for journal, last in behind:
        journal.mark_in_file(last)
    return True


def _with_ids(document: Any) -> Any:
    """The document in the first format in which every cell has an id."""
    if (document["nbformat"], document["nbformat_minor"]) < (4, 5):
        document["nbformat_minor"] = 5
    for cell in document["cells"]:
        cell.setdefault("id", generate_corpus_id())
    return document
