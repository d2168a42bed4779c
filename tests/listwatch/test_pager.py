"""Lists: pages, expiry, silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from aioinformer.errors import ApiError, DecodeError, IdleTimeoutError, TransportError
from aioinformer.listwatch.pager import Listed, Pager, Pieces
from aioinformer.objects.meta import ListOptions, ListResult

from ..reflector.scripted import FOREVER, Scripted, expired_error, page, raw_pod
from ..virtual_time import virtual_time


def pager(list_watch: Scripted, timeout: float = 60.0) -> Pager:
    async def decode(piece: ListResult) -> list[Any]:
        await asyncio.sleep(0)
        return list(piece.items)

    return Pager(list_watch, decode, timeout)


class TestPager:
    @virtual_time
    async def test_one_page_in_pieces(self) -> None:
        server = Scripted([[ListResult([raw_pod("a")]), page(raw_pod("b"), version=5)]])
        assert await pager(server).list("0", 500) == Listed(
            [(raw_pod("a"),), (raw_pod("b"),)], "5", paginated=False
        )
        assert server.lists[0].limit == 500
        server.assert_closed()

    @virtual_time
    async def test_later_pages_send_only_the_token_and_the_first_page_sets_the_version(self) -> None:
        server = Scripted([page(raw_pod("a"), version=5, token="more"), page(raw_pod("b"), version=6)])
        listed = await pager(server).list("3", 1)
        assert listed == Listed([(raw_pod("a"),), (raw_pod("b"),)], "5", paginated=True)
        asked = [
            (listing.resource_version, listing.continue_token, listing.limit) for listing in server.lists
        ]
        assert asked == [("3", "", 1), ("", "more", 1)]

    @virtual_time
    async def test_an_expired_token_falls_back_to_one_full_list_at_the_same_version(self) -> None:
        """C63: "10", continue, "10" without a limit; the abandoned pages are dropped."""
        server = Scripted(
            [page(raw_pod("a"), version=5, token="more"), expired_error(), page(raw_pod("b"), version=7)]
        )
        assert await pager(server).list("10", 1) == Listed([(raw_pod("b"),)], "7", paginated=True)
        asked = [
            (listing.resource_version, listing.continue_token, listing.limit) for listing in server.lists
        ]
        assert asked == [("10", "", 1), ("", "more", 1), ("10", "", 0)]
        server.assert_closed()

    @virtual_time
    async def test_expired_token_without_page_size_is_an_error(self) -> None:
        """Otherwise a server that sends pages anyway, and whose tokens expire, would be asked in a hot loop."""
        server = Scripted([page(raw_pod("a"), version=5, token="more"), expired_error()] * 2)
        with pytest.raises(ApiError, match="Expired"):
            await pager(server).list("10", 1)
        assert len(server.lists) == 4

    @pytest.mark.parametrize("period", [1, 2, 3])
    @virtual_time
    async def test_repeated_token_falls_back_to_one_full_list(
        self, period: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A server that ignores continue would send pages forever."""
        pages = [page(raw_pod("a"), version=5, token=f"t{number}") for number in range(period)] * 2
        server = Scripted([*pages[: period + 1], page(raw_pod("b"), version=7)])
        assert await pager(server).list("10", 1) == Listed([(raw_pod("b"),)], "7")
        assert server.lists[-1] == ListOptions(resource_version="10")
        assert "the same continue token twice" in caplog.text
        server.assert_closed()

    @virtual_time
    async def test_repeated_token_without_page_size_is_an_error(self) -> None:
        server = Scripted([page(raw_pod("a"), version=5, token="t")] * 4)
        with pytest.raises(DecodeError, match="the list has no end"):
            await pager(server).list("10", 1)
        assert len(server.lists) == 4

    @virtual_time
    async def test_gone_token_is_raised(self) -> None:
        """Expired is about tokens. Gone (410 without that reason) is about the version."""
        server = Scripted([page(raw_pod("a"), version=5, token="more"), ApiError(410, "Gone")])
        with pytest.raises(ApiError, match="Gone"):
            await pager(server).list("10", 1)
        assert len(server.lists) == 2

    @virtual_time
    async def test_expired_first_page_is_raised(self) -> None:
        with pytest.raises(ApiError):
            await pager(Scripted([expired_error()])).list("10", 500)

    @virtual_time
    async def test_list_without_an_answer_times_out(self) -> None:
        server = Scripted([FOREVER])
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(IdleTimeoutError, match="60 s"):
            await pager(server).list("0", 500)
        assert loop.time() - started == pytest.approx(60)
        server.assert_closed()

    @virtual_time
    async def test_slow_list_does_not_time_out_while_data_arrives(self) -> None:
        class Slow(Scripted):
            async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
                for n in range(10):
                    await asyncio.sleep(50)
                    yield page(raw_pod(str(n)), version=5)

        assert len((await pager(Slow()).list("0", 500)).objects) == 10

    @virtual_time
    async def test_timeout_raised_by_the_list_is_a_transport_error(self) -> None:
        with pytest.raises(TransportError, match="mine") as caught:
            await pager(Scripted([TimeoutError("mine")])).list("0", 500)
        assert not isinstance(caught.value, IdleTimeoutError)

    @pytest.mark.parametrize("error", [OSError("of the network"), aiohttp.ClientError("of the network")])
    @virtual_time
    async def test_network_error_is_a_transport_error(self, error: Exception) -> None:
        """Of any ListerWatcher."""
        with pytest.raises(TransportError, match="of the network") as caught:
            await pager(Scripted([error])).list("0", 500)
        assert caught.value.__cause__ is error

    @virtual_time
    async def test_list_that_yields_nothing_is_an_error(self) -> None:
        """An empty list would delete the whole cache."""
        with pytest.raises(TransportError, match="without an answer"):
            await pager(Scripted([[]])).list("0", 500)

    def test_very_many_objects_are_a_sequence_in_pieces(self) -> None:
        pieces: list[Any] = [[0, 1], [2], [], {3: "three", 4: "four"}.values()]
        objects = Pieces(pieces)
        assert len(objects) == 5
        assert list(objects) == [0, 1, 2, "three", "four"]
        assert (objects[2], objects[-1], objects[1:3]) == (2, "four", [1, 2])
        assert 2 in objects
