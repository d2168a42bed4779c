"""The guard of user code: whose cancellation arrived."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import pytest

from aioinformer._core.cancellation import ends_when, maybe_await, time_limit
from aioinformer.errors import AioInformerError

from ..steps import turns


async def test_maybe_await_awaits_only_awaitables() -> None:
    seen: list[int] = []

    async def work() -> None:
        seen.append(1)

    await maybe_await(work())
    await maybe_await(asyncio.ensure_future(work()))
    await maybe_await(None)
    await maybe_await("no awaitable")
    assert seen == [1, 1]


async def _ignore_cancellation() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def _fail_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("cancelled") from None


@pytest.mark.parametrize("function", [_ignore_cancellation, _fail_when_cancelled])
async def test_maybe_await_raises_a_cancellation_that_user_code_swallowed_and_logs_its_failure(
    function: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    task = asyncio.create_task(maybe_await(function()))
    await turns(3)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert ("ValueError: cancelled" in caplog.text) is (function is _fail_when_cancelled)
    with anyio.move_on_after(0.001) as scope:
        await maybe_await(function())
    assert scope.cancelled_caught


async def test_cancelled_error_of_user_code_is_a_failure() -> None:
    async def await_a_cancelled_task() -> None:
        other = asyncio.create_task(asyncio.sleep(60))
        other.cancel("of another task")
        await other

    with pytest.raises(AioInformerError, match="of another task") as caught:
        await maybe_await(await_a_cancelled_task())
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


async def test_clean_up_of_a_cancelled_task_can_call_user_code() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    async def clean_up() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            result: str = await maybe_await(work())
            return result
        raise AssertionError

    task = asyncio.create_task(clean_up())
    await turns(2)
    task.cancel()
    assert await task == "done"


class TestTimeLimit:
    async def test_user_code_is_cancelled_once_and_its_clean_up_can_await(self) -> None:
        cleaned_up = False

        async def work() -> None:
            nonlocal cleaned_up
            try:
                await asyncio.Event().wait()
            finally:
                await turns(5)
                cleaned_up = True

        with pytest.raises(ValueError, match="late"):
            async with time_limit(0.01, lambda: ValueError("late")):
                await maybe_await(work())
        assert cleaned_up
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    @pytest.mark.parametrize("function", [_ignore_cancellation, _fail_when_cancelled])
    async def test_is_late_whatever_user_code_does_when_cancelled(
        self, function: Callable[[], Awaitable[None]]
    ) -> None:
        with pytest.raises(ValueError, match="late"):
            async with time_limit(0.01, lambda: ValueError("late")):
                await maybe_await(function())

    async def test_block_ends_without_an_error_where_there_is_none(self) -> None:
        lines: list[str] = []
        async with time_limit(0.01, lambda: lines.append("late")):
            await asyncio.Event().wait()
        assert lines == ["late"]

    async def test_timeout_error_of_user_code_stays_its_own(self) -> None:
        with pytest.raises(TimeoutError, match="mine"):
            async with time_limit(60, lambda: ValueError("late")):
                raise TimeoutError("mine")

    async def test_cancellation_of_the_caller_is_raised_at_the_deadline_too(self) -> None:
        async def limited() -> None:
            async with time_limit(0, lambda: ValueError("late")):
                await maybe_await(asyncio.Event().wait())

        task = asyncio.create_task(limited())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


async def fail_in_a_group() -> None:
    """Fail in a child while the group waits: before Python 3.13, that leaves a request to cancel the task behind."""

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("no quota")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


async def recover_from_a_group() -> str:
    with suppress(ExceptionGroup):
        await fail_in_a_group()
    return "recovered"


class TestTaskGroups:
    async def test_failing_one_is_a_failure_and_no_cancellation(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        ends_when(task, lambda: False)
        with pytest.raises(ExceptionGroup) as caught:
            await maybe_await(fail_in_a_group())
        assert caught.group_contains(ValueError, match="no quota")
        assert await maybe_await(recover_from_a_group()) == "recovered"
        assert not task.cancelling()

    async def test_task_that_has_ended_is_not_kept(self) -> None:
        class Listener:
            def is_ending(self) -> bool:
                return False

        listener = Listener()
        task = asyncio.create_task(asyncio.sleep(0))
        listener.task = task  # type: ignore[attr-defined]
        ends_when(task, listener.is_ending)
        await task
        kept = weakref.ref(listener)
        del listener, task
        await turns(2)
        gc.collect()
        assert kept() is None

    async def test_cancellation_meanwhile_is_raised(self) -> None:
        async def work() -> None:
            await maybe_await(recover_from_a_group())
            await maybe_await(_ignore_cancellation())

        is_ending = False
        task = asyncio.create_task(work())
        ends_when(task, lambda: is_ending)
        await turns(6)
        is_ending = task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
