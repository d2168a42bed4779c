"""Read-your-writes: wait_for returns once the cache shows the written version."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    KubeObject,
    ListWatch,
    Resource,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
    SyncTimeout,
)
from aioinformer.errors import KeyFuncError, VersionTimeout
from aioinformer.informer.version_waits import DELETION_TIMEOUT
from aioinformer.objects.codec import codec_for

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    FOREVER,
    Scripted,
    Step,
    added,
    bookmark,
    deleted,
    error_event,
    modified,
    page,
    raw_pod,
)
from ..virtual_time import cancel_after, run, settle, virtual_time
from .handlers import Follower
from .subject import informer, versions_in_cache

pytestmark = pytest.mark.usefixtures("kept")


def written_object(name: str, version: int, namespace: str = "default") -> dict[str, Any]:
    """Return an object as a write returns it."""
    obj: dict[str, Any] = json.loads(raw_pod(name, version, namespace))
    return obj


def informer_of_steps(*steps: Step) -> SharedIndexInformer[KubeObject]:
    """Return an informer with object a at version 10, and these watch steps."""
    return informer(Scripted([page(raw_pod("a", 1), version=10)], [[*steps, FOREVER]]))


decode = codec_for(KubeObject).decode


def now() -> float:
    return asyncio.get_running_loop().time()


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    resource_version: str


class Pod(msgspec.Struct):
    metadata: Meta


class TestRestore:
    """Versions go back after a restore of etcd: writes from before it are undone."""

    def start_restored(self) -> SharedIndexInformer[KubeObject]:
        """Return an informer that has seen version 12, and relists at version 5 after ten seconds."""
        watch: list[Step] = [modified("a", 11), deleted("b", 12), 10.0, error_event(410, "Gone")]
        first = page(raw_pod("a", 1), raw_pod("b", 2), version=10)
        then = page(raw_pod("a", 1), raw_pod("b", 2), version=5)
        return informer(Scripted([first, then], [watch, [9.0, modified("a", 6), FOREVER]]))

    @virtual_time
    async def test_waits_end_with_the_relist(self) -> None:
        subject = self.start_restored()
        async with subject:
            await subject.wait_synced()
            await subject.wait_for(written_object("a", 11))
            started = now()
            waiting = [
                asyncio.create_task(subject.wait_for(what, timeout=60))
                for what in (written_object("a", 14), "13")
            ]
            pod, nothing = await asyncio.gather(*waiting)
            assert pod is not None
            assert (pod.resource_version, nothing) == ("1", None)
            assert now() - started == pytest.approx(10, abs=2)
            assert versions_in_cache(subject) == {"default/a": "1", "default/b": "2"}

    @virtual_time
    async def test_read_after_restore_does_not_wait_for_earlier_writes(self) -> None:
        subject = self.start_restored()
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            maps._record_written(decode(raw_pod("a", 11)))
            maps._record_removed("default/b", "", "")
            await subject.wait_for("12")
            await asyncio.sleep(15)
            assert subject.last_sync_resource_version == "5"
            started = now()
            assert [obj.resource_version for obj in await maps.list()] == ["1", "2"]
            assert now() == started
            assert not maps._written

    @virtual_time
    async def test_of_two_new_waits_the_one_for_an_undone_version_ends(self) -> None:
        subject = self.start_restored()
        subject.add_event_handler(Follower(seconds=9.0), backlog="block", backlog_limit=1)
        async with subject:
            await subject.wait_for("10")
            before = subject.version_waits.goal_of("13")
            while subject.last_sync_resource_version != "5":  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(1)
            started = now()
            undone = asyncio.create_task(subject.version_waits.wait(before, timeout=1000))
            later = asyncio.create_task(subject.wait_for("14"))
            await settle()
            assert len(subject.version_waits) == 2, "the handler delays the list"
            await undone
            assert now() - started < 60
            later.cancel()

    @virtual_time
    async def test_read_waits_for_writes_after_the_restore(self) -> None:
        subject = self.start_restored()
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            maps._record_written(decode(raw_pod("a", 13)))
            await subject.wait_for("12")
            await asyncio.sleep(15)
            assert subject.last_sync_resource_version == "5"
            maps._record_written(decode(raw_pod("a", 6)))
            assert (await maps.get("default/a")).resource_version == "6"


class TestDeletion:
    """The deletion's version may never arrive."""

    async def seconds_until_seen(self, key: str, *watch: Step) -> float:
        subject = informer_of_steps(*watch)
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            started = now()
            maps._record_removed(key, "uid-a", "99")
            await maps.list()
            return now() - started

    @virtual_time
    async def test_wait_for_deletion_of_absent_object_ends_after_the_timeout(self) -> None:
        assert await self.seconds_until_seen("default/b") == pytest.approx(DELETION_TIMEOUT)

    @virtual_time
    async def test_deletion_is_seen_at_a_lower_version(self) -> None:
        assert await self.seconds_until_seen("default/a", 5.0, deleted("a", 12)) == pytest.approx(5)


