"""The tags of a dialect as tokens of their own, such as `<Analyze>` of DeepAnalyze.

A tag is then one id that nothing else shares, in place of the three to six that spell it. Rows must
be made with the same tokens: `python -m training.train rows --tokens deepanalyze …`.

The tokenizer of many models has fewer tokens than the model has rows in its embedding, since rows
are padded to a round number. New tokens take those rows first. The embedding only ever grows.
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
    """Which tokens are added to the model's own."""

    dialect: str
    """Whose tags become tokens: `deepanalyze`."""

    def __post_init__(self) -> None:
        if self.dialect not in _TOKENS:
            known = ", ".join(_TOKENS)
            raise TrainerError(f"the dialect {self.dialect!r} has no tokens; those with: {known}")


def add_dialect_tokens(tokenizer: Any, settings: TokenSettings) -> dict[int, tuple[int, ...]]:
    """Add the tokens to a tokenizer, where it lacks them.

    They are no special tokens: a server leaves those out of its text, and the dialect reads text.

    Returns:
        Each token's id, with the ids that spelt it before; none for one that was there already.
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
    """Give new tokens rows in the model: each the mean of the rows that spelt it before.

    Args:
        model: of transformers, without an adapter.
        added: what `add_dialect_tokens` returned.
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
