"""Faults of a judge. None of them is a verdict: what a judge could not mark stays unmarked.

DmJupyterError
└── JudgeError               a question to the judge has no usable answer
    └── JudgeUnreachableError    no question can be asked, or no reply kept, now

UnusableReplyError is no fault of the run: it tells the asking side what is wrong with a reply, so
that the model can be asked once more.
"""

from __future__ import annotations

from dm_jupyter.core.errors import DmJupyterError

__all__ = ["JudgeError", "JudgeUnreachableError", "UnusableReplyError"]


class JudgeError(DmJupyterError):
    """The judge could not be asked, or its words are no verdict; the answer stays unscored."""


class JudgeUnreachableError(JudgeError):
    """Nothing answers, the key or the model's name is wrong, or the disk for replies is full."""


class UnusableReplyError(ValueError):
    """A reply that does not keep to the form; the message says where, in words for the model."""
