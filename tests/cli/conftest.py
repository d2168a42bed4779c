"""An embedded server for each test that wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioinformer.testing import APIServer


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    """Without TLS and token, as --server reaches it."""
    async with APIServer(seed=1) as running:
        yield running
