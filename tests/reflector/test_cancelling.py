"""A reflector can be cancelled anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.errors import ApiError, TransportError
from aioinformer.fifo import DeltaFIFO
from aioinformer.listwatch import ListWatch
from aioinformer.objects.meta import ListOptions, ListResult
from aioinformer.reflector import Phase, Reflector

from ..virtual_time import cancel_after, run, virtual_time
from .running import Errors, reflector
from .scripted import (
    FOREVER,
    ListAnswer,
    RecordingStore,
    Scripted,
    Step,
    Stream,
    added,
    closing_bookmark,
    error_event,
    expired_error,
    page,
    raw_pod,
    too_many_requests,
)


def scenarios() -> dict[str, Scripted]:
    """Return servers that make a reflector pass every await."""
    gone = error_event(410, "Gone")
    stream: list[Step] = [added("a", 1), [closing_bookmark(2), added("b", 3)], added("c", 4), FOREVER]
    return {
        "list": Scripted(
            [[ListResult([raw_pod("a")]), page(version=1, token="t")], page(raw_pod("b"), version=1)],
            [[added("c", 2), FOREVER]],
        ),
        "relist": Scripted([page(version=1), expired_error(), page(version=3)], [[added("a", 2), gone]]),
        "errors": Scripted([OSError("x"), page(version=1)], [TransportError("x"), [added("a", 2)], [gone]]),
        "stream": Scripted([], [stream], watch_list_semantics=True),
        "broken stream": Scripted(
            [page(version=1)],
            [[added("a", 1)], ApiError(500), [closing_bookmark(1)]],
            watch_list_semantics=True,
        ),
    }


async def swallow_cancel() -> None:
    """Wait, and end well when cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def fail_when_cancelled() -> None:
    """Wait, and fail when cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("cleaning up has failed")


class TestCancelling:
    @pytest.mark.parametrize("resync_period", [0.0, 0.5])
    @pytest.mark.parametrize("name", list(scenarios()))
    def test_cancelling_anywhere_leaves_nothing_open(self, name: str, resync_period: float) -> None:
        """C75, C81: every stream closed once, no task left, no error but the cancelling."""
        for steps in range(60):

            async def main(steps: int = steps) -> None:
                server = scenarios()[name]
                subject = reflector(server, resync_period=resync_period)
                assert await cancel_after(steps, asyncio.create_task(subject.run()))
                server.assert_closed()

            run(main())

    @pytest.mark.parametrize("name", list(scenarios()))
    def test_cancelling_list_and_watch_leaves_nothing_open(self, name: str) -> None:
        for steps in range(40):

            async def main(steps: int = steps) -> None:
                server = scenarios()[name]
                task = asyncio.create_task(reflector(server, resync_period=1.0).list_and_watch())
                if not await cancel_after(steps, task):
                    task.exception()
                server.assert_closed()

            run(main())

    @pytest.mark.parametrize("how", ["list", "page", "watch", "stream"])
    @virtual_time
    async def test_cancelling_is_not_reported_as_an_error_c81(
        self, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C81, TestRunUntil: in the middle of any request; no error handler is called, and nothing is logged."""
        lists: dict[str, list[ListAnswer]] = {
            "page": [page(version=1, token="t")],
            "watch": [page(version=1)],
        }
        watches: list[None] = [None] if how in ("watch", "stream") else []
        server = Scripted(lists.get(how, []), watches, watch_list_semantics=how == "stream")
        errors = Errors()
        subject = reflector(server, watch_error_handler=errors)
        task = asyncio.create_task(subject.run())
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert (errors.errors, subject.state.last_error) == ([], None)
        assert not caplog.records

    @virtual_time
    async def test_cancelling_before_the_start_sends_no_request(self) -> None:
        """C76."""
        server = Scripted()
        assert await cancel_after(0, asyncio.create_task(reflector(server).run()))
        assert not server.calls

    @pytest.mark.parametrize("watch_list", [False, True])
    @virtual_time
    async def test_cancelling_during_a_backoff_is_immediate(self, watch_list: bool) -> None:
        """W5: upstream waits out the rest of a WatchList's backoff."""
        loop = asyncio.get_running_loop()
        for server in (
            Scripted([OSError("down")] * 9, [OSError("down")] * 9, watch_list_semantics=watch_list),
            Scripted([too_many_requests(60)], [too_many_requests(60)], watch_list_semantics=watch_list),
            Scripted([page(version=1)], [TransportError("down")] * 9),
        ):
            subject = reflector(server)
            task = asyncio.create_task(subject.run())
            await asyncio.sleep(1)
            assert subject.state.phase is Phase.BACKING_OFF
            before = loop.time()
            task.cancel()
            await asyncio.wait({task})
            assert loop.time() == before

    @pytest.mark.parametrize("resync_period", [0.0, 0.5])
    @pytest.mark.parametrize("how", [swallow_cancel, fail_when_cancelled])
    @pytest.mark.parametrize("where", ["list", "page", "watch", "stream", "handler", "add", "resync"])
    @virtual_time
    async def test_cancelling_works_although_user_code_swallows_it(
        self, where: str, how: Callable[[], Awaitable[None]], resync_period: float
    ) -> None:
        """C81: swallowed or made a failure of, as ``asyncio.wait_for`` of Python 3.11 can do to it."""

        async def listed(options: ListOptions) -> ListResult:
            if where == "list" or (where == "page" and options.continue_token):
                await how()
            more = where == "page" and len(options.continue_token) < 3
            return page(version=1, token=f"{options.continue_token}+" if more else "")

        async def stream() -> AsyncIterator[Any]:
            if where == "stream":
                await how()
            yield added("a", 2)
            await asyncio.Event().wait()

        async def watch(options: ListOptions) -> AsyncIterator[Any]:
            if where == "watch":
                await how()
            if where == "handler":
                raise OSError("no server")
            return stream()

        async def on_error(reflector: Any, error: Exception) -> None:
            if where == "handler":
                await how()

        store: Any = DeltaFIFO()
        if where in ("add", "resync"):
            setattr(store, where, lambda *_: how())
        subject: Reflector[Any] = Reflector(
            ListWatch(listed, watch), None, store, resync_period, watch_error_handler=on_error
        )
        task = asyncio.create_task(subject.run())
        await asyncio.sleep(5)
        assert not task.done()
        task.cancel()
        ended, _ = await asyncio.wait({task}, timeout=60)
        assert ended
        assert task.cancelled()

    @virtual_time
    async def test_streamed_list_is_closed_although_the_store_swallows_the_cancellation(self) -> None:
        stream = Stream(closing_bookmark(1), FOREVER)
        store: Any = RecordingStore()
        store.replace = lambda objects, version: swallow_cancel()
        task = asyncio.create_task(reflector(Scripted([], [stream], watch_list_semantics=True), store).run())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert (task.cancelled(), stream.closed) == (True, 1)
