from __future__ import annotations

import pytest


@pytest.fixture(params=["kubernetes_asyncio", "kubernetes.aio"])
def library(request: pytest.FixtureRequest) -> str:
    """Each of the libraries that a Client can stand on."""
    name: str = request.param
    pytest.importorskip(name)
    return name
