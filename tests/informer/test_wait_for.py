"""Read-your-writes: wait_for returns once the cache shows what was written."""

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
    pod,
)
from ..virtual_time import cancel_after, run, settled, virtual_time
from .handlers import Follower
from .subject import cached, informer

pytestmark = pytest.mark.usefixtures("kept")


def written(name: str, version: int, namespace: str = "default") -> dict[str, Any]:
    """What a write returned."""
    obj: dict[str, Any] = json.loads(pod(name, version, namespace))
    return obj


def running(*steps: Step) -> SharedIndexInformer[KubeObject]:
    """An informer of a, at version 10, whose watch goes on like this."""
    return informer(Scripted([page(pod("a", 1), version=10)], [[*steps, FOREVER]]))


decode = codec_for(KubeObject).decode


def now() -> float:
    return asyncio.get_running_loop().time()


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    resource_version: str


class Pod(msgspec.Struct):
    metadata: Meta


class TestARestore:
    """Versions go back, as in an etcd that was restored: what was written before it is undone."""

    def restored(self) -> SharedIndexInformer[KubeObject]:
        """An informer that has seen version 12, and lists at 5 after ten seconds."""
        watch: list[Step] = [modified("a", 11), deleted("b", 12), 10.0, error_event(410, "Gone")]
        first = page(pod("a", 1), pod("b", 2), version=10)
        then = page(pod("a", 1), pod("b", 2), version=5)
        return informer(Scripted([first, then], [watch, [9.0, modified("a", 6), FOREVER]]))

    @virtual_time
    async def test_whoever_waits_waits_for_the_list_and_no_longer(self) -> None:
        subject = self.restored()
        async with subject:
            await subject.wait_synced()
            await subject.wait_for(written("a", 11))
            started = now()
            waiting = [
                asyncio.create_task(subject.wait_for(what, timeout=60)) for what in (written("a", 14), "13")
            ]
            found, nothing = await asyncio.gather(*waiting)
            assert found is not None
            assert (found.resource_version, nothing) == ("1", None)
            assert now() - started == pytest.approx(10, abs=2)
            assert cached(subject) == {"default/a": "1", "default/b": "2"}

    @virtual_time
    async def test_what_was_seen_and_not_asked_for_is_not_waited_for(self) -> None:
        subject = self.restored()
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            maps._record_written(decode(pod("a", 11)))
            maps._record_removed("default/b", "", "")
            await subject.wait_for("12")
            await asyncio.sleep(15)
            assert subject.last_sync_resource_version == "5"
            started = now()
            assert [obj.resource_version for obj in await maps.list()] == ["1", "2"]
            assert now() == started
            assert not maps._written

    @virtual_time
    async def test_of_two_who_begin_to_wait_then_one_waits_for_what_is_undone(self) -> None:
        subject = self.restored()
        subject.add_event_handler(Follower(seconds=9.0), backlog="block", backlog_limit=1)
        async with subject:
            await subject.wait_for("10")
            before = subject.version_waits.goal_of("13")
            while subject.last_sync_resource_version != "5":  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(1)
            started = now()
            undone = asyncio.create_task(subject.version_waits.wait(before, timeout=1000))
            later = asyncio.create_task(subject.wait_for("14"))
            await settled()
            assert len(subject.version_waits) == 2, "the handler holds the list up"
            await undone
            assert now() - started < 60
            later.cancel()

    @virtual_time
    async def test_what_is_written_after_it_is_waited_for(self) -> None:
        subject = self.restored()
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            maps._record_written(decode(pod("a", 13)))
            await subject.wait_for("12")
            await asyncio.sleep(15)
            assert subject.last_sync_resource_version == "5"
            maps._record_written(decode(pod("a", 6)))
            assert (await maps.get("default/a")).resource_version == "6"


class TestADeletion:
    """Of a version that was not written here, and may never come."""

    async def seen_after(self, key: str, *watch: Step) -> float:
        subject = running(*watch)
        async with subject, Client.from_url("http://localhost:1") as client:
            maps = CachedResource(Resource(client, "v1", "pods"), subject)
            await subject.wait_synced()
            started = now()
            maps._record_removed(key, "uid-a", "99")
            await maps.list()
            return now() - started

    @virtual_time
    async def test_of_what_is_not_there_is_believed_after_a_while_though_nothing_comes(self) -> None:
        assert await self.seen_after("default/b") == pytest.approx(DELETION_TIMEOUT)

    @virtual_time
    async def test_of_what_is_there_is_seen_at_a_lower_version(self) -> None:
        assert await self.seen_after("default/a", 5.0, deleted("a", 12)) == pytest.approx(5)


