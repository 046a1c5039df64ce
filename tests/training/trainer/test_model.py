"""Models that are opened to be trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from dm_jupyter.models.local.catalogue import name_with_adapter
from tests.dm_jupyter.models.local.gguf_files import (
    ALPHA,
    adapter_tensors,
    merged,
    model_tensors,
    write_adapter_file,
    write_model,
)
from tests.training.trainer.tiny import save_tiny, tiny_model
from training.trainer import model as opening
from training.trainer.dialect_tokens import TokenSettings
from training.trainer.model import (
    AdapterSettings,
    ModelSettings,
    given_adapter,
    open_model,
    open_tokenizer,
)
from training.trainer.rows import TrainerError

CPU = torch.device("cpu")


def test_an_adapter_learns_in_float32_on_a_model_that_stays(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m")
    opened = open_model(ModelSettings(str(tmp_path / "m"), "bfloat16"), AdapterSettings(4, 8), CPU)
    weights = opened.parameters()
    assert len(weights) == 2 * 7 * 2  # layers, linear maps, A and B: the head has none
    assert {one.dtype for one in weights.values()} == {torch.float32}
    assert opened.model.get_input_embeddings().weight.dtype == torch.bfloat16
    assert opened.vocabulary == 258  # the embedding has 512 rows
    assert opened.can_pack


def test_an_adapter_on_bfloat16_learns_as_on_float32(tmp_path: Path) -> None:
    from tests.training.trainer.test_losses import gradients, loss_of
    from tests.training.trainer.tiny import random_rows
    from training.trainer.batch import make_packs

    save_tiny(tmp_path / "m")
    rows = random_rows((40, 30), shared=20)
    found = []
    for dtype in ("float32", "bfloat16"):
        model = open_model(
            ModelSettings(str(tmp_path / "m"), dtype), AdapterSettings(4, 8), CPU, seed=1
        ).model
        found.append(gradients(model, loss_of(model, rows, make_packs(rows, 1000))))
    exact, rounded = found
    assert exact.keys() == rounded.keys()
    flat = [torch.cat([one.float().flatten() for one in found.values()]) for found in found]
    assert torch.nn.functional.cosine_similarity(flat[0], flat[1], dim=0) > 0.99
    assert {one.dtype for one in rounded.values()} == {torch.float32}


def _short_and_wide(folder: Path) -> None:
    """Save a model in bfloat16 as `short`, and in float32 with the same numbers as `wide`."""
    model = tiny_model("qwen2", torch.bfloat16)
    model.save_pretrained(folder / "short")
    model.float().save_pretrained(folder / "wide")
    save_tiny(folder / "m")
    for name in ("short", "wide"):
        for file in (folder / "m").glob("tokenizer*"):
            shutil.copy(file, folder / name)


@pytest.mark.parametrize("tokens", [None, TokenSettings("deepanalyze")])
def test_a_frozen_matrix_keeps_its_numbers_and_computes_in_float32(
    tmp_path: Path, tokens: TokenSettings | None
) -> None:
    from tests.training.trainer.test_losses import gradients, loss_of
    from tests.training.trainer.tiny import random_rows
    from training.trainer.batch import make_packs

    _short_and_wide(tmp_path)
    rows = random_rows((40, 30), shared=20)
    found = {}
    learning: dict[str, torch.Tensor] = {}
    for name in ("short", "wide"):
        settings = ModelSettings(str(tmp_path / name), "float32")
        opened = open_model(settings, AdapterSettings(4, 8), CPU, tokens=tokens)
        model, seed = opened.model, torch.Generator().manual_seed(1)
        for place, one in opened.parameters().items():
            one.data = learning.setdefault(place, torch.randn(one.shape, generator=seed) / 10)
        loss = loss_of(model, rows, make_packs(rows, 1000))
        kinds = {one.dtype for one in model.parameters() if not one.requires_grad}
        assert (torch.bfloat16 in kinds) == (name == "short")
        found[name] = loss, gradients(model, loss)
    (short, sloped), (wide, exact) = found["short"], found["wide"]
    assert short.item() == pytest.approx(wide.item(), abs=1e-6)
    assert sloped.keys() == exact.keys()
    for one, slope in exact.items():
        torch.testing.assert_close(sloped[one], slope, rtol=1e-5, atol=1e-7)


def test_a_sampled_token_widens_no_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row reads a matrix once: to widen it first takes ten times as long."""
    _short_and_wide(tmp_path)
    widened = Mock(wraps=opening._Product.apply)
    monkeypatch.setattr(opening._Product, "apply", widened)
    found = {}
    for name in ("short", "wide"):
        settings = ModelSettings(str(tmp_path / name), "float32")
        model = open_model(settings, AdapterSettings(4, 8), CPU).model.eval()
        with torch.no_grad():
            before = model(input_ids=torch.tensor([[1, 70, 71]]))
            in_prompt = widened.call_count
            after = model(input_ids=torch.tensor([[72]]), past_key_values=before.past_key_values)
        assert widened.call_count == in_prompt
        found[name] = after.logits
    assert widened.called
    torch.testing.assert_close(found["short"], found["wide"], rtol=0, atol=0.02)


