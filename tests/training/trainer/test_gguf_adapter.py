"""Adapters as files of llama.cpp, with a whole model as one that llama.cpp itself runs."""

from __future__ import annotations

import hashlib
import json
import os
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from accelerate import Accelerator

from dm_jupyter.models.local.adapters import own_adapter
from dm_jupyter.models.local.cache import require
from dm_jupyter.models.local.catalogue import find, name_with_adapter
from dm_jupyter.models.local.errors import ModelMissingError
from tests.dm_jupyter.models.local.gguf_files import (
    ALPHA,
    adapter_tensors,
    model_tensors,
    write_adapter_file,
    write_model,
)
from tests.training.trainer.tiny import adapted, random_rows, save_tiny, tiny_model
from training.train import main
from training.trainer.checkpoint import read_weights
from training.trainer.conversations import row_of
from training.trainer.gguf_adapter import load_adapter, read_adapter, write_adapter
from training.trainer.loop import Training
from training.trainer.model import AdapterSettings, ModelSettings, open_model
from training.trainer.recipe import TrainingSettings
from training.trainer.rows import Row, TrainerError, write_rows

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip


def interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows as llama.cpp orders them, one by one: 0, half, 1, half + 1, … of each head."""
    size = len(matrix) // heads
    order = [
        head * size + at + half
        for head in range(heads)
        for at in range(size // 2)
        for half in (0, size // 2)
    ]
    return matrix[order]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("numbers", ["F16", "F32"])
def test_an_adapter_is_read_back_as_it_was_written(kind: str, numbers: str, tmp_path: Path) -> None:
    opened = adapted(tiny_model(kind, torch.float32))
    file = tmp_path / "adapter.gguf"
    weights = opened.parameters()
    write_adapter(weights, opened.model.config, 8.0, file, numbers)
    read = read_adapter(file)
    assert own_adapter(file).size_bytes == file.stat().st_size  # what asks with it takes it, too
    assert (read.architecture, read.alpha) == (kind, 8.0)
    assert len(read.tensors) == len(weights) == 2 * 7 * 2
    for layer in range(2):
        for ours, theirs in NAMES.items():
            for matrix in "AB":
                name = f"base_model.model.model.layers.{layer}.{ours}.lora_{matrix}.default.weight"
                expected = weights[name].detach().numpy()
                if kind == "llama" and matrix == "B" and ours[-6] in "qk":
                    expected = interleaved(expected, 4 if ours[-6] == "q" else 2)
                found = read.tensors[f"blk.{layer}.{theirs}.weight.lora_{matrix.lower()}"]
                np.testing.assert_array_equal(found, expected.astype(found.dtype))
                assert found.dtype == (np.float16 if numbers == "F16" else np.float32)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_training_takes_over_an_adapter_as_it_was_written(kind: str, tmp_path: Path) -> None:
    trained, new = (adapted(tiny_model(kind, torch.float32), seed=seed) for seed in (1, 2))
    file, config = tmp_path / "adapter.gguf", trained.model.config
    write_adapter(trained.parameters(), config, 8.0, file, "F32")
    load_adapter(file, new.parameters(), config, 8.0)
    for name, one in trained.parameters().items():
        torch.testing.assert_close(new.parameters()[name], one, rtol=0, atol=0)
    few = dict(list(new.parameters().items())[4:])
    with pytest.raises(TrainerError, match="has matrices that this model lacks, such as blk"):
        load_adapter(file, few, config, 8.0)


def test_a_weight_that_f16_has_no_number_for_is_refused(tmp_path: Path) -> None:
    opened = adapted(tiny_model(dtype=torch.float32))
    next(iter(opened.parameters().values())).data[0, 0] = 1e5
    with pytest.raises(TrainerError, match="too large for F16"):
        write_adapter(opened.parameters(), opened.model.config, 8.0, tmp_path / "a.gguf")
    write_adapter(opened.parameters(), opened.model.config, 8.0, tmp_path / "a.gguf", "F32")


def test_what_llama_cpp_has_no_adapter_for_is_refused(tmp_path: Path) -> None:
    opened = adapted(tiny_model(dtype=torch.float32))
    file = tmp_path / "a.gguf"
    with pytest.raises(TrainerError, match="'gpt2' models can't be exported"):
        write_adapter(opened.parameters(), transformers.GPT2Config(), 8.0, file)
    with pytest.raises(TrainerError, match="is no part of a LoRA adapter"):
        write_adapter({"model.norm.weight": torch.zeros(2)}, opened.model.config, 8.0, file)
    assert list(tmp_path.iterdir()) == []
    file.write_bytes(b"not a model")
    with pytest.raises(TrainerError, match="is no adapter"):
        read_adapter(file)


def test_the_adapter_of_a_training_is_that_of_its_best_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Detail 25: what is exported is what was trained, by the recipe and the two commands."""
    save_tiny(tmp_path / "model", "qwen2")
    write_rows(random_rows([30] * 8), tmp_path / "rows.jsonl")
    (tmp_path / "recipe.toml").write_text(
        f'[model]\nbase = "{tmp_path / "model"}"\ndtype = "float32"\n'
        f'[adapter]\nrank = 4\nalpha = 8\n[data]\nrows = "{tmp_path / "rows.jsonl"}"\n'
        "[training]\nlearning_rate = 0.01\nepochs = 1\nbatch_rows = 4\nevaluate_every = 1\n"
    )
    out, file = tmp_path / "out", tmp_path / "adapter.gguf"
    assert main(["sft", str(tmp_path / "recipe.toml"), "--out", str(out)]) == 0
    assert main(["export", str(out), "--out", str(file), "--numbers", "F32"]) == 0
    assert "adapter of update 2, " in capsys.readouterr().out
    stored = next((out / "checkpoints" / "step-000002").glob("weights*"))
    opened = open_model(
        ModelSettings(str(tmp_path / "model"), "float32"),
        AdapterSettings(4, 8.0),
        torch.device("cpu"),
    )
    read_weights(stored.parent, opened.parameters())
    tensors = read_adapter(file).tensors
    found = tensors["blk.1.ffn_up.weight.lora_b"]
    (trained,) = (
        one for name, one in opened.parameters().items() if "layers.1.mlp.up_proj.lora_B" in name
    )
    np.testing.assert_array_equal(found, trained.detach().numpy())
    assert np.abs(found).max() > 0
    assert main(["export", str(out), "--out", str(file), "--step", "7"]) == 1
    assert "has no checkpoint of step 7; it has: [1, 2]" in capsys.readouterr().err