class TestAnObject:
    @pytest.mark.parametrize("version", [1, 5, 10])
    @virtual_time
    async def test_that_is_cached_at_this_version_or_a_newer_one(self, version: int) -> None:
        subject = informer(Scripted([page(pod("a", 10), version=10)]))
        async with subject:
            await subject.wait_synced()
            found = await subject.wait_for(written("a", version), timeout=0)
            assert found is not None
            assert found.resource_version == "10"

    @virtual_time
    async def test_that_comes_later(self) -> None:
        subject = running(3.0, modified("a", 11), 4.0, modified("a", 12))
        async with subject:
            await subject.wait_synced()
            started = now()
            found = await subject.wait_for(written("a", 11))
            assert found is not None
            assert found.resource_version == "11"
            assert now() - started == pytest.approx(3)
            found = await subject.wait_for(written("a", 12))
            assert found is not None
            assert found.resource_version == "12"
            assert now() - started == pytest.approx(7)

    @virtual_time
    async def test_of_a_list_that_a_handler_holds_up_is_there_once_it_is_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "aioinformer._core.coop.SLICE", -1.0
        )  # after each notification others have their turn
        subject = informer(Scripted([page(*(pod(str(number)) for number in range(20)), version=10)]))
        registration = subject.add_event_handler(Follower(seconds=1000.0), backlog="block", backlog_limit=1)
        async with subject:
            started = now()
            assert await subject.wait_for(written("19", 1), timeout=10) is not None
            assert now() == started
            assert not registration.has_synced()

    @virtual_time
    async def test_whose_own_version_was_passed_by(self) -> None:
        """Two writes in a row may arrive as one, by a list."""
        server = Scripted(
            [page(pod("a", 1), version=10), page(pod("a", 14), version=15)], [[6.0, error_event(410, "Gone")]]
        )
        subject = informer(server)
        async with subject:
            await subject.wait_synced()
            found = await subject.wait_for(written("a", 12))
            assert found is not None
            assert found.resource_version == "14"

    @virtual_time
    async def test_of_which_versions_are_compared_as_numbers(self) -> None:
        subject = informer(Scripted([page(pod("a", 9), version=9)], [[2.0, modified("a", 10), FOREVER]]))
        async with subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for(written("a", 10))
            assert now() - started == pytest.approx(2)

    @virtual_time
    async def test_that_was_deleted_since(self) -> None:
        subject = running(3.0, deleted("a", 12))
        async with subject:
            await subject.wait_synced()
            assert await subject.wait_for(written("a", 11)) is None
            assert not subject.store.list()

    @virtual_time
    async def test_that_was_created_and_deleted_before_anybody_looked(self) -> None:
        """A list brought neither, but is past both."""
        server = Scripted([page(version=10), page(version=20)], [[6.0, error_event(410, "Gone")]])
        subject = informer(server)
        async with subject:
            await subject.wait_synced()
            assert await subject.wait_for(written("b", 12)) is None

    @virtual_time
    async def test_that_the_selectors_do_not_pick_is_known_of_by_a_bookmark(self) -> None:
        subject = running(50.0, bookmark(12))
        async with subject:
            await subject.wait_synced()
            started = now()
            assert await subject.wait_for(written("elsewhere", 12)) is None
            assert now() - started == pytest.approx(50)

    @virtual_time
    async def test_of_another_key_is_not_waited_for_by_its_version_alone(self) -> None:
        """The event of another object at a lower version says nothing."""
        subject = running(3.0, modified("a", 11), 3.0, added("b", 13))
        async with subject:
            await subject.wait_synced()
            started = now()
            found = await subject.wait_for(written("b", 13))
            assert found is not None
            assert now() - started == pytest.approx(6)

    @virtual_time
    async def test_of_any_kind(self) -> None:
        subject = running(modified("a", 11))
        async with subject:
            for form in (
                written("a", 11),
                KubeObject.from_dict(written("a", 11)),
                Pod(Meta("a", "default", "11")),
            ):
                assert await subject.wait_for(form, timeout=1) is not None

    @virtual_time
    async def test_before_the_start_and_before_the_first_list(self) -> None:
        subject = informer(Scripted([5.0, page(pod("a", 10), version=10)]))
        waiting = asyncio.create_task(subject.wait_for(written("a", 10)))
        await settled()
        async with subject:
            started = now()
            found = await waiting
            assert found is not None
            assert now() - started == pytest.approx(5)


