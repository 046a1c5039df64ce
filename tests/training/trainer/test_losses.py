"""Losses and packs against a slow reference: rows alone, a loop over tokens, all logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.trainer.tiny import adapted, random_rows, tiny_model
from training.trainer.batch import Pack, make_packs, pack_rows
from training.trainer.losses import SftLoss, learned_logps, pack_loss, refuse_changed_logits
from training.trainer.rows import Row, TrainerError

LENGTHS = (5, 40, 3, 70, 22, 9, 31)


def row(ids: Sequence[int], mask: Sequence[int], name: str = "r") -> Row:
    return Row(name, np.array(ids), np.array(mask, dtype=bool))


def reference_loss(model: Any, rows: Sequence[Row]) -> torch.Tensor:
    """Eq. 4 as it is written, one token at a time."""
    total = torch.zeros((), dtype=torch.float64)
    for one in rows:
        logits = model(torch.from_numpy(one.ids)[None]).logits[0].double()
        of_row, learned = torch.zeros((), dtype=torch.float64), 0
        for at in range(1, len(one.ids)):
            if one.mask[at]:
                probabilities = torch.softmax(logits[at - 1], dim=0)
                of_row = of_row - torch.log(probabilities[int(one.ids[at])])
                learned += 1
        total = total + one.weight * of_row / learned
    return total / sum(one.weight for one in rows)


def loss_of(model: Any, rows: Sequence[Row], packs: Sequence[Pack]) -> torch.Tensor:
    factors = SftLoss().factors(rows)
    shares = [pack_loss(SftLoss(), learned_logps(model, one), one, factors) for one in packs]
    return torch.stack(shares).sum()


def value(loss: torch.Tensor) -> float:
    return float(loss.detach())


def gradients(model: Any, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: one.grad.clone() for name, one in model.named_parameters() if one.requires_grad}


def furthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    assert max(float(grad.abs().max()) for grad in one.values()) > 1e-3
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def logp_pack(logps: Sequence[Sequence[float]]) -> tuple[list[Row], Pack, torch.Tensor]:
    """Rows with these log-probabilities at their learned tokens."""
    rows = [
        row([number, *range(len(one))], [0, *[1] * len(one)], f"r{number}")
        for number, one in enumerate(logps)
    ]
    flat = [value for one in logps for value in one]
    return rows, pack_rows(rows), torch.tensor(flat, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_the_loss_is_that_of_the_slow_reference(
    kind: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = tiny_model(kind, dtype)
    rows = random_rows(LENGTHS, shared=24, weights=[1, 2, 1, 0.5, 1, 3, 1])
    expected = value(reference_loss(model, rows))
    for share in (True, False):
        for pack_tokens in (1, 64, 1000):
            packs = make_packs(rows, pack_tokens, share=share)
            loss = value(loss_of(model, rows, packs))
            assert loss == pytest.approx(expected, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("shared", [0, 24])
def test_gradients_do_not_depend_on_the_split_or_on_shared_prefixes(kind: str, shared: int) -> None:
    """Detail 1, for SFT: one normaliser for the batch, for micro-batches of 1, 2, 3 and 7 rows."""
    model = adapted(tiny_model(kind)).model
    rows = random_rows(LENGTHS, shared=shared)
    expected = gradients(model, reference_loss(model, rows))
    splits = [
        *[make_packs(rows, size, share=share) for size in (1, 90, 1000) for share in (True, False)],
        *[[pack_rows(rows[at : at + size]) for at in range(0, 7, size)] for size in (1, 2, 3, 7)],
    ]
    for packs in splits:
        assert furthest(gradients(model, loss_of(model, rows, packs)), expected) < 1e-12


def test_full_training_has_the_gradients_of_the_reference_too() -> None:
    model = tiny_model()
    rows = random_rows(LENGTHS, shared=24)
    expected = gradients(model, reference_loss(model, rows))
    found = gradients(model, loss_of(model, rows, make_packs(rows, 1000)))
    assert furthest(found, expected) < 1e-12


def test_a_shared_prefix_is_forwarded_once() -> None:
    rows = random_rows((10, 10, 10), shared=100)
    (together,) = make_packs(rows, 1000)
    (apart,) = make_packs(rows, 1000, share=False)
    assert (together.tokens, apart.tokens) == (130, 330)
    assert [one.tokens for one in make_packs(rows, 125)] == [120, 110]


def test_rows_that_share_learned_tokens_learn_them_as_often_as_apart() -> None:
    """Two runs that begin with the same turn: the shared places are targets of both."""
    model = adapted(tiny_model()).model
    first = random_rows((40,))[0]
    longer = Row("longer", np.append(first.ids, [7, 8]), np.append(first.mask, [True, True]))
    rows = [first, longer]
    expected = gradients(model, reference_loss(model, rows))
    pack = pack_rows(rows)
    assert pack.tokens == 42
    assert furthest(gradients(model, loss_of(model, rows, [pack])), expected) < 1e-12


def test_a_row_in_a_pack_sees_nothing_of_its_neighbours() -> None:
    model = tiny_model()
    one, other, changed = random_rows((30, 30, 30))
    with torch.no_grad():
        before = learned_logps(model, pack_rows([one, other]))
        after = learned_logps(model, pack_rows([one, changed]))
        alone = learned_logps(model, pack_rows([one]))
    first_of_pack = pack_rows([one, other]).rows[0] is one
    part = slice(0, len(alone)) if first_of_pack else slice(-len(alone), None)
    where = (
        slice(0, len(alone))
        if pack_rows([one, changed]).rows[0] is one
        else slice(-len(alone), None)
    )
    torch.testing.assert_close(before[part], alone, rtol=0, atol=1e-13)
    torch.testing.assert_close(after[where], alone, rtol=0, atol=1e-13)


def test_logits_made_some_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    rows = random_rows(LENGTHS)
    packs = make_packs(rows, 1000)
    whole = gradients(model, loss_of(model, rows, packs))
    monkeypatch.setattr("training.trainer.losses.HEAD_TOKENS", 3)
    assert furthest(gradients(model, loss_of(model, rows, packs)), whole) < 1e-13


# The table of details, each with its number.


def test_sft_weighs_rows_and_not_tokens() -> None:
    """1/|y| for each row, then the mean of the rows (detail 8)."""
    rows, pack, logp = logp_pack([[-1.0], [-2.0, -3.0, -4.0]])
    assert float(pack_loss(SftLoss(), logp, pack, SftLoss().factors(rows))) == pytest.approx(2.0)


def test_rows_of_10_and_of_1000_tokens_weigh_equally() -> None:
    """Detail 8: a change of one unit in each token of either row moves the loss by a half."""
    rows, pack, logp = logp_pack([[-1.0] * 10, [-3.0] * 1000])
    factors = SftLoss().factors(rows)
    assert float(pack_loss(SftLoss(), logp, pack, factors)) == pytest.approx(2.0)
    assert factors["r0"] * 10 == pytest.approx(factors["r1"] * 1000) == pytest.approx(0.5)


def test_a_row_that_comes_several_times_counts_once() -> None:
    """Detail 8: once, and not once for each rollout of its question."""
    rows, _, _ = logp_pack([[-1.0], [-3.0]])
    model = tiny_model()
    once = loss_of(model, rows, make_packs(rows, 1))
    copies = [rows[0], rows[1], rows[0], rows[0]]
    assert value(loss_of(model, copies, make_packs(copies, 1))) == pytest.approx(
        value(once), abs=1e-12
    )


def test_two_rows_of_weight_3_and_1() -> None:
    """(3 · 1 + 1 · 3) / 4."""
    rows = [row([0, 1], [0, 1], "a"), row([1, 1], [0, 1], "b")]
    rows[0] = Row("a", rows[0].ids, rows[0].mask, 3.0)
    logp = torch.tensor([-1.0, -3.0])
    loss = pack_loss(SftLoss(), logp, pack_rows(rows), SftLoss().factors(rows))
    assert value(loss) == pytest.approx(1.5)


def test_environment_tokens_get_no_gradient_at_all() -> None:
    """Detail 9: the states that predict environment tokens have a gradient of 0, bit for bit."""
    model = tiny_model()
    one = random_rows((60,))[0]
    seen: list[torch.Tensor] = []
    model.model.norm.register_forward_hook(
        lambda module, inputs, output: (output.retain_grad(), seen.append(output))[1]
    )
    loss_of(model, [one], [pack_rows([one])]).backward()
    assert seen[0].grad is not None
    by_position = seen[0].grad[0].abs().sum(dim=1)
    assert torch.nonzero(by_position)[:, 0].tolist() == (one.learned - 1).tolist()


def test_what_predicts_the_environment_may_change_without_a_change_of_the_gradient() -> None:
    """Detail 9: other states at the environment's places, the same gradient of the head."""
    model = tiny_model()
    one = random_rows((60,))[0]
    environment = np.setdiff1d(np.arange(60), one.learned - 1)
    weight = model.lm_head.weight

    def head_gradient(scale: float) -> torch.Tensor:
        def change(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            factor = torch.ones(60, 1, dtype=output.dtype)
            factor[environment] = scale
            return output * factor

        hook = model.model.norm.register_forward_hook(change)
        weight.grad = None
        loss_of(model, [one], [pack_rows([one])]).backward()
        hook.remove()
        assert weight.grad is not None
        return weight.grad

    assert torch.equal(head_gradient(1.0), head_gradient(7.0))


def published_mask_loss(model: Any, one: Row) -> torch.Tensor:
    """DataMind's released rule: the mask without its last place, on labels without their first."""
    logits = model(torch.from_numpy(one.ids)[None]).logits[0, :-1]
    logp = torch.log_softmax(logits, dim=1).gather(1, torch.from_numpy(one.ids[1:, None]))[:, 0]
    mask = torch.from_numpy(one.mask[:-1])
    return -(logp * mask).sum() / mask.sum()


def test_the_published_mask_error_would_be_seen() -> None:
    """Detail 9: shifted by one, the first token of a turn isn't learned, and one behind it is."""
    model = tiny_model()
    ids, mask = list(range(10, 30)), [0] * 20
    mask[5:9] = [1] * 4
    one = row(ids, mask)
    assert pack_rows([one]).target_T.tolist() == [15, 16, 17, 18]
    ours = loss_of(model, [one], [pack_rows([one])])
    assert value(ours) == pytest.approx(value(reference_loss(model, [one])), abs=1e-12)
    assert abs(value(published_mask_loss(model, one)) - value(ours)) > 1e-3
    logits = model(torch.from_numpy(one.ids)[None]).logits[0]
    by_hand = -sum(
        value(torch.log_softmax(logits[at - 1], 0)[ids[at]]) for at in (5, 6, 7, 8)
    ) / 4  # fmt: skip
    assert value(ours) == pytest.approx(by_hand, abs=1e-12)


def test_an_even_model_has_the_loss_log_v() -> None:
    """All logits equal: log 512 = 6.2383 for each row, whatever is packed."""
    model = tiny_model()
    torch.nn.init.zeros_(model.lm_head.weight)
    rows = random_rows(LENGTHS)
    loss = loss_of(model, rows, make_packs(rows, 64))
    assert value(loss) == pytest.approx(math.log(512), abs=1e-12)


def test_a_model_that_scales_its_logits_is_refused() -> None:
    refuse_changed_logits(tiny_model("mistral", torch.float32))
    refuse_changed_logits(adapted(tiny_model("qwen2", torch.bfloat16)).model)
    with pytest.raises(TrainerError, match="CohereForCausalLM changes the logits after its head"):
        refuse_changed_logits(tiny_model("cohere", torch.float32))


def test_bfloat16_sums_its_logits_in_float32() -> None:
    model = tiny_model(dtype=torch.bfloat16)
    one = random_rows((60,))[0]
    logp = learned_logps(model, pack_rows([one]))
    assert logp.dtype == torch.float32
    assert value(-logp.mean()) == pytest.approx(
        value(reference_loss(model.float(), [one])), rel=0.05
    )
