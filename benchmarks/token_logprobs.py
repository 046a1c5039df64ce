"""Log-probabilities of sampled ids: a server's compared with transformers on the same weights.

`python -m benchmarks.token_logprobs` samples ten short conversations of two turns with the local
model. It then scores the same ids with transformers: the weights of the same file, dequantized to
bfloat16 in a folder next to it. The last ids of a turn that a stop string ended are listed
separately, because llama.cpp omits their log-probabilities and is asked for each. It needs the
extra `train`, 6 GB of memory and some minutes. `--model` names another model of the catalogue, or a
GGUF file.

`--vllm URL` samples from a vLLM server instead of llama.cpp: `vllm serve` with that folder.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.models.local import catalogue
from dm_jupyter.models.local.endpoint import ServerOptions, local_endpoint
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.chat_template import ChatTemplate
from training.tokens.llama_cpp import LlamaCppEngine
from training.tokens.policy import TokenPolicy
from training.tokens.vllm import VllmEngine

SYSTEM = "Answer with one short piece of Python between <code> and </code>, nothing else."
STOP, STOP_TOKENS = "</code>", 3
QUESTIONS = (
    "How many rows does the table df have?",
    "The mean of the column price of df?",
    "Which city occurs most often in df['city']?",
    "The correlation of height and weight in df?",
    "How many values of df['age'] are missing?",
    "The median of df['fare'] for each class?",
    "Parse df['date'] and count the rows of each year.",
    "Turn '1.234,50 €' in df['total'] into numbers.",
    "Is df['income'] normally distributed? Use scipy.",
    "Plot a histogram of df['score'] with 20 bins.",
)
FOLLOW_UP = "The output was: 42. Now the same without missing values."


@dataclass(frozen=True)
class Difference:
    """Difference at one id, in natural logarithms."""

    size: float
    is_of_stop: bool
    """Whether it is one of the last ids of a turn that a stop string ended."""


async def turns_of(policy: TokenPolicy, tokens: int) -> list[SampledTokens]:
    """Return two turns for each question, the second after the ids of the first."""
    found: list[SampledTokens] = []
    for seed, question in enumerate(QUESTIONS):
        messages = [Message("system", SYSTEM), Message("user", question)]
        before: SampledTokens | None = None
        for _ in range(2):
            request = SampleRequest(
                tuple(messages), stop=(STOP,), temperature=1.0, top_p=1.0, max_tokens=tokens,
                seed=seed, cuts_repetition=False, before=before,
            )  # fmt: skip
            completion = await policy.sample(request, lambda _: None)
            assert completion.tokens is not None
            before = completion.tokens
            found.append(before)
            shown = completion.text + before.end.stop
            messages += [Message("assistant", shown), Message("user", FOLLOW_UP)]
    return found


async def sampled(model: catalogue.LocalModel, tokens: int, vllm: str = "") -> list[SampledTokens]:
    """Return the turns of our own server, which ends after them, or of a vLLM server.

    Args:
        model: of our own server.
        tokens: the most of a turn.
        vllm: address of the vLLM server, ending in `/v1`; empty for our own.
    """
    if vllm:
        async with httpx2.AsyncClient(timeout=60) as client:
            served = (await client.get(f"{vllm}/models")).json()["data"][0]
        template = ChatTemplate.of_folder(Path(served["root"]))
        async with VllmEngine(vllm, served["id"], template) as other:
            return await turns_of(TokenPolicy(other), tokens)
    with tempfile.TemporaryDirectory() as folder:
        options = ServerOptions(runtime_dir=Path(folder))
        async with (
            local_endpoint(model, options) as served,
            LlamaCppEngine(served.base_url, served.model_name, served.api_key) as engine,
        ):
            return await turns_of(TokenPolicy(engine), tokens)


def loaded(name: str, dtype: str) -> Any:
    """Return the model of a GGUF file in transformers."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    from training.trainer.model import model_folder  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(
        model_folder(name), dtype=getattr(torch, dtype), local_files_only=True
    )
    return model.eval()


def differences(model: Any, turns: list[SampledTokens]) -> Iterator[Difference]:
    """Yield the difference between the two log-probabilities, for each sampled id."""
    import torch  # noqa: PLC0415

    for one in turns:
        ids_T = torch.tensor(one.ids.tolist())  # noqa: N806  axis suffixes: T tokens, V vocabulary
        with torch.inference_mode():
            logits_T_V = model(ids_T[None]).logits[0].float()  # noqa: N806
        logp_T_V = logits_T_V.log_softmax(-1)  # noqa: N806
        first = len(one.prompt)
        places = torch.arange(first, len(ids_T))
        logp_S = logp_T_V[places - 1, ids_T[places]]  # noqa: N806
        asked = STOP_TOKENS if one.end.stop else 0
        for place, (reference, told) in enumerate(zip(logp_S.tolist(), one.logprobs, strict=True)):
            yield Difference(abs(reference - told), len(one.sampled) - place <= asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--tokens", type=int, default=48, help="at most, of a turn")
    parser.add_argument("--vllm", default="", metavar="URL", help="of a vLLM server, with /v1")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    arguments = parser.parse_args()
    model = catalogue.resolve(arguments.model)
    turns = asyncio.run(sampled(model, arguments.tokens, arguments.vllm))
    assert not any(one.is_forked for one in turns)
    found = list(differences(loaded(arguments.model, arguments.dtype), turns))
    engine = "vLLM" if arguments.vllm else "llama.cpp"
    made = f"{len(turns)} turns, {len(found)} sampled ids, {arguments.dtype}"
    print(f"{model.title} by {engine}: {made}")
    print("| ids | count | mean of the difference | 95 % below | largest |")
    print("|---|---|---|---|---|")
    for name, some in (
        ("all", found),
        ("at a stop string", [one for one in found if one.is_of_stop]),
        ("all others", [one for one in found if not one.is_of_stop]),
    ):
        sizes = sorted(one.size for one in some)
        if sizes:
            high = sizes[min(int(0.95 * len(sizes)), len(sizes) - 1)]
            mean = statistics.fmean(sizes)
            print(f"| {name} | {len(sizes)} | {mean:.4f} | {high:.4f} | {sizes[-1]:.4f} |")


if __name__ == "__main__":
    main()