class TestAVersion:
    @virtual_time
    async def test_of_the_list(self) -> None:
        subject = informer(Scripted([5.0, page(pod("a", 1), pod("b", 2), version=10)]))
        async with subject:
            assert await subject.wait_for("10") is None
            assert cached(subject) == {"default/a": "1", "default/b": "2"}
            await subject.wait_for("3", timeout=0)

    @pytest.mark.parametrize("step", [modified("a", 12), added("b", 12), deleted("a", 12), bookmark(12)])
    @virtual_time
    async def test_is_reached_by_any_event(self, step: Any) -> None:
        subject = running(3.0, bookmark(11), 3.0, step)
        async with subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for("12")
            assert now() - started == pytest.approx(6)

    def test_only_once_the_cache_shows_all_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """DeltaFIFO works off by key: the newest version may be stored before an older one of another key."""
        monkeypatch.setattr("aioinformer.fifo.queue.LONGEST_BATCH", 7)

        async def main(steps: int) -> None:
            events = [modified("a", 11), *(added(str(n), 12 + n) for n in range(600)), modified("a", 612)]
            subject = running([events[0]], events[1:])
            async with subject:
                await settled(steps)
                await subject.wait_for("612")
                assert len(subject.store) == 601
                found = subject.store.get_by_key("default/a")
                assert found is not None
                assert found.resource_version == "612"

        for steps in range(20):
            run(main(steps))

    @pytest.mark.parametrize("version", ["", "0", "007", "abc", "-1", "1.5", "\uff11"])
    @virtual_time
    async def test_that_no_server_gives(self, version: str) -> None:
        with pytest.raises(ConfigError, match="must be a resourceVersion that the server gave"):
            await running().wait_for(version)


class TestSeveralNamespaces:
    def subject(self) -> SharedIndexInformer[KubeObject]:
        servers = {
            "red": Scripted([page(version=10)], [[3.0, added("a", 12, namespace="red"), FOREVER]]),
            "blue": Scripted([page(version=10)], [[50.0, bookmark(13), FOREVER]]),
        }
        return SharedIndexInformer(servers, KubeObject, random=NoJitter())

    @virtual_time
    async def test_an_object_concerns_its_own(self) -> None:
        async with self.subject() as subject:
            await subject.wait_synced()
            started = now()
            assert await subject.wait_for(written("gone", 11, "red")) is None
            assert now() - started == pytest.approx(3)
            assert await subject.wait_for(written("a", 12, "red"), timeout=0) is not None

    @virtual_time
    async def test_a_version_concerns_all(self) -> None:
        async with self.subject() as subject:
            await subject.wait_synced()
            started = now()
            await subject.wait_for("12")
            assert now() - started == pytest.approx(50)

    @virtual_time
    async def test_an_informer_of_one_knows_it_by_its_list_watch(self) -> None:
        async with Client.from_url("http://localhost:1") as client:
            green = ListWatch.for_resource(client, "v1", "pods", "green")
            subject = SharedIndexInformer(green, KubeObject)
            assert list(subject.list_watches) == ["green"]
            with pytest.raises(ConfigError, match="reads the namespaces green, but not that of red/a"):
                await subject.wait_for(written("a", 12, "red"))

    @virtual_time
    async def test_an_object_of_another_is_refused(self) -> None:
        async with self.subject() as subject:
            with pytest.raises(ConfigError, match="reads the namespaces red, blue, but not that of green/a"):
                await subject.wait_for(written("a", 12, "green"))


class TestGivingUp:
    @virtual_time
    async def test_a_timeout_says_what_was_wanted_and_what_was_reached(self) -> None:
        async with running() as subject:
            await subject.wait_synced()
            with pytest.raises(VersionTimeout) as caught:
                await subject.wait_for(written("b", 12), timeout=5)
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
    async def test_a_timeout_before_the_first_list(self) -> None:
        async with informer(Scripted([OSError("refused")] * 9)) as subject:
            with pytest.raises(VersionTimeout, match=r"reached no version.*last error: refused"):
                await subject.wait_for("12", timeout=5)

    @virtual_time
    async def test_a_timeout_of_ones_own_around_it(self) -> None:
        async with running() as subject:
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(1):
                    await subject.wait_for("12", timeout=5)
            assert not isinstance(caught.value, SyncTimeout)

    @pytest.mark.parametrize("wanted", ["12", written("b", 12)])
    @virtual_time
    async def test_the_end_of_the_informer(self, wanted: Any) -> None:
        async with running() as subject:
            await subject.wait_synced()
            waiting = asyncio.create_task(subject.wait_for(wanted))
            await settled()
        with pytest.raises(StoppedError, match="scripted pods stopped at 10 before it had reached 12"):
            await waiting
        with pytest.raises(StoppedError):
            await subject.wait_for(wanted)
        assert await subject.wait_for(written("a", 1)) is not None

    @virtual_time
    async def test_an_informer_that_is_cancelled_before_it_has_begun(self) -> None:
        subject = running()
        waiting = asyncio.create_task(subject.wait_for("12"))
        await settled()
        task = subject.begin()
        task.cancel()
        with pytest.raises(StoppedError):
            await waiting

    @virtual_time
    async def test_an_object_without_a_version_or_a_name(self) -> None:
        async with running() as subject:
            with pytest.raises(ConfigError, match=r"metadata.resourceVersion of default/a must be"):
                await subject.wait_for({"metadata": {"name": "a", "namespace": "default"}})
            with pytest.raises(KeyFuncError):
                await subject.wait_for({"metadata": {"resourceVersion": "5"}})


