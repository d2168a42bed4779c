"""Handler registrations: adding, syncing and removing at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    KubeObject,
    ListOptions,
    Registration,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
    SyncTimeout,
    TransportError,
)
from aioinformer.errors import InformerError, WrongEventLoopError

from ..reflector.scripted import FOREVER, Scripted, Stream, added, page, raw_pod
from ..steps import until
from ..virtual_time import VirtualTimeLoop, cancel_after, run, settle, virtual_time
from .handlers import Follower
from .subject import BY, By, informer_of


class TestAdding:
    @virtual_time
    async def test_handler_added_while_running_gets_stored_objects_first(self) -> None:
        """C40, TestAddWhileActive."""
        subject = informer_of("a", "b", watch=[5.0, added("c", 11), FOREVER])
        async with subject:
            await subject.wait_synced()
            follower = Follower()
            registration = subject.add_event_handler(follower)
            assert not registration.has_synced()
            await registration.wait_synced()
            assert follower.calls == ["add a 1", "add b 2"]
            await asyncio.sleep(10)
        assert follower.calls == ["add a 1", "add b 2", "add c 11"]
        assert follower.initial == [True, True, False]

    def test_handler_added_at_any_step_misses_and_repeats_nothing(self) -> None:
        """C40: also in the middle of the initial list."""
        for steps in range(40):

            async def main(steps: int = steps) -> None:
                subject = informer_of("a", "b", "c", watch=[[added("d", 11)], added("e", 12), FOREVER])
                async with subject:
                    await settle(steps)
                    follower = Follower()
                    registration = subject.add_event_handler(follower)
                    await registration.wait_synced()
                    assert set(follower.copy) >= {"default/a", "default/b", "default/c"}
                    await asyncio.sleep(1)
                    assert sorted(follower.calls) == ["add a 1", "add b 2", "add c 3", "add d 11", "add e 12"]
                    assert not follower.wrong

            run(main())

    @virtual_time
    async def test_same_handler_added_twice_is_two_registrations(self) -> None:
        """C51."""
        subject = informer_of("a")
        seen: list[str] = []
        handler = ResourceEventHandlerFuncs[KubeObject](on_add=lambda obj, initial: seen.append(obj.name))
        first, second = subject.add_event_handler(handler), subject.add_event_handler(handler)
        async with subject:
            await first.wait_synced()
            await second.wait_synced()
            assert seen == ["a", "a"]
            subject.remove_event_handler(first)
            assert len(subject.state.handlers) == 1

    def test_name_argument(self) -> None:
        subject = informer_of()
        registrations = [subject.add_event_handler(Follower(), name="web") for _ in range(2)]
        assert [registration.state.name for registration in registrations] == ["web", "web (2)"]
        with pytest.raises(ConfigError, match="name must be a string, not 7"):
            subject.add_event_handler(Follower(), name=7)  # type: ignore[arg-type]

    @virtual_time
    async def test_add_after_stop_raises(self) -> None:
        """C52."""
        subject = informer_of("a")
        async with subject:
            await subject.wait_synced()
        with pytest.raises(
            StoppedError, match="a follower was not added to shared informer because it has stopped already"
        ):
            subject.add_event_handler(Follower())

    @virtual_time
    async def test_handler_may_add_a_handler(self) -> None:
        follower = Follower()

        def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            if obj.name == "a":
                subject.add_event_handler(follower)

        subject = informer_of("a", "b", watch=[added("c", 11), FOREVER])
        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(1)
        assert sorted(follower.calls) == ["add a 1", "add b 2", "add c 11"]


class TestRemoving:
    @virtual_time
    async def test_remove_drops_pending_notifications(self) -> None:
        subject = informer_of("a", "b", "c")
        follower = Follower(seconds=10.0)
        registration = subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(5)
            subject.remove_event_handler(registration)
            assert registration.state.depth == 0
            await asyncio.sleep(60)
        assert follower.calls == ["add a 1"]
        assert not follower._busy, "the running call finished"

    @virtual_time
    async def test_remove_twice_or_foreign_or_late_does_nothing(self) -> None:
        """C52."""
        subject, other = informer_of("a"), informer_of("a")
        registration = subject.add_event_handler(Follower())
        foreign = other.add_event_handler(follower := Follower())
        async with subject, other:
            await subject.wait_synced()
            subject.remove_event_handler(foreign)
            subject.remove_event_handler(registration)
            subject.remove_event_handler(registration)
            await foreign.wait_synced()
        subject.remove_event_handler(registration)
        other.remove_event_handler(foreign)
        assert follower.calls == ["add a 1"]

    @virtual_time
    async def test_remove_before_the_start(self) -> None:
        """C53: returns at once."""
        subject = informer_of("a")
        registration = subject.add_event_handler(follower := Follower())
        subject.remove_event_handler(registration)
        async with subject:
            await subject.wait_synced()
            await settle()
        assert not follower.calls

    @pytest.mark.parametrize("count", [3, 2000])
    @virtual_time
    async def test_handler_may_remove_itself(self, count: int) -> None:
        """C53, W17: no deadlock, whatever is pending; other handlers continue."""
        registrations: list[Registration] = []
        seen: list[str] = []

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            seen.append(obj.name)
            await asyncio.sleep(1)
            subject.remove_event_handler(registrations[0])

        subject = informer_of(*(str(n) for n in range(count)), watch=[5.0, added("last", 11), FOREVER])
        registrations.append(subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add)))
        other = Follower()
        subject.add_event_handler(other)
        async with subject:
            await asyncio.sleep(10)
            assert not subject.is_stopped
        assert seen == ["0"]
        assert len(other.calls) == count + 1

    @virtual_time
    async def test_handler_may_remove_another(self) -> None:
        subject = informer_of("a", "b")
        other = subject.add_event_handler(Follower(seconds=1.0))

        def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            subject.remove_event_handler(other)

        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(10)
            assert len(subject.state.handlers) == 1

    @pytest.mark.parametrize("started", [False, True])
    @virtual_time
    async def test_remove_without_server_ends_waits(self, started: bool) -> None:
        subject = SharedIndexInformer(Scripted([TransportError("no connection")] * 100), KubeObject)
        registration = subject.add_event_handler(Follower())
        waiting = asyncio.create_task(registration.wait_synced())
        async with subject if started else nullcontext():
            await asyncio.sleep(1)
            subject.remove_event_handler(registration)
            for wait in (waiting, registration.wait_synced()):
                with pytest.raises(StoppedError, match="stopped or removed before it had synced"):
                    await asyncio.wait_for(wait, 1)


class TestShutDownEventHandler:
    """C53: ShutDownEventHandler, which also waits for the running call."""

    @virtual_time
    async def test_shut_down_waits_for_the_running_call_only_c53(self) -> None:
        """TestShutDownEventHandler_Lifecycles, TestRemoveEventHandler_SynchronousShutdown."""
        subject = informer_of("a", "b", "c")
        follower = Follower(seconds=10.0)
        registration = subject.add_event_handler(follower)
        loop = asyncio.get_running_loop()
        async with subject:
            await asyncio.sleep(12)
            started = loop.time()
            await subject.shut_down_event_handler(registration)
            assert loop.time() - started == pytest.approx(8.0)
            assert follower.calls == ["add a 1", "add b 2"]
            assert not follower._busy
            await asyncio.sleep(60)
            assert len(follower.calls) == 2

    @pytest.mark.parametrize("when", ["never started", "idle", "removed", "ended", "foreign"])
    @virtual_time
    async def test_shut_down_without_running_call_returns_at_once_c53(self, when: str) -> None:
        subject, other = informer_of("a"), informer_of("a")
        registration = subject.add_event_handler(Follower(seconds=1.0))
        foreign = other.add_event_handler(Follower(seconds=1.0))
        if when == "never started":
            await subject.shut_down_event_handler(registration)
            return
        loop = asyncio.get_running_loop()
        async with subject, other:
            await (foreign if when == "foreign" else registration).wait_synced()
            if when == "ended":
                await subject.__aexit__(None, None, None)
            if when == "removed":
                await subject.shut_down_event_handler(registration)
            started = loop.time()
            await subject.shut_down_event_handler(foreign if when == "foreign" else registration)
            assert loop.time() == started
            assert len(other.state.handlers) == 1

    @virtual_time
    async def test_shut_down_after_remove_waits_for_the_running_call_c53(self) -> None:
        subject = informer_of("a")
        follower = Follower(seconds=10.0)
        registration = subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(1)
            subject.remove_event_handler(registration)
            await subject.shut_down_event_handler(registration)
            assert not follower._busy

    @virtual_time
    async def test_stuck_call_of_removed_handler_counts_until_cancelled(self) -> None:
        """For example, a handler of a closed browser tab that waits for room in a queue without a consumer."""
        ended: list[str] = []

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(obj.name)

        subject = informer_of("a", "b")
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        other = Follower()
        subject.add_event_handler(other)
        async with subject:
            await asyncio.sleep(1)
            tasks = len(asyncio.all_tasks())
            subject.remove_event_handler(registration)
            await asyncio.sleep(60)
            assert (len(subject.state.handlers), subject.state.leaving, ended) == (1, 1, [])
            await asyncio.wait_for(subject.shut_down_event_handler(registration, cancel=True), 1)
            assert (subject.state.leaving, ended) == (0, ["a"])
            await settle()
            assert len(asyncio.all_tasks()) == tasks - 2, "its pop task and its run task have ended"
            assert not subject.is_stopped
        assert other.calls == ["add a 1", "add b 2"]

    @pytest.mark.parametrize("by", BY)
    @virtual_time
    async def test_shut_down_is_refused_inside_itself_and_waits_inside_others_w17(self, by: By) -> None:
        """W17: upstream deadlocks."""
        errors: list[InformerError] = []
        waited: list[float] = []
        loop = asyncio.get_running_loop()

        async def mine(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await by(subject.shut_down_event_handler(registrations[0]))
            except InformerError as error:
                errors.append(error)

        async def others(obj: KubeObject, is_in_initial_list: bool) -> None:
            await by(subject.shut_down_event_handler(registrations[1]))
            waited.append(loop.time() - started)

        subject = informer_of("a")
        registrations = [
            subject.add_event_handler(ResourceEventHandlerFuncs(on_add=mine)),
            subject.add_event_handler(Follower(seconds=5.0)),
            subject.add_event_handler(ResourceEventHandlerFuncs(on_add=others)),
        ]
        async with subject:
            started = loop.time()
            await asyncio.sleep(10)
        assert "shut down from inside its own handler" in str(errors[0])
        assert waited == [pytest.approx(5.0)]

    @virtual_time
    async def test_shut_down_is_refused_in_a_task_that_the_handler_returns_w17(self) -> None:
        subject = informer_of("a", watch=[5.0, added("quick", 11), 5.0, added("b", 12), FOREVER])

        def on_add(obj: KubeObject, is_in_initial_list: bool) -> object:
            return ending(obj) if obj.name != "quick" else None

        errors: list[InformerError] = []

        def ending(obj: KubeObject) -> asyncio.Task[None]:
            async def end() -> None:
                try:
                    await subject.shut_down_event_handler(registration)
                except InformerError as error:
                    errors.append(error)

            return asyncio.create_task(end())

        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(20)
        assert ["shut down from inside its own handler" in str(error) for error in errors] == [True, True]

    @pytest.mark.parametrize("elsewhere", [False, True], ids=["of this informer", "of one started there"])
    @virtual_time
    async def test_handler_added_by_a_running_call_is_not_inside_it(self, elsewhere: bool) -> None:
        ended = asyncio.get_running_loop().create_future()

        def end(obj: KubeObject, is_in_initial_list: bool) -> None:
            ending = asyncio.create_task(subject.shut_down_event_handler(registration, cancel=True))
            ending.add_done_callback(lambda task: ended.set_result(task.exception()))

        async def add(obj: KubeObject, is_in_initial_list: bool) -> None:
            (other if elsewhere else subject).add_event_handler(ResourceEventHandlerFuncs(on_add=end))
            async with other:
                await asyncio.sleep(100)

        subject, other = informer_of("a"), informer_of("a")
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=add))
        async with subject:
            assert await asyncio.wait_for(ended, 10) is None

    @virtual_time
    async def test_shut_down_during_stop_waits_for_the_handlers_end(self) -> None:
        cleaned: list[bool] = []

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(5)
                cleaned.append(True)

        subject = informer_of("a")
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        task = subject.begin()
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        await subject.shut_down_event_handler(registration)
        assert cleaned
        with pytest.raises(StoppedError):
            subject.add_event_handler(Follower())
        await asyncio.wait({task})

    @virtual_time
    async def test_cancelled_shut_down_has_removed_the_handler(self) -> None:
        subject = informer_of("a")
        async with subject:
            for steps in range(1, 6):
                registration = subject.add_event_handler(Follower(seconds=3.0))
                await asyncio.sleep(1)
                assert await cancel_after(
                    steps, asyncio.create_task(subject.shut_down_event_handler(registration))
                )
                assert not subject.state.handlers

    @pytest.mark.parametrize("what", [None, Follower()], ids=["none", "the handler"])
    @virtual_time
    async def test_invalid_registration_is_refused(self, what: Any) -> None:
        subject = informer_of("a")
        subject.add_event_handler(Follower())
        with pytest.raises(ConfigError, match="that add_event_handler returned"):
            subject.remove_event_handler(what)
        with pytest.raises(ConfigError, match="that add_event_handler returned"):
            await subject.shut_down_event_handler(what)
        assert len(subject.state.handlers) == 1


class TestOtherLoopsAndThreads:
    """An informer belongs to one event loop."""

    async def test_use_in_another_loop_or_thread_raises_and_the_informer_continues(self) -> None:
        more = asyncio.Event()

        class Server(Scripted):
            async def watch(self, options: ListOptions) -> Stream:
                await more.wait()
                return await super().watch(options)

        subject = SharedIndexInformer(
            Server([page(raw_pod("a"), version=10)], [[added("b", 11), FOREVER]]), KubeObject
        )
        registration = subject.add_event_handler(Follower())
        async with subject:
            await registration.wait_synced()
            for wait in (subject.wait_synced, registration.wait_synced):
                with pytest.raises(WrongEventLoopError, match="runs in another event loop"):
                    await elsewhere(wait)
            with pytest.raises(WrongEventLoopError):
                await elsewhere(lambda: subject.shut_down_event_handler(registration))
            with pytest.raises(WrongEventLoopError):
                await elsewhere(lambda: subject.__aexit__(None, None, None))
            with pytest.raises(WrongEventLoopError):
                await asyncio.to_thread(subject.add_event_handler, Follower())
            with pytest.raises(WrongEventLoopError):
                await asyncio.to_thread(subject.remove_event_handler, registration)
            with pytest.raises(WrongEventLoopError):
                await asyncio.to_thread(subject.add_indexers, {"node": "spec.nodeName"})
            assert len(subject.state.handlers) == 1
            assert "node" not in subject.indexer.indexers
            more.set()
            await until(lambda: len(subject.store) == 2)

    async def test_first_wait_before_the_start_binds_the_event_loop(self) -> None:
        subject = informer_of("a")
        waiting = asyncio.create_task(subject.wait_synced())
        await settle()
        with pytest.raises(WrongEventLoopError):
            await elsewhere(subject.run)
        async with subject:
            await waiting

    async def test_remove_after_stop_works_in_any_thread(self) -> None:
        """C52."""
        subject = informer_of("a")
        registration = subject.add_event_handler(Follower())
        async with subject:
            await subject.wait_synced()
        await asyncio.to_thread(subject.remove_event_handler, registration)


async def elsewhere(function: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run a coroutine in another thread's event loop."""
    await asyncio.to_thread(lambda: asyncio.run(function()))


