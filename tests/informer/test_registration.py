"""A handler's registration: added at any time, asked whether it has synced, removed at any time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    KubeObject,
    Registration,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
    SyncTimeout,
)

from ..reflector.scripted import FOREVER, Scripted, Step, added, page, pod
from ..virtual_time import cancel_after, run, settled, virtual_time
from .handlers import Follower


def informer(*names: str, watch: list[Step] | None = None) -> SharedIndexInformer[KubeObject]:
    watches = [] if watch is None else [watch]
    items = [pod(name, version) for version, name in enumerate(names, 1)]
    return SharedIndexInformer(Scripted([page(*items, version=10)], watches), KubeObject)


class TestAdding:
    @virtual_time
    async def test_while_running_what_is_there_comes_first_as_of_the_initial_list(self) -> None:
        """C40, TestAddWhileActive."""
        subject = informer("a", "b", watch=[5.0, added("c", 11), FOREVER])
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

    def test_at_any_moment_nothing_is_missed_and_nothing_comes_twice(self) -> None:
        """C40: also in the middle of the initial list."""
        for steps in range(40):

            async def main(steps: int = steps) -> None:
                subject = informer("a", "b", "c", watch=[[added("d", 11)], added("e", 12), FOREVER])
                async with subject:
                    await settled(steps)
                    follower = Follower()
                    registration = subject.add_event_handler(follower)
                    await registration.wait_synced()
                    assert set(follower.copy) >= {"default/a", "default/b", "default/c"}
                    await asyncio.sleep(1)
                    assert sorted(follower.calls) == ["add a 1", "add b 2", "add c 3", "add d 11", "add e 12"]
                    assert not follower.wrong

            run(main())

    @virtual_time
    async def test_the_same_handler_twice_is_two_registrations(self) -> None:
        """C51."""
        subject = informer("a")
        seen: list[str] = []
        handler = ResourceEventHandlerFuncs[KubeObject](on_add=lambda obj, initial: seen.append(obj.name))
        first, second = subject.add_event_handler(handler), subject.add_event_handler(handler)
        async with subject:
            await first.wait_synced()
            await second.wait_synced()
            assert seen == ["a", "a"]
            subject.remove_event_handler(first)
            assert len(subject.state.handlers) == 1

    @virtual_time
    async def test_after_the_end(self) -> None:
        """C52."""
        subject = informer("a")
        async with subject:
            await subject.wait_synced()
        with pytest.raises(
            StoppedError, match="a follower was not added to shared informer because it has stopped already"
        ):
            subject.add_event_handler(Follower())

    @virtual_time
    async def test_by_a_handler(self) -> None:
        follower = Follower()

        def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            if obj.name == "a":
                subject.add_event_handler(follower)

        subject = informer("a", "b", watch=[added("c", 11), FOREVER])
        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(1)
        assert sorted(follower.calls) == ["add a 1", "add b 2", "add c 11"]


class TestRemoving:
    @virtual_time
    async def test_nothing_more_is_told_and_what_waits_is_dropped(self) -> None:
        subject = informer("a", "b", "c")
        follower = Follower(seconds=10.0)
        registration = subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(5)
            subject.remove_event_handler(registration)
            assert registration.state.depth == 0
            await asyncio.sleep(60)
        assert follower.calls == ["add a 1"]
        assert not follower._busy, "the call that was running went on"

    @virtual_time
    async def test_twice_or_elsewhere_or_late_is_no_error(self) -> None:
        """C52."""
        subject, other = informer("a"), informer("a")
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
    async def test_before_the_start(self) -> None:
        """C53: returns at once."""
        subject = informer("a")
        registration = subject.add_event_handler(follower := Follower())
        subject.remove_event_handler(registration)
        async with subject:
            await subject.wait_synced()
            await settled()
        assert not follower.calls

    @pytest.mark.parametrize("count", [3, 2000])
    @virtual_time
    async def test_by_the_handler_itself(self, count: int) -> None:
        """C53, W17: no deadlock, whatever waits behind it; others are told on."""
        registrations: list[Registration] = []
        seen: list[str] = []

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            seen.append(obj.name)
            await asyncio.sleep(1)
            subject.remove_event_handler(registrations[0])

        subject = informer(*(str(n) for n in range(count)), watch=[5.0, added("last", 11), FOREVER])
        registrations.append(subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add)))
        other = Follower()
        subject.add_event_handler(other)
        async with subject:
            await asyncio.sleep(10)
            assert not subject.is_stopped
        assert seen == ["0"]
        assert len(other.calls) == count + 1

    @virtual_time
    async def test_of_another_by_a_handler(self) -> None:
        subject = informer("a", "b")
        victim = subject.add_event_handler(Follower(seconds=1.0))

        def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            subject.remove_event_handler(victim)

        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(10)
            assert len(subject.state.handlers) == 1


class TestSyncing:
    @virtual_time
    async def test_only_once_the_handler_has_returned_from_the_last_initial_add(self) -> None:
        """C41."""
        subject = informer("a", "b", watch=[added("c", 11), FOREVER])
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
    async def test_of_an_empty_collection_as_soon_as_the_informer(self) -> None:
        """C41."""
        subject = informer()
        registration = subject.add_event_handler(Follower())
        async with subject:
            await subject.wait_synced()
            assert registration.has_synced()

    @virtual_time
    async def test_not_before_the_informer(self) -> None:
        subject = SharedIndexInformer(Scripted(), KubeObject)
        registration = subject.add_event_handler(Follower())
        assert not registration.has_synced()
        async with subject:
            await settled()
            assert not registration.has_synced()

    @virtual_time
    async def test_a_timeout_names_informer_handler_and_key(self) -> None:
        subject = informer("a", "b")
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

    @virtual_time
    async def test_a_timeout_while_the_informer_has_not_synced_says_why(self) -> None:
        subject = SharedIndexInformer(Scripted([OSError("refused")] * 9), KubeObject)
        registration = subject.add_event_handler(Follower())
        async with subject:
            with pytest.raises(SyncTimeout, match=r"a follower.*not synced after 5 s.*last error: refused"):
                await registration.wait_synced(timeout=5)

    @virtual_time
    async def test_no_time_at_all_is_enough_for_what_has_synced(self) -> None:
        subject = informer("a")
        registration = subject.add_event_handler(Follower())
        async with subject:
            with pytest.raises(SyncTimeout):
                await registration.wait_synced(timeout=0)
            await registration.wait_synced()
            await registration.wait_synced(timeout=0)

    @pytest.mark.parametrize("how", ["stopped", "removed"])
    @virtual_time
    async def test_waiting_ends_when_it_cannot_be_any_more(self, how: str) -> None:
        subject = informer("a", "b", "c")
        registration = subject.add_event_handler(Follower(seconds=10.0))
        async with subject:
            await asyncio.sleep(15)
            waiting = asyncio.create_task(registration.wait_synced())
            await settled()
            if how == "removed":
                subject.remove_event_handler(registration)
                await asyncio.sleep(60)
                assert waiting.done()
        with pytest.raises(StoppedError, match="a follower"):
            await waiting
        assert not registration.has_synced()

    @virtual_time
    async def test_synced_stays_so(self) -> None:
        """C58."""
        subject = informer("a")
        registration = subject.add_event_handler(Follower())
        async with subject:
            await registration.wait_synced()
        assert registration.has_synced()
        await registration.wait_synced()

    @virtual_time
    async def test_waiting_can_be_cancelled(self) -> None:
        subject = informer("a")
        registration: Registration = subject.add_event_handler(Follower(seconds=100.0))
        async with subject:
            for steps in range(10):
                assert await cancel_after(steps, asyncio.create_task(registration.wait_synced()))

    @virtual_time
    async def test_the_state(self) -> None:
        subject = informer("a", "b", "c")
        registration = subject.add_event_handler(Follower(seconds=10.0, raises=1))
        async with subject:
            await asyncio.sleep(15)
            state: Any = registration.state
            assert (state.depth, state.high_water, state.delivered, state.failed) == (2, 3, 1, 1)
            assert state.handling == "default/b"
