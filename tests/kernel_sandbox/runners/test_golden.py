"""The same notebooks through a kernel and through a worker: the results must be the same."""

import base64
import functools
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio

from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import Limits

NOTEBOOKS = {path.stem: path for path in sorted(Path(__file__).with_name("golden").glob("*.json"))}
LIMITS = Limits(wall_s=30)

DECLARED = {
    ("descriptors", 6): "the traceback shows the stream's own code, which is another",
    ("inputs", 0): "the traceback shows the code that stands for input(), which is another",
    ("inputs", 1): "the traceback shows the code that stands for getpass(), which is another",
    ("rich", 5): "jupyter_client warns of its own repair of a not-a-number; a worker repairs it",
    ("rich", 8): "the traceback shows the code that writes JSON, which is another",
}
"""All differences there are: notebook and cell to reason. Tracebacks differ, all else does not."""

PATTERNS = [
    (r"0x[0-9a-f]{6,}", "ADDRESS"),
    (r"/[\w/.-]*/ipykernel_\d+/\d+\.py", "CELL"),
    (r"\b\d{6,}\.py\b", "CELL"),
    (r"\bdm-work-\w{8}\b", "WORK"),
    (r"\bdmj-\w{8}\b", "RUN"),
    (r"[\d.e+]+ [nμm]?s\b", "TIME"),
    (r"\(\d+ times\)", "(N times)"),  # the stack below a cell is not equally deep
]
"""What is different from one kernel to the next."""


def normal(result):
    raw = result.to_json()
    del raw["seconds"], raw["peak_bytes"], raw["files"]  # only a session looks for files
    for output in raw["outputs"]:
        for media, content in output.get("data", {}).items():
            if media == "image/png":
                assert base64.b64decode(content).startswith(b"\x89PNG")
            if media.startswith("image/"):
                output["data"][media] = media
    text = json.dumps(raw, ensure_ascii=False, sort_keys=True)
    for pattern, name in PATTERNS:
        text = re.sub(pattern, name, text)
    return json.loads(text)


def read(path):
    return ["\n".join(lines) for lines in json.loads(path.read_text(encoding="utf-8"))]


async def run_all(runner):
    """All in one session, in the same order: what a notebook leaves behind is the same, too."""
    results = {}
    for name, path in NOTEBOOKS.items():
        results[name] = [normal(await runner.run(source)) for source in read(path)]
    return results


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both():
    async with KernelSession(LIMITS, screened=False) as kernel:
        expected = await run_all(kernel)
    async with Zygote() as zygote, CellWorker(zygote, LIMITS, screened=False) as worker:
        found = await run_all(worker)
    return expected, found


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_worker_gives_the_results_of_a_kernel(both, name):
    expected, found = both
    pairs = zip(read(NOTEBOOKS[name]), expected[name], found[name], strict=True)
    for number, (source, kernel, worker) in enumerate(pairs):
        if (name, number) not in DECLARED:
            assert worker == kernel, source
            continue
        reason = DECLARED[name, number]
        assert worker != kernel, f"declared, and not there: {reason}"
        assert summary(worker) == summary(kernel), reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kernel", "worker"])
async def test_a_ledger_changes_no_result(kind):
    found = []
    for keeps in (False, True):
        async with Zygote() as zygote, _runner(kind, zygote, keeps_ledger=keeps) as runner:
            found.append(await run_all(runner))
    without, with_it = found
    for name, path in NOTEBOOKS.items():
        pairs = zip(read(path), without[name], with_it[name], strict=True)
        for source, plain, noted in pairs:
            assert plain.pop("facts") == []
            noted.pop("facts")
            assert noted == plain, source


def _runner(kind, zygote, *, keeps_ledger):
    if kind == "kernel":
        return KernelSession(LIMITS, screened=False, keeps_ledger=keeps_ledger)
    return CellWorker(zygote, LIMITS, screened=False, keeps_ledger=keeps_ledger)


def summary(raw):
    """What is left when tracebacks, and the warnings of libraries about themselves, are not."""
    kept = [
        {key: value for key, value in output.items() if key != "traceback"}
        for output in raw["outputs"]
        if "UserWarning: Message serialization" not in output.get("text", "")
    ]
    return {**raw, "outputs": kept}


QUICK = ["values", "prints", "errors_stream", "displays", "syntax", "interactivity"]


@functools.cache
def quick_cells():
    return [source for name in QUICK for source in read(NOTEBOOKS[name])]


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
async def test_a_bare_worker_gives_the_results_of_a_kernel_for_plain_cells(isolate):
    async with KernelSession(LIMITS, screened=False, isolate=isolate) as kernel:
        expected = [normal(await kernel.run(source)) for source in quick_cells()]
    async with (
        Zygote(()) as zygote,
        CellWorker(zygote, LIMITS, screened=False, isolate=isolate) as worker,
    ):
        found = [normal(await worker.run(source)) for source in quick_cells()]
    for source, one, other in zip(quick_cells(), expected, found, strict=True):
        assert other == one, source
