"""Ctrl-C and SIGTERM: with a blocked reader, during the start, and after the list."""

from __future__ import annotations

import array
import asyncio
import fcntl
import io
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest

from aioinformer import Client
from aioinformer.cli import main
from aioinformer.cli.output import OutputError
from aioinformer.cli.watching import Watching, watch_resource
from aioinformer.testing import APIServer
from tests.e2e.processes import PATIENCE

ON_ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts

PIPE = 60_000
"""Bytes in a pipe that is all but full."""


@ON_ONE_LOOP
@pytest.mark.parametrize("form", ["jsonl", "table"])
@pytest.mark.parametrize("full", [1, PIPE], ids=["filling", "full"])
@pytest.mark.parametrize(
    ("number", "args", "code"),
    [
        (signal.SIGINT, [], 0),
        (signal.SIGTERM, [], 0),
        (signal.SIGINT, ["--until-synced"], 130),
        (signal.SIGTERM, ["--until-synced"], 143),
    ],
)
async def test_signal_ends_a_blocked_write(
    server: APIServer, form: str, full: int, number: int, args: list[str], code: int
) -> None:
    for index in range(800):
        server.create("v1", "configmaps", {"metadata": {"name": f"{index}-{'x' * 100}"}})
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioinformer", "watch", "cm", "--server", server.url, "-o", form, *args),
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(writing)
    try:
        async with asyncio.timeout(PATIENCE):
            while _count_unread(reading) < full:  # noqa: ASYNC110 - another process, which needs the processor
                await asyncio.sleep(0.002)
            process.send_signal(number)
            _, errors = await process.communicate()
    finally:
        os.close(reading)  # which ends it where the signal has not
        await process.wait()
    assert process.returncode == code
    assert b"Traceback" not in errors
    assert (b"interrupted before the whole list was printed" in errors) == bool(args)


@ON_ONE_LOOP
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_second_signal_exits_despite_full_stderr(number: int, code: int) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    full = _count_unread(reading)
    os.read(reading, 4096)
    os.set_blocking(writing, True)
    # A line that names it is more than there is room for: it is cut at 4,000 characters, of two bytes each.
    absent = "http://127.0.0.1:1/" + "é" * 8192
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioinformer", "watch", "cm", "--server", absent),
        *("--until-synced", "--timeout", "600"),
        stderr=writing,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(writing)
    try:
        async with asyncio.timeout(PATIENCE):
            while _count_unread(reading) < full:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
            process.send_signal(number)
            await asyncio.sleep(1.5)  # an earlier signal counts as the same interruption
            process.send_signal(number)
            assert await process.wait() == code
    finally:
        os.close(reading)
        if process.returncode is None:
            process.kill()
        await process.wait()


def _count_unread(pipe: int) -> int:
    """Return the number of unread bytes."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


class _Output(io.StringIO):
    """Standard output that does something once a text is written."""

    def __init__(self, text: str, then: Callable[[], object]) -> None:
        super().__init__()
        self._text = text
        self._then = then

    def write(self, text: str) -> int:
        if self._text in text:
            self._then()
        return super().write(text)


@pytest.mark.parametrize(("printed_at", "ends_well"), [("ADDED", False), ("SYNCED", True)])
async def test_cancellation_after_the_list_is_no_error(
    server: APIServer, monkeypatch: pytest.MonkeyPatch, printed_at: str, ends_well: bool
) -> None:
    server.create("v1", "pods", {"metadata": {"name": "web"}})
    asked = Watching("pods", None, True, None, None, "jsonl", False, False, True, None)
    work = asyncio.ensure_future(watch_resource(Client.from_url(server.url), asked))
    monkeypatch.setattr(sys, "stdout", _Output(printed_at, work.cancel))
    await asyncio.wait([work])
    assert work.cancelled() is not ends_well


async def test_failing_write_after_cancellation_is_silent(
    server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def write(text: str) -> None:
        tries.append(text)
        if '"SYNCED"' in text:
            for number in range(100):
                server.create("v1", "configmaps", {"metadata": {"name": f"a-{number}"}})
        elif '"ADDED"' in text:
            if work.cancelling():
                raise OutputError(BrokenPipeError())
            work.cancel()
            time.sleep(0.01)  # the next event is handled in a later loop iteration

    monkeypatch.setattr("aioinformer.cli.output.write", write)
    asked = Watching("cm", None, True, None, None, "jsonl", False, False, False, None)
    work = asyncio.ensure_future(watch_resource(Client.from_url(server.url), asked))
    await asyncio.wait([work])
    assert work.cancelled()
    assert len(tries) > 2


@pytest.fixture
def _own_handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupt(**_: object) -> None:
    signal.raise_signal(signal.SIGINT)


class _Interrupting(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "app":
            _interrupt()
        raise AttributeError(name)


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize("when", ["imported", "started"])
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["watch", "pods"], 0),
        (["watch", "pods", "-n", "bench"], 0),
        (["watch", "pods", "--until-synced"], 130),
        (["-v", "bench"], 130),
    ],
)
def test_ctrl_c_while_it_starts(
    args: list[str], code: int, when: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = _Interrupting("app")
    if when == "started":
        module.__dict__["app"] = _interrupt
    monkeypatch.setitem(sys.modules, "aioinformer.cli.app", module)
    monkeypatch.setattr(sys, "argv", ["aioinformer", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert capsys.readouterr().err.count("aioinformer: interrupted before ") == bool(code)