class TestSyncing:
    @virtual_time
    async def test_has_synced_after_last_initial_add_returned(self) -> None:
        """C41."""
        subject = informer_of("a", "b", watch=[added("c", 11), FOREVER])
        follower = Follower(seconds=2.0)
        registration = subject.add_event_handler(follower)
        loop = asyncio.get_running_loop()
        async with subject:
            started = loop.time()
            await subject.wait_synced()
            assert not registration.has_synced()
            await registration.wait_synced()
            assert loop.time() - started == pytest.approx(4.0)
            assert follower.calls[:2] == ["add a 1", "add b 2"]

    @virtual_time
    async def test_handler_of_empty_collection_syncs_with_the_informer(self) -> None:
        """C41."""
        subject = informer_of()
        registration = subject.add_event_handler(Follower())
        async with subject:
            await subject.wait_synced()
            assert registration.has_synced()

    @virtual_time
    async def test_handler_does_not_sync_before_the_informer(self) -> None:
        subject = SharedIndexInformer(Scripted(), KubeObject)
        registration = subject.add_event_handler(Follower())
        assert not registration.has_synced()
        async with subject:
            await settle()
            assert not registration.has_synced()

    @virtual_time
    async def test_handler_removed_before_sync_never_syncs(self) -> None:
        subject = informer_of("a")
        early, late = Follower(), Follower()
        registration = subject.add_event_handler(early)
        other = subject.add_event_handler(late)
        subject.remove_event_handler(registration)
        async with subject:
            await other.wait_synced()
            subject.remove_event_handler(other)
            assert other.has_synced()
            assert not registration.has_synced()
            with pytest.raises(StoppedError, match="before it had synced"):
                await registration.wait_synced()
        assert other.has_synced()

    @virtual_time
    async def test_timeout_names_informer_handler_and_key(self) -> None:
        subject = informer_of("a", "b")
        registration = subject.add_event_handler(Follower(seconds=100.0))
        async with subject:
            with pytest.raises(SyncTimeout) as caught:
                await registration.wait_synced(timeout=150.0)
        message = str(caught.value)
        assert "<Registration of a follower with <SharedIndexInformer scripted pods>>" in message
        assert "not synced after 150 s" in message
        assert "at default/b" in message
        assert "synced, 2 objects" in message
        assert isinstance(caught.value, TimeoutError)
        error = caught.value
        assert (error.informer, error.handler, error.key) == ("scripted pods", "a follower", "default/b")

    @virtual_time
    async def test_timeout_includes_the_informers_last_error(self) -> None:
        subject = SharedIndexInformer(Scripted([OSError("refused")] * 9), KubeObject)
        registration = subject.add_event_handler(Follower())
        async with subject:
            with pytest.raises(SyncTimeout, match=r"a follower.*not synced after 5 s.*last error: refused"):
                await registration.wait_synced(timeout=5)

    @virtual_time
    async def test_late_check_of_timeout_still_returns_if_synced(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        work, began = loop.work, loop.time()
        subject = informer_of("a")
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(lambda obj, initial: work(20.0)))
        async with subject:
            await registration.wait_synced(timeout=10)
            assert loop.time() - began > 10

    @virtual_time
    async def test_timeout_of_zero_checks_once(self) -> None:
        subject = SharedIndexInformer(Scripted([1.0, page(raw_pod("a"), version=10)]), KubeObject)
        registration = subject.add_event_handler(Follower())
        async with subject:
            with pytest.raises(SyncTimeout):
                await registration.wait_synced(timeout=0)
            await registration.wait_synced()
            await registration.wait_synced(timeout=0)

    @pytest.mark.parametrize("how", ["stopped", "removed"])
    @virtual_time
    async def test_stop_and_remove_end_waits(self, how: str) -> None:
        subject = informer_of("a", "b", "c")
        registration = subject.add_event_handler(Follower(seconds=10.0))
        async with subject:
            await asyncio.sleep(15)
            waiting = asyncio.create_task(registration.wait_synced())
            await settle()
            if how == "removed":
                subject.remove_event_handler(registration)
                await asyncio.sleep(60)
                assert waiting.done()
        with pytest.raises(StoppedError, match="a follower"):
            await waiting
        assert not registration.has_synced()

    @virtual_time
    async def test_has_synced_stays_true_after_stop(self) -> None:
        """C58."""
        subject = informer_of("a")
        registration = subject.add_event_handler(Follower())
        async with subject:
            await registration.wait_synced()
        assert registration.has_synced()
        await registration.wait_synced()

    @virtual_time
    async def test_state_of_a_registration(self) -> None:
        subject = informer_of("a", "b", "c")
        registration = subject.add_event_handler(Follower(seconds=10.0, raises=1))
        async with subject:
            await asyncio.sleep(15)
            state: Any = registration.state
            assert (state.depth, state.high_water, state.delivered, state.failed) == (2, 3, 1, 1)
            assert state.handling == "default/b"
