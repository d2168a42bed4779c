"""Endless answers, and answers in tiny pieces."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable

import pytest

from aioinformer.cache import Phase

from ..client.wire import (
    CHUNKED,
    HEAD,
    LAST_CHUNK,
    OK,
    Asked,
    body_of,
    chunk,
    configmap,
    dumps,
    line,
    whole,
)
from ..listwatch.replay import refusal
from .wire import A_AND_B, BOTH, DEEP, Bytes, Script, wire_informer
from .witness import Log, versions_in_cache

pytestmark = pytest.mark.usefixtures("soon_again")


class TestWithoutEnd:
    """Endless answers are cut off, or the state shows the progress."""

    @pytest.mark.parametrize("data", [b"x" * 10_000, b" " * 10_000, b"[" * 10_000, b'"' + b"x" * 9_999])
    async def test_a_line(self, data: bytes, log: Log) -> None:
        async def answer(asked: Asked) -> AsyncIterator[bytes]:
            if asked.is_stream:
                yield refusal(422, "Invalid")
            elif not asked.is_watch:
                yield whole(A_AND_B)
            else:
                yield OK + line("ADDED", configmap("c", 8))
                while True:
                    yield data

        async with wire_informer(answer, longest_object=1_000_000) as subject:
            await log.until("configmaps", "more than 1000000 bytes have come, and no object has ended")
            await subject.witness.until(lambda: "default/b" in subject.witness.shadow)
            assert subject.state.last_error is not None

    @pytest.mark.parametrize(
        "begin",
        [
            b"",
            b'{"kind":"',
            b'{"metadata":{"resourceVersion":"1"},"items":[{"data":"',
            b'{"items":[{"data":' + DEEP,
        ],
        ids=["space", "head", "item", "depth"],
    )
    async def test_a_body(self, begin: bytes, log: Log) -> None:
        async def forever() -> AsyncIterator[bytes]:
            yield OK + begin
            while True:
                yield b" " * 10_000

        await self.wait_given_up(forever, log, "more than 1000000 bytes have come, and no object has ended")

    async def test_a_body_that_is_small_only_on_the_wire(self, log: Log) -> None:
        """A gigabyte of blanks is a megabyte of gzip."""
        bomb = gzip.compress(b" " * 100_000_000)

        async def forever() -> AsyncIterator[bytes]:
            yield HEAD + b"Content-Encoding: gzip\r\n\r\n" + bomb

        await self.wait_given_up(forever, log, "encoded as 'gzip'")

    async def wait_given_up(self, forever: Callable[[], AsyncIterator[bytes]], log: Log, said: str) -> None:
        is_first = True

        async def answer(asked: Asked) -> AsyncIterator[bytes]:
            nonlocal is_first
            if asked.is_stream:
                yield refusal(422, "Invalid")
            elif asked.is_watch:
                yield OK
                await asyncio.Event().wait()
            elif is_first:
                is_first = False
                async for data in forever():
                    yield data
            else:
                yield whole(A_AND_B)

        async with wire_informer(answer, longest_object=1_000_000) as subject:
            await log.until("WARNING", "configmaps", said)
            await subject.until_cached(BOTH)

    async def test_the_same_page_again_and_again(self, log: Log) -> None:
        """Even without a limit nothing is cached, and the informer retries with back-off."""
        script = Script([[whole(body_of([configmap("a", 1)], 5, token="more"))]])
        async with wire_informer(script) as subject:
            await log.until("WARNING", "configmaps", "the server sent the same continue token twice")
            assert not versions_in_cache(subject.informer)
            assert len(subject.server.asked) < 100

    async def test_pages_of_different_versions(self) -> None:
        """The first page's version counts; the watch repeats later changes."""
        pages = [
            [whole(body_of([configmap("a", 1)], 5, token="more"))],
            [whole(body_of([configmap("b", 2)], 9))],
        ]
        async with wire_informer(Script(pages)) as subject:
            await subject.until_cached(BOTH)
            assert subject.informer.last_sync_resource_version == "5"

    @pytest.mark.parametrize("how", ["list", "stream"])
    async def test_a_collection(self, how: str) -> None:
        """It looks like a large list: the state shows the progress, and the informer can be stopped."""

        async def answer(asked: Asked) -> AsyncIterator[bytes]:
            if asked.is_watch and how == "list":
                yield refusal(422, "Invalid")
                return
            yield OK + (b"" if asked.is_watch else b'{"metadata":{"resourceVersion":"1"},"items":[{}')
            number = 0
            while True:
                number += 1
                obj = configmap(f"n{number}", 1, pad="x" * 5000)
                yield line("ADDED", obj) if asked.is_watch else b"," + dumps(obj)

        async with wire_informer(answer) as subject:
            await subject.witness.until(lambda: subject.state.listed >= 1000)
            assert subject.informer.state.phase is Phase.LISTING
            assert f", {subject.state.listed} objects so far" in str(subject.state)
            assert not versions_in_cache(subject.informer)


@pytest.mark.parametrize("size", [1, 3])
async def test_everything_cut_at_every_byte(size: int) -> None:
    def pieces(data: bytes) -> list[Bytes]:
        return [chunk(data[at : at + size]) for at in range(0, len(data), size)]

    events = line("ADDED", configmap("c", 8, text="ümläut \U0001f600 \n")) + line(
        "DELETED", configmap("a", 9)
    )
    listed = [CHUNKED, *pieces(A_AND_B), LAST_CHUNK]
    async with wire_informer(Script([listed], [[CHUNKED, *pieces(events), None]])) as subject:
        await subject.until_cached({"default/b": "2", "default/c": "8"})
        assert subject.state.rejected == 0


@pytest.mark.parametrize("how", ["list", "watch"])
async def test_three_megabytes_in_tiny_pieces(how: str) -> None:
    large = configmap("large", 8, k="x" * 3_000_000)
    data = body_of([large, configmap("a", 1)], 8) if how == "list" else line("ADDED", large)
    pieces: list[Bytes] = [OK, *(data[at : at + 1400] for at in range(0, len(data), 1400))]
    script = Script([pieces]) if how == "list" else Script(watches=[[*pieces, None]])
    async with wire_informer(script, longest_object=4_000_000) as subject:
        await subject.witness.until(lambda: "default/large" in subject.witness.shadow)
        stored = subject.informer.store.get_by_key("default/large")
        assert stored is not None
        assert len(stored["data"]["k"]) == 3_000_000