class TestObject:
    @pytest.mark.parametrize("version", [1, 5, 10])
    @virtual_time
    async def test_returns_at_once_if_cached_at_the_version_or_newer(self, version: int) -> None:
        subject = informer(Scripted([page(raw_pod("a", 10), version=10)]))
        async with subject:
            await subject.wait_synced()
            obj = await subject.wait_for(written_object("a", version), timeout=0)
            assert obj is not None
            assert obj.resource_version == "10"

    @virtual_time
    async def test_waits_for_a_later_event(self) -> None:
        subject = informer_of_steps(3.0, modified("a", 11), 4.0, modified("a", 12))
        async with subject:
            await subject.wait_synced()
            started = now()
            obj = await subject.wait_for(written_object("a", 11))
            assert obj is not None
            assert obj.resource_version == "11"
            assert now() - started == pytest.approx(3)
            obj = await subject.wait_for(written_object("a", 12))
            assert obj is not None
            assert obj.resource_version == "12"
            assert now() - started == pytest.approx(7)

    @virtual_time
    async def test_returns_once_stored_although_a_handler_delays_the_list(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause after each notification
        subject = informer(Scripted([page(*(raw_pod(str(number)) for number in range(20)), version=10)]))
        registration = subject.add_event_handler(Follower(seconds=1000.0), backlog="block", backlog_limit=1)
        async with subject:
            started = now()
            assert await subject.wait_for(written_object("19", 1), timeout=10) is not None
            assert now() == started
            assert not registration.has_synced()

    @virtual_time
    async def test_newer_version_of_the_object_is_enough(self) -> None:
        """Two writes in a row may arrive as one, by a list."""
        server = Scripted(
            [page(raw_pod("a", 1), version=10), page(raw_pod("a", 14), version=15)],
            [[6.0, error_event(410, "Gone")]],
        )
        subject = informer(server)
        async with subject:
            await subject.wait_synced()
            obj = await subject.wait_for(written_object("a", 12))
            assert obj is not None
            assert obj.resource_version == "14"

    @virtual_time
    async def test_versions_are_compared_as_numbers(self) -> None:
        subject = informer(Scripted([page(raw_pod("a", 9), version=9)], [[2.0, modified("a", 10), FOREVER]]))
        async with subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for(written_object("a", 10))
            assert now() - started == pytest.approx(2)

    @virtual_time
    async def test_returns_none_if_deleted_since(self) -> None:
        subject = informer_of_steps(3.0, deleted("a", 12))
        async with subject:
            await subject.wait_synced()
            assert await subject.wait_for(written_object("a", 11)) is None
            assert not subject.store.list()

    @virtual_time
    async def test_returns_none_if_created_and_deleted_between_lists(self) -> None:
        """The relist has neither event, but a newer version."""
        server = Scripted([page(version=10), page(version=20)], [[6.0, error_event(410, "Gone")]])
        subject = informer(server)
        async with subject:
            await subject.wait_synced()
            assert await subject.wait_for(written_object("b", 12)) is None

    @virtual_time
    async def test_bookmark_ends_the_wait_for_an_unselected_object(self) -> None:
        subject = informer_of_steps(50.0, bookmark(12))
        async with subject:
            await subject.wait_synced()
            started = now()
            assert await subject.wait_for(written_object("elsewhere", 12)) is None
            assert now() - started == pytest.approx(50)

    @virtual_time
    async def test_events_of_other_objects_at_lower_versions_do_not_end_the_wait(self) -> None:
        """Version 11 of another object does not imply version 13."""
        subject = informer_of_steps(3.0, modified("a", 11), 3.0, added("b", 13))
        async with subject:
            await subject.wait_synced()
            started = now()
            obj = await subject.wait_for(written_object("b", 13))
            assert obj is not None
            assert now() - started == pytest.approx(6)

    @virtual_time
    async def test_accepts_any_object_type(self) -> None:
        subject = informer_of_steps(modified("a", 11))
        async with subject:
            for form in (
                written_object("a", 11),
                KubeObject.from_dict(written_object("a", 11)),
                Pod(Meta("a", "default", "11")),
            ):
                assert await subject.wait_for(form, timeout=1) is not None

    @virtual_time
    async def test_wait_may_start_before_the_informer(self) -> None:
        subject = informer(Scripted([5.0, page(raw_pod("a", 10), version=10)]))
        waiting = asyncio.create_task(subject.wait_for(written_object("a", 10)))
        await settle()
        async with subject:
            started = now()
            obj = await waiting
            assert obj is not None
            assert now() - started == pytest.approx(5)


class TestVersion:
    @virtual_time
    async def test_version_of_the_list(self) -> None:
        subject = informer(Scripted([5.0, page(raw_pod("a", 1), raw_pod("b", 2), version=10)]))
        async with subject:
            assert await subject.wait_for("10") is None
            assert versions_in_cache(subject) == {"default/a": "1", "default/b": "2"}
            await subject.wait_for("3", timeout=0)

    @pytest.mark.parametrize("step", [modified("a", 12), added("b", 12), deleted("a", 12), bookmark(12)])
    @virtual_time
    async def test_any_event_reaches_the_version(self, step: Any) -> None:
        subject = informer_of_steps(3.0, bookmark(11), 3.0, step)
        async with subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for("12")
            assert now() - started == pytest.approx(6)

    def test_returns_only_after_all_older_events_are_stored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """DeltaFIFO orders by key: the newest version may be stored before an older version of another key."""
        monkeypatch.setattr("aioinformer.fifo.queue.LONGEST_BATCH", 7)

        async def main(steps: int) -> None:
            events = [modified("a", 11), *(added(str(n), 12 + n) for n in range(600)), modified("a", 612)]
            subject = informer_of_steps([events[0]], events[1:])
            async with subject:
                await settle(steps)
                await subject.wait_for("612")
                assert len(subject.store) == 601
                obj = subject.store.get_by_key("default/a")
                assert obj is not None
                assert obj.resource_version == "612"

        for steps in range(20):
            run(main(steps))

    @pytest.mark.parametrize("version", ["", "0", "007", "abc", "-1", "1.5", "\uff11"])
    @virtual_time
    async def test_invalid_version_is_refused(self, version: str) -> None:
        with pytest.raises(ConfigError, match="must be a resourceVersion that the server gave"):
            await informer_of_steps().wait_for(version)


class TestSeveralNamespaces:
    def subject(self) -> SharedIndexInformer[KubeObject]:
        servers = {
            "red": Scripted([page(version=10)], [[3.0, added("a", 12, namespace="red"), FOREVER]]),
            "blue": Scripted([page(version=10)], [[50.0, bookmark(13), FOREVER]]),
        }
        return SharedIndexInformer(servers, KubeObject, random=NoJitter())

    @virtual_time
    async def test_wait_for_object_needs_its_namespace_only(self) -> None:
        async with self.subject() as subject:
            await subject.wait_synced()
            started = now()
            assert await subject.wait_for(written_object("gone", 11, "red")) is None
            assert now() - started == pytest.approx(3)
            assert await subject.wait_for(written_object("a", 12, "red"), timeout=0) is not None

    @virtual_time
    async def test_wait_for_version_needs_all_namespaces(self) -> None:
        async with self.subject() as subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for("12")
            assert now() - started == pytest.approx(50)

    @virtual_time
    async def test_informer_of_one_namespace_refuses_objects_of_others(self) -> None:
        async with Client.from_url("http://localhost:1") as client:
            green = ListWatch.for_resource(client, "v1", "pods", "green")
            subject = SharedIndexInformer(green, KubeObject)
            assert list(subject.list_watches) == ["green"]
            with pytest.raises(ConfigError, match="reads the namespaces green, but not that of red/a"):
                await subject.wait_for(written_object("a", 12, "red"))

    @virtual_time
    async def test_object_of_another_namespace_is_refused(self) -> None:
        async with self.subject() as subject:
            with pytest.raises(ConfigError, match="reads the namespaces red, blue, but not that of green/a"):
                await subject.wait_for(written_object("a", 12, "green"))


class TestEndOfWait:
    @virtual_time
    async def test_timeout_has_wanted_and_reached_versions(self) -> None:
        async with informer_of_steps() as subject:
            await subject.wait_synced()
            with pytest.raises(VersionTimeout) as caught:
                await subject.wait_for(written_object("b", 12), timeout=5)
            error = caught.value
            assert (error.name, error.key, error.wanted, error.reached) == (
                "scripted pods",
                "default/b",
                "12",
                "10",
            )
            assert str(error).startswith(
                "scripted pods: not default/b at 12 after 5 s: reached 10; synced, 1 objects, 0 queued; "
                "scripted pods: watching for 5.0 s"
            )
            assert isinstance(error, SyncTimeout)
            with pytest.raises(VersionTimeout, match="not the collection at 12 after 5 s: reached 10"):
                await subject.wait_for("12", timeout=5)

    @virtual_time
    async def test_timeout_before_the_first_list(self) -> None:
        async with informer(Scripted([OSError("refused")] * 9)) as subject:
            with pytest.raises(VersionTimeout, match=r"reached no version.*last error: refused"):
                await subject.wait_for("12", timeout=5)

    @virtual_time
    async def test_outer_timeout_is_no_sync_timeout(self) -> None:
        async with informer_of_steps() as subject:
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(1):
                    await subject.wait_for("12", timeout=5)
            assert not isinstance(caught.value, SyncTimeout)

    @pytest.mark.parametrize("wanted", ["12", written_object("b", 12)])
    @virtual_time
    async def test_stop_of_the_informer_ends_the_wait(self, wanted: Any) -> None:
        async with informer_of_steps() as subject:
            await subject.wait_synced()
            waiting = asyncio.create_task(subject.wait_for(wanted))
            await settle()
        with pytest.raises(StoppedError, match="scripted pods stopped at 10 before it had reached 12"):
            await waiting
        with pytest.raises(StoppedError):
            await subject.wait_for(wanted)
        assert await subject.wait_for(written_object("a", 1)) is not None

    @virtual_time
    async def test_cancel_before_the_informer_ran_ends_the_wait(self) -> None:
        subject = informer_of_steps()
        waiting = asyncio.create_task(subject.wait_for("12"))
        await settle()
        task = subject.begin()
        task.cancel()
        with pytest.raises(StoppedError):
            await waiting

    @virtual_time
    async def test_object_without_version_or_name_is_refused(self) -> None:
        async with informer_of_steps() as subject:
            with pytest.raises(ConfigError, match=r"metadata.resourceVersion of default/a must be"):
                await subject.wait_for({"metadata": {"name": "a", "namespace": "default"}})
            with pytest.raises(KeyFuncError):
                await subject.wait_for({"metadata": {"resourceVersion": "5"}})


def lines_run(function: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs: a cost that is the same on any machine."""
    lines = 0

    def count(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return count

    traced = sys.gettrace()
    gc.disable()  # a collection would count Hypothesis's callbacks and other tests' finalizers
    sys.settrace(count)
    try:
        function()
    finally:
        sys.settrace(traced)
        gc.enable()
    return lines


class TestCost:
    @virtual_time
    async def test_cancelled_waits_are_removed(self) -> None:
        async with informer_of_steps() as subject:
            await subject.wait_synced()
            for steps in range(6):
                for wanted in ("12", written_object("b", 12)):
                    task = asyncio.create_task(subject.wait_for(wanted))
                    assert await cancel_after(steps, task)
            assert len(subject._version_waits) == 0
            assert [controller._on_progress for controller in subject._controllers] == [None]
            assert [controller._reflector.on_progress for controller in subject._controllers] == [None]

    @virtual_time
    async def test_many_waits_for_different_versions(self) -> None:
        subject = informer_of_steps(*(modified("a", 11 + n) for n in range(100)))
        async with subject:
            await asyncio.gather(*(subject.wait_for(str(11 + n)) for n in range(100)))
            assert len(subject._version_waits) == 0

    @virtual_time
    async def test_cost_of_progress_does_not_depend_on_waits_for_later_versions(self) -> None:
        async with informer_of_steps() as subject:
            await subject.wait_synced()

            async def cost(waiters: int) -> int:
                waiting = [asyncio.create_task(subject.wait_for(str(100 + n))) for n in range(waiters)]
                await settle()
                assert len(subject._version_waits) == waiters
                lines = lines_run(subject._version_waits.wake)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                return lines

            assert await cost(5000) == await cost(10)

    @virtual_time
    async def test_only_controllers_of_awaited_namespaces_are_observed(self) -> None:
        namespaces = ("red", "blue")
        servers = {
            namespace: Scripted([page(version=10)], [[9.0, bookmark(11), FOREVER]])
            for namespace in namespaces
        }
        subject = SharedIndexInformer(servers, KubeObject, random=NoJitter())

        def observed() -> list[str]:
            controllers = zip(namespaces, subject._controllers, strict=True)
            return [namespace for namespace, controller in controllers if controller._on_progress is not None]

        early = asyncio.create_task(subject.wait_for(written_object("a", 5, "red")))
        await settle()
        async with subject:
            await early
            assert observed() == []
            blue = asyncio.create_task(subject.wait_for(written_object("a", 11, "blue")))
            await settle()
            assert observed() == ["blue"]
            both = asyncio.create_task(subject.wait_for("11"))
            await settle()
            assert observed() == ["red", "blue"]
            both.cancel()
            await settle()
            assert observed() == ["blue"]
            await blue
            assert observed() == []

    @virtual_time
    async def test_later_events_of_another_namespace_do_not_delay_the_wait(self) -> None:
        """Red reaches 20 long before blue, and is busy with more events when blue does."""
        more = [added(f"p{number}", 21 + number) for number in range(100)]
        red = Scripted([page(version=10)], [[1.0, bookmark(20), 8.0, more, 0.5, added("q", 400), FOREVER]])
        blue = Scripted([page(version=10)], [[10.0, bookmark(20), FOREVER]])
        subject = SharedIndexInformer(
            {"red": red, "blue": blue}, KubeObject, queue="delta", random=NoJitter()
        )

        async def slow(obj: KubeObject, is_in_initial_list: bool) -> None:
            await asyncio.sleep(1)

        handler = ResourceEventHandlerFuncs[KubeObject](on_add=slow)
        subject.add_event_handler(handler, backlog="block", backlog_limit=1)
        async with subject:
            await subject.wait_for("20", timeout=11)

    @virtual_time
    async def test_wait_does_not_poll(self) -> None:
        """The event loop runs as many iterations with a wait as without."""
        loop: Any = asyncio.get_running_loop()
        async with informer_of_steps() as subject:
            await subject.wait_synced()
            await asyncio.sleep(1)
            begun = loop.steps
            await asyncio.sleep(100)
            without = loop.steps - begun
            with pytest.raises(VersionTimeout):
                await subject.wait_for("12", timeout=100)
            assert loop.steps - begun - without < without + 10


async def test_runs_on_both_event_loops() -> None:
    subject = informer_of_steps(0.01, modified("a", 11), 0.01, bookmark(13))
    async with subject:
        began = time.monotonic()
        assert await subject.wait_for(written_object("a", 11), timeout=30) is not None
        await subject.wait_for("13", timeout=30)
        assert time.monotonic() - began < 30