def lines_run(function: Callable[[], object]) -> int:
    """How many lines of Python a call takes: what it costs, the same on any machine."""
    lines = 0

    def count(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return count

    traced = sys.gettrace()
    gc.disable()  # a pass within would count Hypothesis's callbacks, and finalizers of other tests
    sys.settrace(count)
    try:
        function()
    finally:
        sys.settrace(traced)
        gc.enable()
    return lines


class TestCost:
    @virtual_time
    async def test_waiters_that_are_cancelled_leave_nothing_behind(self) -> None:
        async with running() as subject:
            await subject.wait_synced()
            for steps in range(6):
                for wanted in ("12", written("b", 12)):
                    task = asyncio.create_task(subject.wait_for(wanted))
                    assert await cancel_after(steps, task)
            assert len(subject._version_waits) == 0
            assert [controller._on_progress for controller in subject._controllers] == [None]
            assert [controller._reflector.on_progress for controller in subject._controllers] == [None]

    @virtual_time
    async def test_many_waiters_of_different_versions(self) -> None:
        subject = running(*(modified("a", 11 + n) for n in range(100)))
        async with subject:
            await asyncio.gather(*(subject.wait_for(str(11 + n)) for n in range(100)))
            assert len(subject._version_waits) == 0

    @virtual_time
    async def test_progress_looks_at_nobody_whose_version_is_still_to_come(self) -> None:
        async with running() as subject:
            await subject.wait_synced()

            async def cost(waiters: int) -> int:
                waiting = [asyncio.create_task(subject.wait_for(str(100 + n))) for n in range(waiters)]
                await settled()
                assert len(subject._version_waits) == waiters
                lines = lines_run(subject._version_waits.wake)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                return lines

            assert await cost(5000) == await cost(10)

    @virtual_time
    async def test_controllers_are_watched_while_their_namespace_is_waited_for(self) -> None:
        namespaces = ("red", "blue")
        servers = {each: Scripted([page(version=10)], [[9.0, bookmark(11), FOREVER]]) for each in namespaces}
        subject = SharedIndexInformer(servers, KubeObject, random=NoJitter())

        def watched() -> list[str]:
            controllers = zip(namespaces, subject._controllers, strict=True)
            return [each for each, controller in controllers if controller._on_progress is not None]

        early = asyncio.create_task(subject.wait_for(written("a", 5, "red")))
        await settled()
        async with subject:
            await early
            assert watched() == []
            blue = asyncio.create_task(subject.wait_for(written("a", 11, "blue")))
            await settled()
            assert watched() == ["blue"]
            both = asyncio.create_task(subject.wait_for("11"))
            await settled()
            assert watched() == ["red", "blue"]
            both.cancel()
            await settled()
            assert watched() == ["blue"]
            await blue
            assert watched() == []

    @virtual_time
    async def test_what_comes_after_it_in_the_first_namespace_is_not_waited_for(self) -> None:
        """Red is at 20 long before blue, and busy with more when blue is."""
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
    async def test_a_wait_does_not_poll(self) -> None:
        """The loop goes round as often while somebody waits for an hour as while nobody does."""
        loop: Any = asyncio.get_running_loop()
        async with running() as subject:
            await subject.wait_synced()
            await asyncio.sleep(1)
            begun = loop.steps
            await asyncio.sleep(100)
            without = loop.steps - begun
            with pytest.raises(VersionTimeout):
                await subject.wait_for("12", timeout=100)
            assert loop.steps - begun - without < without + 10


async def test_on_the_real_loops() -> None:
    subject = running(0.01, modified("a", 11), 0.01, bookmark(13))
    async with subject:
        began = time.monotonic()
        assert await subject.wait_for(written("a", 11), timeout=30) is not None
        await subject.wait_for("13", timeout=30)
        assert time.monotonic() - began < 30
