"""Random models and rows, small enough for a test, and programs in several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.waiting import PATIENCE_S
from training.trainer.model import AdapterSettings, OpenedModel, with_adapter
from training.trainer.rows import Row

VOCABULARY = 512
TOKENS = 258
"""Ids of the tokenizer; the model's other rows are spare."""
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


_FAMILIES = {"llama": "Llama", "qwen2": "Qwen2", "mistral": "Mistral", "cohere": "Cohere"}


def tiny_model(kind: str = "llama", dtype: torch.dtype = torch.float64, seed: int = 0) -> Any:
    """Returns a random model of two layers, of one of the families above."""
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": False,
        "initializer_range": 0.2,  # or all tokens are about as likely, and mistakes don't show
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        family = _FAMILIES[kind]
        config = getattr(transformers, f"{family}Config")(**shape)
        model: Any = getattr(transformers, f"{family}ForCausalLM")(config)
        for name, one in model.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(one)
    if dtype == torch.float64:
        _with_exact_norms(model)
    return model.to(dtype).eval()


def _with_exact_norms(model: Any) -> None:
    """Those of transformers compute in float32, whatever the model's numbers are."""
    for layer in model.model.layers:
        layer.input_layernorm = torch.nn.RMSNorm(32, eps=1e-6)
        layer.post_attention_layernorm = torch.nn.RMSNorm(32, eps=1e-6)
    model.model.norm = torch.nn.RMSNorm(32, eps=1e-6)


def tiny_tokenizer() -> Any:
    """Returns a tokenizer of bytes, with ChatML."""
    words = {letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=words, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = CHATML
    return tokenizer


def save_tiny(folder: Path, kind: str = "llama", dtype: torch.dtype = torch.float32) -> Path:
    """Writes a random model with its tokenizer as a folder of transformers."""
    tiny_model(kind, dtype).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def adapted(model: Any, seed: int = 1, rank: int = 4) -> OpenedModel:
    """Returns a model with an adapter that already does something: B is not zero."""
    made = with_adapter(model, AdapterSettings(rank=rank, alpha=8), seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for name, one in made.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(one, std=0.1)
    return OpenedModel(made, tiny_tokenizer(), can_pack=True)


def random_rows(
    lengths: Sequence[int], seed: int = 0, shared: int = 0, weights: Sequence[float] = ()
) -> list[Row]:
    """Returns rows of random ids; all begin with the same `shared` ones, and learn about half."""
    random = np.random.default_rng(seed)
    prefix = random.integers(0, TOKENS, shared)
    rows = []
    for number, length in enumerate(lengths):
        ids = np.concatenate([prefix, random.integers(0, TOKENS, length)])
        mask = np.concatenate([np.zeros(shared, bool), random.random(length) < 0.5])
        mask[0], mask[-1] = False, True
        rows.append(Row(f"r{number}", ids, mask, weights[number] if weights else 1.0))
    return rows


def launch(count: int, *command: str, config: str | None = None) -> None:
    """Runs a program in several processes as docs/training.md says, but on processors."""
    checkout = str(Path(__file__).parents[3])
    here = {"PYTHONPATH": checkout, "ACCELERATE_USE_CPU": "true", "GLOO_SOCKET_IFNAME": "lo"}
    if config is None:  # accelerate's launcher starts this for GPUs, and one process for processors
        launcher = f"torch.distributed.run --standalone --nproc-per-node {count}"
    else:
        options = "--main_process_port 0 --mixed_precision no --config_file"
        launcher = f"accelerate.commands.launch --num_processes {count} {options} {config}"
    done = subprocess.run(
        [sys.executable, "-m", *launcher.split(), *command],
        check=False,
        env=os.environ | here,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
