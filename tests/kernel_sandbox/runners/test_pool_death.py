"""Nothing of a pool lives on when its process is killed."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from kernel_sandbox.runners.pool import StateRetention
from tests.examples import some_quick
from tests.waiting import PATIENCE_S

VICTIM = """
import asyncio, sys
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
async def trajectory(pool):
    async with pool.runner() as runner:
        while True:
            await runner.run("import os, time; open('f', 'a').write('x'); time.sleep(0.02)")
async def main():
    settings = PoolSettings(StateRetention(sys.argv[1]), modules=("numpy",))
    async with SandboxPool(settings) as pool, asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(trajectory(pool))
        print("up", flush=True)
asyncio.run(main())
"""


def killed_at_random(strategy, times, seed):
    """Kills a busy pool's process -9 so many times; returns what was alive a moment later."""
    chance = random.Random(seed)
    left = []
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as folder:
        environ = {**os.environ, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder}
        for _ in range(times):
            command = [sys.executable, "-c", VICTIM, strategy]
            with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as victim:
                assert victim.stdout.readline() == b"up\n"
                time.sleep(chance.uniform(0, 0.6))  # any moment will do
                victim.send_signal(signal.SIGKILL)
            left += alive_with(folder)
        assert all(path.name.startswith(("dm", "t")) for path in Path(folder).iterdir())
    return left


def alive_with(folder, patience_s=PATIENCE_S):
    """The processes whose environment names the folder, once they had time to end."""
    ends_at = time.monotonic() + patience_s
    while found := [process for process in psutil.process_iter() if is_of(process, folder)]:
        if time.monotonic() > ends_at:
            return [process.cmdline() for process in found]
        time.sleep(0.05)
    return []


def is_of(process, folder):
    try:
        running = process.status() != psutil.STATUS_ZOMBIE
        return running and folder in str(process.environ())
    except psutil.Error:
        return False


@pytest.mark.parametrize("strategy", some_quick(sorted(StateRetention, reverse=True), 3))
def test_nothing_lives_on_when_the_process_is_killed(strategy):
    assert killed_at_random(strategy.value, 2, seed=1) == []


@pytest.mark.slow
def test_fifty_random_kills_leave_nothing():
    for strategy, times in ((StateRetention.PERSISTENT, 25), (StateRetention.SNAPSHOT, 25)):
        assert killed_at_random(strategy.value, times, seed=2) == []
