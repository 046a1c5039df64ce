"""Tags of a dialect as single tokens, such as `<Analyze>` of DeepAnalyze.

A tag is then one unique id instead of the three to six that spell it. Rows must be created with the
same tokens: `python -m training.train rows --tokens deepanalyze …`.

Many tokenizers have fewer tokens than the model's embedding has rows, because the rows are padded
to a round number. New tokens take those rows first. The embedding never shrinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from tokenizers import AddedToken

from dm_jupyter.core.dialects.deepanalyze import DEEPANALYZE_TOKENS
from training.trainer.rows import TrainerError

__all__ = ["TokenSettings", "add_dialect_tokens", "embed_new_tokens"]

_TOKENS: Final[Mapping[str, tuple[str, ...]]] = {"deepanalyze": DEEPANALYZE_TOKENS}


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Tokens to add to the model's own."""

    dialect: str
    """Dialect whose tags become tokens: `deepanalyze`."""

    def __post_init__(self) -> None:
        if self.dialect not in _TOKENS:
            known = ", ".join(_TOKENS)
            raise TrainerError(f"the dialect {self.dialect!r} has no tokens; those with: {known}")


def add_dialect_tokens(tokenizer: Any, settings: TokenSettings) -> dict[int, tuple[int, ...]]:
    """Add the tokens that a tokenizer lacks.

    They are not special tokens: a server omits those from its text, and the dialect reads text.

    Returns:
        Each token's id, with the ids that spelt it before; empty for a token that already existed.
    """
    tokens = _TOKENS[settings.dialect]
    known = tokenizer.get_vocab()
    spelt = {
        token: () if token in known else tuple(tokenizer.encode(token, add_special_tokens=False))
        for token in tokens
    }
    tokenizer.add_tokens([AddedToken(one, normalized=False) for one in tokens if spelt[one]])
    return {int(tokenizer.convert_tokens_to_ids(token)): spelt[token] for token in tokens}


def embed_new_tokens(model: Any, added: Mapping[int, Sequence[int]]) -> None:
    """Set the embedding of each new token to the mean of the rows that spelt it before.

    Args:
        model: of transformers, without an adapter.
        added: the result of `add_dialect_tokens`.
    """
    rows = model.get_input_embeddings().weight.shape[0]
    if max(added) >= rows:
        model.resize_token_embeddings(max(added) + 1, mean_resizing=False)
    tables = {id(one.weight): one.weight for one in (
        model.get_input_embeddings(), model.get_output_embeddings(),
    )}  # fmt: skip
    with torch.no_grad():
        for weight_V_D in tables.values():
            for one, spelt in added.items():
                if spelt:
                    weight_V_D[one] = weight_V_D[list(spelt)].float().mean(dim=0)