def test_a_processor_without_bfloat16_computes_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda, settings = torch.device("cuda"), ModelSettings("m")
    for is_known, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda known=is_known: known)
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda known=is_known, **_: known)
        assert settings.numbers(CPU) == settings.numbers(cuda) == dtype
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert settings.numbers(CPU) == torch.float32
    assert ModelSettings("m", "bfloat16").numbers(CPU) == torch.bfloat16


def test_the_same_seed_makes_the_same_adapter_and_moves_no_other_chance(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m")
    settings = ModelSettings(str(tmp_path / "m"), "float32")
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = open_model(settings, AdapterSettings(4, 8), CPU, seed=1).parameters()
    again = open_model(settings, AdapterSettings(4, 8), CPU, seed=1).parameters()
    other = open_model(settings, AdapterSettings(4, 8), CPU, seed=2).parameters()
    assert all(torch.equal(one, again[name]) for name, one in first.items())
    assert any(not torch.equal(one, other[name]) for name, one in first.items())
    assert torch.equal(torch.get_rng_state(), state)


def test_without_an_adapter_all_weights_learn(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m")
    opened = open_model(ModelSettings(str(tmp_path / "m"), "float32"), None, CPU)
    assert len(opened.parameters()) == len(list(tiny_model().parameters()))


def test_all_weights_learn_in_float32_where_the_model_computes_in_bfloat16(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m", dtype=torch.bfloat16)
    settings = ModelSettings(str(tmp_path / "m"), "bfloat16")
    opened = open_model(settings, None, CPU)
    assert {one.dtype for one in opened.parameters().values()} == {torch.float32}
    assert opened.computes_in == torch.bfloat16
    asked = open_model(settings, None, CPU, learns=False)
    assert {one.dtype for one in asked.parameters().values()} == {torch.bfloat16}
    assert asked.computes_in is None


@pytest.mark.parametrize(("window", "can_pack"), [(None, True), (16, False)])
def test_rows_share_no_pass_where_a_layer_sees_a_window(
    window: int | None, can_pack: bool, tmp_path: Path
) -> None:
    save_tiny(tmp_path / "m", "mistral")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "sliding_window": window}))
    assert open_model(ModelSettings(str(tmp_path / "m")), None, CPU).can_pack == can_pack


def test_recomputed_activations_give_the_same_gradients(tmp_path: Path) -> None:
    from tests.training.trainer.test_losses import furthest, gradients, loss_of
    from tests.training.trainer.tiny import random_rows
    from training.trainer.batch import make_packs

    save_tiny(tmp_path / "m")
    rows = random_rows((40, 30), shared=20)
    found = []
    for recompute in (False, True):
        settings = ModelSettings(str(tmp_path / "m"), "float32", recompute=recompute)
        model = open_model(settings, AdapterSettings(4, 8), CPU).model
        found.append(gradients(model, loss_of(model, rows, make_packs(rows, 1000))))
    assert furthest(*found) < 1e-6


@pytest.mark.parametrize("base", ["nowhere", "/no/such/folder", "none.gguf"])
def test_a_model_that_is_not_there_is_named(base: str) -> None:
    with pytest.raises(TrainerError, match=base):
        open_model(ModelSettings(base), None, CPU)
    with pytest.raises(TrainerError, match=base):
        open_tokenizer(base)


def test_a_training_begins_with_the_adapter_of_its_base(tmp_path: Path) -> None:
    tensors = model_tensors(), adapter_tensors()
    base = write_model(tmp_path / "base.gguf", tensors[0])
    adapter = write_adapter_file(tmp_path / "a.gguf", tensors[1])
    both = write_model(tmp_path / "both.gguf", merged(*tensors))
    name = name_with_adapter(str(base), adapter)

    def logits(one: str, settings: AdapterSettings | None) -> torch.Tensor:
        model = open_model(ModelSettings(one, "float32"), settings, CPU).model
        with torch.no_grad():
            return torch.as_tensor(model(input_ids=torch.tensor([[1, 70, 71, 72, 90]])).logits)

    settings = AdapterSettings(4, ALPHA)
    begun = logits(name, settings)
    rounding = (begun - logits(str(both), None)).abs().max()  # all weights are in bfloat16
    assert rounding < 0.1
    assert (begun - logits(str(base), settings)).abs().max() > 10 * rounding
    assert len(open_tokenizer(name)) == len(open_tokenizer(str(base)))

    with pytest.raises(TrainerError, match=r"a\.gguf is an adapter of rank 4 and alpha 8 "):
        logits(name, AdapterSettings(8, ALPHA))
    with pytest.raises(TrainerError, match=r"\[adapter\] must have the same rank and alpha"):
        logits(name, AdapterSettings(4, 16))
    with pytest.raises(TrainerError, match=r"add the table \[adapter\]"):
        logits(name, None)
    assert given_adapter(name) == settings
    tenth = write_adapter_file(tmp_path / "t.gguf", tensors[1], {"adapter.lora.alpha": 0.1})
    logits(name_with_adapter(str(base), tenth), AdapterSettings(4, 0.1))  # the file has float32
    assert given_adapter(str(base)) is None

    llama = write_adapter_file(tmp_path / "q.gguf", tensors[1], {"general.architecture": "qwen2"})
    with pytest.raises(TrainerError, match=r"q\.gguf is an adapter of a qwen2 model, and this one"):
        logits(name_with_adapter(str(base), llama), settings)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=str(tmp_path)):
        open_model(ModelSettings(str(tmp_path)), None, CPU)
