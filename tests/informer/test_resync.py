"""Which handlers get notifications of relists and resyncs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject, ResourceEventHandlerFuncs, SharedIndexInformer, WatchEvent
from aioinformer.cache import ProcessorListener

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    GONE,
    Scripted,
    page,
    raw_pod,
)
from ..virtual_time import run, settle, virtual_time
from .handlers import Follower
from .subject import informer


class TestRelistsAndResyncs:
    @pytest.mark.parametrize("resync", [0.0, 1000.0])
    @virtual_time
    async def test_unchanged_objects_of_a_relist_are_not_notified(self, resync: float) -> None:
        """C43, C44: difference from upstream, which notifies every handler of every object if resync is off."""
        server = Scripted(
            [
                page(raw_pod("a", 1), raw_pod("b", 2), version=10),
                page(raw_pod("a", 1), raw_pod("b", 15), version=20),
            ],
            [[6.0, GONE]],
        )
        subject = SharedIndexInformer(server, KubeObject, resync, random=NoJitter())
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(60)
        assert follower.calls == ["add a 1", "add b 2", "update b 2 15"]

    @virtual_time
    async def test_unchanged_objects_of_a_relist_reach_handlers_whose_resync_is_due(self) -> None:
        """C43."""
        server = Scripted(
            [page(raw_pod("a", 1), version=10), page(raw_pod("a", 1), version=20)], [[12.0, GONE]]
        )
        subject = SharedIndexInformer(server, KubeObject, 10.0, random=NoJitter())
        often, never = Follower(), Follower()
        subject.add_event_handler(often)
        subject.add_event_handler(never, 0.0)
        async with subject:
            await asyncio.sleep(15)
        assert often.resyncs == 2, "one at 10 s, and one by the list at 12.8 s"
        assert never.resyncs == 0

    @virtual_time
    async def test_resync_of_object_without_version_reaches_due_handlers_only(self) -> None:
        subject = SharedIndexInformer(Scripted([page(b'{"metadata":{"name":"a"}}', version=10)]), dict, 10.0)
        often, never = Follower(), Follower()
        subject.add_event_handler(
            ResourceEventHandlerFuncs(on_update=lambda old, new: often.calls.append(""))
        )
        subject.add_event_handler(
            ResourceEventHandlerFuncs(on_update=lambda old, new: never.calls.append("")), 0.0
        )
        async with subject:
            await asyncio.sleep(25)
        assert (len(often.calls), len(never.calls)) == (2, 0)

    @virtual_time
    async def test_repeated_object_without_version_is_an_update(self) -> None:
        unnumbered = raw_pod("a", "")
        server = Scripted(
            [page(unnumbered, version=10), page(unnumbered, version=20)],
            [[6.0, WatchEvent("MODIFIED", unnumbered), GONE]],
        )
        subject = SharedIndexInformer(server, KubeObject, 1000.0, random=NoJitter())
        versions: list[str] = []
        never = ResourceEventHandlerFuncs[KubeObject](
            on_update=lambda old, new: versions.append(new.resource_version)
        )
        subject.add_event_handler(never, 0.0)
        async with subject:
            await asyncio.sleep(15)
        assert versions == ["", ""]

    @virtual_time
    async def test_each_handler_has_its_own_period(self) -> None:
        """C46 (the shortest before the start is the check period), C48, C49 (rounded up to a multiple of it)."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 100.0)
        periods = {2.0: 50, 3.0: 25, 5.0: 16, 100.0: 1, 0.0: 0}
        followers = {period: Follower() for period in periods}
        for period, follower in followers.items():
            subject.add_event_handler(follower, period)
        async with subject:
            await asyncio.sleep(101)
        assert {period: follower.resyncs for period, follower in followers.items()} == periods

    def test_period_of_handler_added_without_event_loop(self) -> None:
        """The period counts from the start."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 2.0)
        follower = Follower()
        subject.add_event_handler(follower, 5.0)

        async def main() -> None:
            async with subject:
                await asyncio.sleep(5.9)
                assert follower.resyncs == 0
                await asyncio.sleep(0.2)
                assert follower.resyncs == 1

        run(main())

    @virtual_time
    async def test_period_of_handler_added_before_start_counts_from_registration(self) -> None:
        """C49: also if the informer starts much later."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 1.0)
        follower = Follower()
        subject.add_event_handler(follower, 7.0)
        await asyncio.sleep(30)
        async with subject:
            await asyncio.sleep(1.5)
            assert follower.resyncs == 1
            await asyncio.sleep(6)
            assert follower.resyncs == 1
            await asyncio.sleep(1)
            assert follower.resyncs == 2

    @virtual_time
    async def test_period_of_handler_added_while_running_counts_from_registration(self) -> None:
        """C49."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 10.0)
        follower = Follower()
        async with subject:
            await asyncio.sleep(5)
            subject.add_event_handler(follower, 30.0)
            await asyncio.sleep(34)
            assert follower.resyncs == 0
            await asyncio.sleep(2)
            assert follower.resyncs == 1

    def test_early_timer_does_not_skip_a_period(self) -> None:
        """uvloop's timers fire up to a millisecond early."""
        listener = ProcessorListener(Follower(), 10.0, 10.0)
        listener.determine_next_resync(100.0)
        assert listener.should_resync(109.999)
        assert not listener.should_resync(109.9)

    @virtual_time
    async def test_period_below_a_second_is_raised_to_a_second(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C45."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 100.0)
        follower = Follower()
        subject.add_event_handler(follower, 0.1)
        async with subject:
            await asyncio.sleep(10.5)
        assert follower.resyncs == 10
        assert "raised to 1 s" in caplog.text

    @virtual_time
    async def test_period_of_late_handler_is_raised_to_the_check_period(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C46."""
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 20.0)
        follower = Follower()
        async with subject:
            await settle()
            subject.add_event_handler(follower, 5.0)
            await asyncio.sleep(41)
        assert follower.resyncs == 2
        assert "raised to 20 s" in caplog.text

    @virtual_time
    async def test_period_is_ignored_if_the_informer_does_not_resync(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C47."""
        subject = informer(Scripted([page(raw_pod("a", 1), version=10)]))
        follower = Follower()
        subject.add_event_handler(follower, 5.0)
        async with subject:
            await asyncio.sleep(100)
        assert follower.resyncs == 0
        assert "is ignored; give the informer or its factory a default_resync_period" in caplog.text

    @pytest.mark.parametrize(
        "wrong", [{"handler": object()}, {"backlog": "none"}, {"name": 7}, {"resync_period": -1.0}]
    )
    @virtual_time
    async def test_refused_handler_does_not_change_the_check_period(self, wrong: dict[str, Any]) -> None:
        subject = SharedIndexInformer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 20.0)
        with pytest.raises(ConfigError):
            subject.add_event_handler(**{"handler": Follower(), "resync_period": 1.0, **wrong})
        async with subject:
            await settle()
            subject.add_event_handler(follower := Follower(), 5.0)
            await asyncio.sleep(41)
        assert follower.resyncs == 2, "every 20 s: the refused period has no effect"

    @virtual_time
    async def test_relists_do_not_delay_resyncs(self) -> None:
        """C50: difference from upstream."""
        server = Scripted([page(raw_pod("a", 1), version=10)] * 50, [[6.0, GONE]] * 50)
        subject = SharedIndexInformer(server, KubeObject, 10.0, random=NoJitter())
        calls = 0

        def on_update(old: KubeObject, new: KubeObject) -> None:
            nonlocal calls
            calls += 1

        subject.add_event_handler(ResourceEventHandlerFuncs(on_update=on_update))
        async with subject:
            await asyncio.sleep(101)
        assert calls >= 10

    @virtual_time
    async def test_outage_does_not_delay_resyncs(self) -> None:
        server = Scripted(
            [page(raw_pod("a", 1), version=10)], [[6.0, OSError("cut")], *[OSError("down")] * 50]
        )
        subject = SharedIndexInformer(server, KubeObject, 10.0)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(101)
        assert follower.resyncs == 10
