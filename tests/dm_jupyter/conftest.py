from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from dm_jupyter.data.profile_reader import ProfileReader


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader() -> AsyncIterator[ProfileReader]:
    """Warm for all tests of a file; these run in the loop of their module."""
    async with ProfileReader() as reader:
        yield reader
