"""The event loops of tests: those of pytest-asyncio, and those of anyio's plugin.

Both plugins can be installed; a test that uses ``anyio_backend`` is anyio's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any

import pytest


def asyncio_fixture(make: Callable[..., AsyncIterator[Any]]) -> Any:
    """Return a fixture that pytest-asyncio runs, in each of its modes; None without pytest-asyncio."""
    try:
        import pytest_asyncio
    except ImportError:
        return None

    @wraps(make)  # pytest-asyncio marks the function, which anyio's fixture shares
    async def copy(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for value in make(*args, **kwargs):
            yield value

    return pytest_asyncio.fixture(copy)


def value_in_loop(request: pytest.FixtureRequest, name: str, shown: str) -> Any:
    """Return the value of a fixture that the plugin runs which runs the test.

    Args:
        request: Of the fixture that asks.
        name: The fixture, behind its prefix.
        shown: The name that users know, for messages.
    """
    if "anyio_backend" in request.fixturenames:
        _require_asyncio(request, shown)
        return request.getfixturevalue(f"_aioinformer_anyio_{name}")
    if request.node.get_closest_marker("trio") is not None:
        _fail(f"the fixture {shown!r} needs asyncio, and this test runs on trio")
    if not request.config.pluginmanager.has_plugin("asyncio"):
        _fail(f"the fixture {shown!r} needs an event loop: install pytest-asyncio, or mark the test anyio")
    _require_one_loop(request, shown)
    return request.getfixturevalue(f"_aioinformer_asyncio_{name}")


def _require_asyncio(request: pytest.FixtureRequest, shown: str) -> None:
    backend = request.getfixturevalue("anyio_backend")
    backend = backend if isinstance(backend, str) else backend[0]
    if backend != "asyncio":
        _fail(
            f"the fixture {shown!r} needs asyncio, and this test runs on {backend}: let the fixture anyio_backend "
            "of your conftest.py return 'asyncio'"
        )


def _require_one_loop(request: pytest.FixtureRequest, shown: str) -> None:
    """Check that pytest-asyncio runs the test and the fixture in the same event loop."""
    marker = request.node.get_closest_marker("asyncio")
    test = (marker.kwargs.get("loop_scope") if marker else None) or _setting(
        request, "asyncio_default_test_loop_scope"
    )
    fixture = _setting(request, "asyncio_default_fixture_loop_scope")
    if test != fixture:
        _fail(
            f"this test runs in the event loop of its {test}, and the fixture {shown!r} in that of its {fixture}: set "
            f'asyncio_default_fixture_loop_scope = "{test}" in pytest\'s settings, or give the test '
            f"loop_scope={fixture!r}"
        )


def _setting(request: pytest.FixtureRequest, name: str) -> str:
    try:
        return request.config.getini(name) or "function"
    except ValueError:  # a pytest-asyncio that does not have it
        return "function"


def _fail(reason: str) -> None:
    pytest.fail(reason, pytrace=False)