def test_an_adapter_that_has_learned_nothing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_tiny(tmp_path / "model", "qwen2")
    rows = [Row(one.id, one.ids % 100, one.mask) for one in random_rows([30] * 8)]
    write_rows(rows[:4], tmp_path / "rows.jsonl")
    other = [Row(one.id, one.ids + 150, one.mask) for one in rows[4:]]  # what no row teaches
    write_rows(other, tmp_path / "held.jsonl")
    (tmp_path / "recipe.toml").write_text(
        f'[model]\nbase = "{tmp_path / "model"}"\ndtype = "float32"\n'
        f'[adapter]\nrank = 4\nalpha = 8\n[data]\nrows = "{tmp_path / "rows.jsonl"}"\n'
        f'held = "{tmp_path / "held.jsonl"}"\n'
        "[training]\nlearning_rate = 0.1\nepochs = 1\nbatch_rows = 4\nevaluate_every = 1\n"
    )
    out = tmp_path / "out"
    assert main(["sft", str(tmp_path / "recipe.toml"), "--out", str(out)]) == 0
    for form in ("gguf", "peft"):
        capsys.readouterr()
        assert main(["export", str(out), "--out", str(tmp_path / form), "--form", form]) == 0
        assert "update 0 is the model as it was" in capsys.readouterr().err
    later = ["--out", str(tmp_path / "later"), "--step", "1"]
    assert main(["export", str(out), *later]) == 0
    assert "update 0" not in capsys.readouterr().err


