"""Fixtures and checks for all tests.

Every async test must end 20 s before pytest-timeout's limit, so within 100 s unless it is marked with another timeout,
and leave its event loop without tasks and open files. Tests run on asyncio.
Tests of sockets, timers and hand-overs between tasks, where the loop can matter, run on uvloop too.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import settings
from packaging.version import Version
from pytest_asyncio import is_async_test

from aioinformer import Client
from aioinformer._core.texts import valid_text
from aioinformer.testing import APIServer

TESTS = Path(__file__).parent

pytest_plugins = ["tests.kubernetes.fixtures", "tests.prometheus.fixtures"]

settings.register_profile("tests", deadline=None)  # a busy machine must not fail a test
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    if Version(version("uvloop")) < Version("0.23"):  # it forgets sockets that it has closed
        config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket\.socket:ResourceWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--eager-tasks", action="store_true", help="on asyncio, with tasks that begin at once (3.12)"
    )
    parser.addoption(
        "--protobuf", action="store_true", help="end to end, informers read protobuf where they can"
    )


BOTH_LOOPS = ("client", "core", "e2e", "processor")
"""Folders whose tests run on both event loops."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if config.getoption("eager_tasks"):
        return {"eager": _eager_loop}
    folder = item.path.relative_to(TESTS).parts[0]
    if folder in BOTH_LOOPS:
        return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.SelectorEventLoop}


def _eager_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 -- 3.11 has none
    return loop


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and asyncio.iscoroutinefunction(item.obj):
        item.obj = _limit(item.obj, _limit_of(item))


def _limit_of(item: pytest.Item) -> float:
    """Return the seconds that a test may take."""
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker is not None else item.config.getini("timeout"))
    return seconds - 20


def _limit(
    test: Callable[..., Coroutine[Any, Any, None]], seconds: float
) -> Callable[..., Coroutine[Any, Any, None]]:
    """Fail where the test waits, before pytest-timeout ends the process without a traceback."""

    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    return limited


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.sections = [
        (title, valid_text(text)) for title, text in report.sections
    ]  # xdist sends it as UTF-8
    return report


def pytest_collection_finish() -> None:
    _freeze()


_ended_tests = itertools.count(1)


def pytest_runtest_logfinish() -> None:
    if next(_ended_tests) % 100 == 0:
        _freeze()


def _freeze() -> None:
    """Exclude what remains, such as modules and reports, from the garbage collection after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _leaves_nothing_behind(request: pytest.FixtureRequest) -> None:
    if is_async_test(request.node):
        request.getfixturevalue("_clean_loop")


@pytest.fixture
async def _clean_loop() -> AsyncIterator[None]:
    """Fail a test that leaves tasks, open files of the loop, or unhandled errors.

    Unclosed transports, sessions and streams warn as they are collected, and warnings are errors.
    """
    loop = asyncio.get_running_loop()
    unseen: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    sockets = _count_sockets(loop)
    yield
    for _ in range(200):  # closing a TLS connection waits for its other end
        if not _find_leaks(loop) and _count_sockets(loop) <= sockets:
            break
        await asyncio.sleep(0.01)
    assert not _find_leaks(loop)
    gc.collect()
    assert not unseen


def _find_leaks(loop: asyncio.AbstractEventLoop) -> list[object]:
    tasks: list[object] = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    selector = getattr(loop, "_selector", None)  # uvloop has none
    files = list(selector.get_map().values()) if selector is not None else []
    return tasks + files[1:]  # the first is the loop's own


def _count_sockets(loop: asyncio.AbstractEventLoop) -> int:
    """Return how many sockets the process has, if the loop does not say which are its own."""
    if hasattr(loop, "_selector"):
        return 0
    names = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile
            names.append(os.readlink(descriptor))
    return sum(name.startswith("socket:") for name in names)


@pytest.fixture(params=["kubernetes_asyncio", "kubernetes.aio"])
def library(request: pytest.FixtureRequest) -> str:
    """The name of each library whose configuration a Client can use."""
    name: str = request.param
    pytest.importorskip(name)
    return name


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    """An embedded API server without TLS and token."""
    async with APIServer(seed=1) as running:
        yield running


@pytest.fixture
async def client(server: APIServer) -> AsyncIterator[Client]:
    """A client of the embedded API server."""
    async with Client.from_url(server.url) as opened:
        yield opened
