"""Losses, as sums over learned tokens whose scale is fixed before the batch is split.

A loss that divides by the size of one micro-batch or one process depends on the split. So a `Loss`
first gives each row of the complete batch a factor, and then each token a number. The batch's loss
is the sum of factor times number over all packs of all processes.

SFT is Eq. 4 of DataMind (arXiv 2509.25084): minus the mean log-probability of the agent's tokens in
a row (1/|y|), averaged over rows. Environment tokens do not count. Deviation: rows may have
weights, which makes it a weighted mean. Worked example in `test_sft_weighs_rows_and_not_tokens`:
rows of 1 and 3 tokens with log-probabilities -1 and -2, -3, -4 give (1 + 3) / 2 = 2. A mean over
tokens would give 2.5.

Common trainer bugs here, each with a test: the mask shifted by one against the labels, a mean for
each micro-batch instead of one for the batch, and the same row counted once for each rollout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MethodType
from typing import Any, Protocol

import torch
from torch.utils.checkpoint import checkpoint

from training.trainer.batch import Pack
from training.trainer.rows import Row, TrainerError

__all__ = ["Loss", "SftLoss", "bind_logps", "learned_logps", "pack_loss", "refuse_changed_logits"]

HEAD_TOKENS = 256
"""Learned positions whose logits exist at once; 256 of 151,936 logits in fp32 are 156 MB."""


class Loss(Protocol):
    """Objective that the training minimises."""

    def factors(self, rows: Sequence[Row]) -> dict[str, float]:
        """Return each row's factor by its id.

        The trainer calls it once for each batch, with all its rows, including those that another
        process forwards. A row that teaches nothing has the factor 0.
        """
        ...

    def of_tokens(self, logp_T: torch.Tensor, pack: Pack) -> torch.Tensor:
        """Return a number for each learned token, shape (T,), before its row's factor.

        Called once for each pack. It may read the pack's rows, but must not normalise by the
        pack's contents.

        Args:
            logp_T: the model's log-probabilities of `pack.target_T`, fp32 or fp64.
            pack: the forwarded pack.
        """
        ...


class SftLoss:
    """Mean over rows of each row's mean negative log-probability."""

    def factors(self, rows: Sequence[Row]) -> dict[str, float]:
        """Return weight / (|y| · sum of weights) for each row; copies of a row share its factor."""
        copies = Counter(row.id for row in rows)
        total = sum(row.weight / copies[row.id] for row in rows)
        return {row.id: row.weight / (len(row.learned) * copies[row.id] * total) for row in rows}

    def of_tokens(self, logp_T: torch.Tensor, pack: Pack) -> torch.Tensor:  # noqa: ARG002
        """Return minus the log-probabilities."""
        return -logp_T


def pack_loss(
    loss: Loss, logp_T: torch.Tensor, pack: Pack, factors: Mapping[str, float]
) -> torch.Tensor:
    """Return a pack's share of its batch's loss; the shares of all packs add up to it.

    Args:
        loss: the objective.
        logp_T: of the pack's learned tokens.
        pack: the forwarded pack.
        factors: of `loss`, for the whole batch.
    """
    by_row = torch.tensor(
        [factors[row.id] for row in pack.rows], dtype=logp_T.dtype, device=logp_T.device
    )
    return (by_row[pack.row_T] * loss.of_tokens(logp_T, pack)).sum()


def learned_logps(model: Any, pack: Pack) -> torch.Tensor:
    """Return the log-probabilities of a pack's learned tokens, shape (T,), fp32 (fp64 of fp64).

    Logits are computed only for learned positions, some at a time, and again for the gradient.

    Args:
        model: of transformers, with or without an adapter of peft.
        pack: on the model's device.
    """
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    if hasattr(causal, "learned_logps"):
        made: torch.Tensor = causal.learned_logps(pack)
        return made
    return _causal_logps(causal, pack)


def refuse_changed_logits(model: Any) -> None:
    """Refuse a model that scales or bounds what its head returns, as Gemma 2 and Cohere do.

    `learned_logps` reads the head alone, so such a model would learn from other logits than it
    answers with.

    Args:
        model: of transformers, with or without an adapter of peft; not split. It is left in
            evaluation mode.

    Raises:
        TrainerError: it does so.
    """
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    causal.eval()
    ids_1_N = torch.arange(4, device=causal.get_input_embeddings().weight.device)[None]
    with torch.no_grad():
        hidden_1_N_D = causal.get_decoder()(input_ids=ids_1_N, use_cache=False).last_hidden_state
        own = causal.get_output_embeddings()(hidden_1_N_D).float()
        told = causal(input_ids=ids_1_N, use_cache=False).logits.float()
    if not torch.allclose(own, told, rtol=1e-3, atol=1e-3):
        raise TrainerError(
            f"{type(causal).__name__} changes the logits after its head, which this trainer does "
            "not: its loss would be wrong. Choose a model of another family."
        )


def bind_logps(model: Any) -> str:
    """Make `learned_logps` a method of a model, and return the method's name.

    FSDP gathers split weights around the methods of a model, and around nothing else.
    """
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    causal.learned_logps = MethodType(_causal_logps, causal)
    return "learned_logps"


def _causal_logps(causal: Any, pack: Pack) -> torch.Tensor:
    hidden_1_N_D = causal.get_decoder()(
        input_ids=pack.ids_1_N,
        position_ids=pack.position_1_N,
        attention_mask=pack.attention_mask(),
        use_cache=False,
    ).last_hidden_state
    hidden_T_D = hidden_1_N_D[0, pack.source_T]
    head = causal.get_output_embeddings()
    return torch.cat(
        [
            _head_logps(
                head, hidden_T_D[at : at + HEAD_TOKENS], pack.target_T[at : at + HEAD_TOKENS]
            )
            for at in range(0, len(pack.target_T), HEAD_TOKENS)
        ]
    )


def _head_logps(head: Any, hidden_C_D: torch.Tensor, target_C: torch.Tensor) -> torch.Tensor:
    def logps(hidden: torch.Tensor) -> torch.Tensor:
        logits_C_V = head(hidden)
        if logits_C_V.dtype != torch.float64:
            logits_C_V = logits_C_V.float()
        chosen = logits_C_V.gather(1, target_C[:, None])[:, 0]
        return chosen - logits_C_V.logsumexp(dim=1)

    if not torch.is_grad_enabled():
        return logps(hidden_C_D)
    made: torch.Tensor = checkpoint(logps, hidden_C_D, use_reentrant=False)
    return made