def test_a_training_remembers_with_which_adapter_it_began(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, given = write_model(tmp_path / "base.gguf", model_tensors()), tmp_path / "given.gguf"
    write_adapter_file(given)
    rows = [replace(one, ids=one.ids % 256) for one in random_rows([20] * 4)]
    write_rows(rows, tmp_path / "rows.jsonl")
    recipe, out = tmp_path / "recipe.toml", tmp_path / "out"
    recipe.write_text(
        f'[model]\nbase = "{name_with_adapter(str(base), given)}"\n'
        f'[adapter]\nrank = 4\nalpha = {ALPHA}\n[data]\nrows = "{tmp_path / "rows.jsonl"}"\n'
        "[training]\nlearning_rate = 0.01\nepochs = 1\nbatch_rows = 4\n"
    )
    learn = ["sft", str(recipe), "--out", str(out)]
    assert main(learn) == 0
    hashes = json.loads((out / "run.json").read_text())["sha256"]
    assert hashes["adapter"] == hashlib.sha256(given.read_bytes()).hexdigest()

    peft = ["export", str(out), "--form", "peft", "--out", str(tmp_path / "peft")]
    assert main([*peft, "--numbers", "F32"]) == 1
    assert "--numbers is for --form gguf, not for peft" in capsys.readouterr().err
    write_adapter_file(given, adapter_tensors(seed=2))
    assert main(learn) == 1
    assert "was started with another adapter" in capsys.readouterr().err


def test_llama_cpp_computes_with_an_exported_adapter_what_the_trainer_does(tmp_path: Path) -> None:
    """Detail 25: the log-probabilities of 8 tokens agree, with all numbers in float32."""
    rounded = {name: torch.from_numpy(one).bfloat16() for name, one in model_tensors().items()}
    tensors = {name: one.float().numpy() for name, one in rounded.items()}
    base = write_model(tmp_path / "base.gguf", tensors)
    given = name_with_adapter(str(base), write_adapter_file(tmp_path / "given.gguf"))
    settings = AdapterSettings(4, ALPHA)
    opened = open_model(ModelSettings(given, "float32"), settings, torch.device("cpu"))
    exported = tmp_path / "exported.gguf"
    write_adapter(opened.parameters(), opened.model.config, ALPHA, exported, "F32")

    ids = [1, 70, 71, 72, 90, 100, 120, 75, 80]
    found = _llama_cpp(base, ids, exported, 8, is_exact=True)
    written = torch.tensor([ids + found["tokens"]])
    with torch.no_grad():
        logps = opened.model.eval()(input_ids=written).logits[0].log_softmax(-1)
    expected = [float(logps[at, one]) for at, one in enumerate(found["tokens"], len(ids) - 1)]
    told = [one["logprob"] for one in found["completion_probabilities"]]
    assert told == pytest.approx(expected, abs=1e-4)
    assert len(told) == 8


MESSAGES = [
    {"role": "user", "content": "Print the mean of the column price of the table `df`."},
    {"role": "assistant", "content": "<code>\nprint(df['price'].mean().round(2))\n</code>"},
]
QUESTION = [{"role": "user", "content": "Print the largest value of the column size of `df`."}]
GREEDY_TOKENS = 24
CLOSE = 0.1


@pytest.mark.slow
@pytest.mark.model
def test_llama_cpp_writes_what_the_trained_model_writes(tmp_path: Path) -> None:
    """Detail 25, on the default model: a step of SFT, its adapter over the untouched GGUF file."""
    base = "qwen2.5-coder-1.5b"
    try:
        file = require(find(base))
    except ModelMissingError as error:
        pytest.skip(f"skipped: {error}")
    settings = TrainingSettings(learning_rate=1e-3, epochs=1, warmup_share=0, samples=0)
    opened = open_model(ModelSettings(base), AdapterSettings(8, 16), torch.device("cpu"))
    row = row_of(MESSAGES, opened.tokenizer, "q")
    training = Training(opened, [row], settings, Accelerator(cpu=True))
    made = [training.update([row], 1e-3) for _ in range(3)]
    assert made[-1].loss < made[0].loss
    write_adapter(opened.parameters(), opened.model.config, 16.0, tmp_path / "adapter.gguf")

    ids = opened.tokenizer.apply_chat_template(
        QUESTION, add_generation_prompt=True, return_dict=False
    )
    found = _llama_cpp(file, ids, tmp_path / "adapter.gguf", GREEDY_TOKENS, is_exact=True)
    without = _llama_cpp(file, ids, None, GREEDY_TOKENS, is_exact=True)
    assert without["tokens"] != found["tokens"]  # the adapter does something
    opened.model.float().eval()  # bfloat16 rounds otherwise on each kind of processor
    with torch.no_grad():
        logits = opened.model(input_ids=torch.tensor([ids + found["tokens"]])).logits
    logps = logits[0, len(ids) - 1 : -1].float().log_softmax(-1)
    own = logps.gather(1, torch.tensor(found["tokens"])[:, None])[:, 0]
    told = torch.tensor([one["logprob"] for one in found["completion_probabilities"]])
    # llama.cpp rounds activations to 8 bits, so two tokens that are about as likely may change
    # places; any other token of its text is the likeliest one of the trained model, too.
    assert (logps.max(dim=1).values - own).max() < CLOSE
    assert (told - own).abs().max() < CLOSE
    assert (told - own).abs().mean() < CLOSE / 5


def _llama_cpp(
    file: Path, prompt: list[int], adapter: Path | None, count: int, *, is_exact: bool = False
) -> dict[str, Any]:
    """What llama.cpp answers with the likeliest tokens, in a server of this process."""
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.warmup = 1024, 1, False
    threads = len(os.sched_getaffinity(0))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    if adapter is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
    if is_exact:
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        way = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.flash_attn_type = way
    server = xllamacpp.Server(params)
    body = {
        "prompt": prompt, "n_predict": count, "temperature": 0, "return_tokens": True,
        "n_probs": 1, "stream": False, "cache_prompt": False,
    }  # fmt: skip
    address = server.listening_address
    request = urllib.request.Request(
        f"{address}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        found: dict[str, Any] = json.load(answer)
    del server
    return found
