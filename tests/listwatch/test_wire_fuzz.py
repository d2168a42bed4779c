"""What the real server sent, damaged in every way, through the real path: socket, Client, ListWatch, informer.

Whatever comes, the informer runs on, says what it could not read, loses nothing that was whole, and once the damage
is over its cache equals the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.fifo.queue import FIFO
from aioinformer.reflector import Backoff

from ..client.wire import serve_wire
from .replay import LAST, LATER, LINES, LIST, STREAM, WATCH, Replay, apply, is_event, versions_in

PATIENCE = 30.0
EXAMPLES = settings().max_examples // 4

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True, scope="module")
def _quick_and_quiet() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Backoff, "INITIAL", 0.01)
        patch.setattr(Backoff, "CAP", 0.05)
        logging.disable(logging.ERROR)
        yield
        logging.disable(logging.NOTSET)


class Subject:
    """An informer on a replay."""

    def __init__(self, informer: SharedIndexInformer[KubeObject]) -> None:
        self.informer = informer
        self.errors: list[Exception] = []
        informer.set_watch_error_handler(lambda reflector, error: self.errors.append(error))

    @property
    def cached(self) -> dict[str, str]:
        return {obj.key: obj.resource_version for obj in self.informer.store.list()}

    @property
    def complaints(self) -> int:
        """The errors of dropped objects."""
        return len(self.errors) + sum(reflector.rejected for reflector in self.informer.state.reflectors)

    async def until(self, condition: Any) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():  # noqa: ASYNC110 - any condition
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(f"{self.cached}, {self.informer.state}, {self.errors[-3:]}") from None
        assert not self.informer.is_stopped


@asynccontextmanager
async def replay_informer(replay: Replay, **options: Any) -> AsyncIterator[Subject]:
    async with serve_wire(replay) as server, Client.from_url(server.url) as client:
        list_watch = ListWatch.for_resource(client, "v1", "configmaps")
        informer = SharedIndexInformer(list_watch, KubeObject, random=Random(0), **options)
        subject = Subject(informer)
        async with informer:
            yield subject
            assert not informer.is_stopped


TOKENS = st.sampled_from(
    [
        *(
            b"\n",
            b"\r\n",
            b"\n\n",
            b"\x00",
            b"\xff\xfe",
            b"\xef\xbb\xbf",
            b'"',
            b"\\",
            b"\\u",
            b"{",
            b"}",
            b"]},",
        ),
        *(b"[" * 2000, b'{"type":"ADDED","object":', b'{"type":"ERROR","object":{}}\n', b'"items":['),
        *(b'"metadata":[],', b"null", b"1e999"),
    ]
)
NOISE = TOKENS | st.binary(min_size=1, max_size=12)


def spots(data: bytes) -> st.SearchStrategy[int]:
    return st.integers(0, len(data) - 1)


@st.composite
def damages(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes cut out, put in, overwritten, repeated, swapped, one bit turned; the end lost."""
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        at, length = draw(spots(data)), draw(st.integers(1, 60))
        match draw(st.sampled_from(["drop", "insert", "overwrite", "repeat", "turn", "swap", "cut"])):
            case "drop":
                data = data[:at] + data[at + length :]
            case "insert":
                data = data[:at] + draw(NOISE) + data[at:]
            case "overwrite":
                noise = draw(NOISE)
                data = data[:at] + noise + data[at + len(noise) :]
            case "repeat":
                data = data[: at + length] + data[at:]
            case "turn":
                data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
            case "swap":
                lines = data.splitlines(keepends=True)
                first, second = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
                lines[first], lines[second] = lines[second], lines[first]
                data = b"".join(lines)
            case "cut":
                data = data[:at]
    return data


SIZES = st.sampled_from([1, 7, 100, 1000, 1 << 20])


async def play(kind: str, damaged: bytes, original: bytes, goes_on: bool, size: int) -> None:
    replay = Replay(kind, lambda data: damaged if data == original else data, goes_on=goes_on, size=size)
    async with replay_informer(replay, initial_events_timeout=0.3) as subject:
        await subject.until(lambda: replay.is_done)
        replay.honest.set()
        await subject.until(lambda: subject.cached == versions_in(LATER))
        whole_lines = damaged.split(b"\n")[:-1]
        if kind != "list" and any(line.strip() and not is_event(line) for line in whole_lines):
            await subject.until(lambda: subject.complaints > 0)


@settings(max_examples=EXAMPLES)
@given(damages(WATCH), st.booleans(), SIZES)
async def test_a_damaged_watch(damaged: bytes, goes_on: bool, size: int) -> None:
    await play("watch", damaged, WATCH, goes_on, size)


@settings(max_examples=EXAMPLES)
@given(damages(STREAM), st.booleans(), SIZES)
async def test_a_damaged_streamed_list(damaged: bytes, goes_on: bool, size: int) -> None:
    await play("stream", damaged, STREAM, goes_on, size)


@settings(max_examples=EXAMPLES)
@given(damages(LIST), SIZES)
async def test_a_damaged_list(damaged: bytes, size: int) -> None:
    await play("list", damaged, LIST, False, size)


@st.composite
def damaged_lines(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """The watch with some lines made unreadable, and the lines that are whole."""
    chosen = draw(st.sets(st.integers(0, len(LINES) - 2), min_size=1, max_size=4))
    data, intact = b"", []
    for number, line in enumerate(LINES):
        if number not in chosen:
            data += line
            intact.append(line)
            continue
        at = draw(st.integers(0, len(line) - 2))
        match draw(st.sampled_from(["cut", "drop", "insert", "interleave"])):
            case "cut":
                broken = line[:at]
            case "drop":
                broken = line[:at] + line[at + draw(st.integers(1, 40)) :].rstrip(b"\n")
            case "insert":
                broken = line[:at] + draw(NOISE) + line[at:-1]
            case _:
                other = LINES[draw(st.integers(0, len(LINES) - 1))].rstrip(b"\n")
                broken = b"".join(line[i : i + 9] + other[i : i + 9] for i in range(0, len(line) - 1, 9))
        parts = broken.split(b"\n")
        assume(any(part.strip() for part in parts))
        assume(not any(is_event(part) for part in parts))
        data += broken + b"\n"
    return data, intact


@settings(max_examples=EXAMPLES)
@given(damaged_lines(), SIZES)
async def test_damaged_lines_do_not_lose_whole_lines(damaged: tuple[bytes, list[bytes]], size: int) -> None:
    """The reflector relists the lost ones, without help from the server."""
    data, intact = damaged
    replay = Replay("watch", lambda body: data if body == WATCH else body, size=size)
    async with replay_informer(replay, min_watch_timeout=0.05) as subject:
        informer = subject.informer
        await subject.until(
            lambda: (
                replay.is_done
                and informer.last_sync_resource_version == str(LAST)
                and not informer.state.queue_depth
            )
        )
        queue = informer._controllers[0]._config.queue
        assert isinstance(queue, FIFO)
        await queue._lock()  # what was popped has been stored
        seen = subject.cached
        queue._leave()
        assert seen in (apply(versions_in(LIST), intact), versions_in(LATER))
        assert subject.complaints
        await subject.until(lambda: subject.cached == versions_in(LATER))
        assert not subject.errors
