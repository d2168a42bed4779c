"""Fixtures: an embedded server and an HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from aioinformer.testing import APIServer

from .client import APIClient


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def api(server: APIServer, http: aiohttp.ClientSession) -> APIClient:
    return APIClient(http, server.url)
