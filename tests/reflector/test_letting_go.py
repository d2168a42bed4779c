"""Memory: a failed list is freed although its error is kept."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest

from aioinformer.errors import RejectedObjectError, TransportError
from aioinformer.fifo import DeltaFIFO, RealFIFO
from aioinformer.listwatch import pager
from aioinformer.objects.meta import ADDED, ListResult, WatchEvent
from aioinformer.reflector import Reflector

from ..virtual_time import virtual_time
from .running import NoJitter
from .scripted import FOREVER, Scripted, Stream, bookmark, closing_bookmark, expired_error


class Pods:
    """Makes pods, and knows which are still referenced."""

    def __init__(self) -> None:
        self._made: list[ref[Any]] = []

    def __call__(self, name: str, version: int = 1) -> Any:
        class Pod(dict[str, Any]):
            """A dict that can be referred to weakly."""

        pod = Pod(metadata={"name": name, "namespace": "default", "resourceVersion": str(version)})
        self._made.append(ref(pod))
        return pod

    def list_held(self) -> list[str]:
        return [pod["metadata"]["name"] for reference in self._made if (pod := reference()) is not None]


def make_steps(*steps: Callable[[], Any]) -> Iterator[Any]:
    """What these make, each when it is asked for: a list would hold it."""
    return (make() for make in steps)


def stream(*steps: Callable[[], Any]) -> Stream:
    streaming = Stream()
    streaming._steps = make_steps(*steps)
    return streaming


@pytest.fixture
def pods() -> Pods:
    return Pods()


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Half a list must not stay in memory meanwhile."""
    gc.disable()
    yield
    gc.enable()


def queue_reflector(server: Scripted, store: Any = None) -> Reflector[Any]:
    return Reflector(server, None, DeltaFIFO() if store is None else store, random=NoJitter())


async def begin(subject: Reflector[Any]) -> asyncio.Task[None]:
    """Run until the second try has begun, and waits for an answer."""
    task = asyncio.create_task(subject.run())
    await asyncio.sleep(5)
    return task


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


class TestLists:
    @virtual_time
    async def test_list_that_breaks_off_is_freed(self, pods: Pods) -> None:
        server = Scripted(
            make_steps(
                lambda: ListResult([pods("a")], "5", "more"),
                lambda: TransportError("gone"),
                lambda: FOREVER,
            )
        )
        subject = queue_reflector(server)
        task = await begin(subject)
        assert str(subject.state.last_error) == "gone"
        assert len(server.lists) == 3
        assert pods.list_held() == []
        await end(task)

    @pytest.mark.parametrize(
        "second", [expired_error(), ListResult([], "5", "more")], ids=["expired", "again"]
    )
    @virtual_time
    async def test_expired_pages_are_freed(self, second: Any, pods: Pods) -> None:
        server = Scripted(
            make_steps(lambda: ListResult([pods("a")], "5", "more"), lambda: second, lambda: FOREVER)
        )
        task = await begin(queue_reflector(server))
        assert [options.limit for options in server.lists] == [500, 500, 0]
        assert pods.list_held() == []
        await end(task)

    @virtual_time
    async def test_failed_streamed_list_is_freed(self, pods: Pods) -> None:
        def broken() -> Stream:
            return stream(
                lambda: WatchEvent(ADDED, pods("a")),
                lambda: WatchEvent(ADDED, pods("b")),
                lambda: TransportError("gone"),
            )

        server = Scripted(watches=make_steps(broken, broken, broken), watch_list_semantics=True)
        subject = queue_reflector(server)
        task = await begin(subject)
        await asyncio.sleep(10)
        assert str(subject.state.last_error) == "gone"
        assert len(server.lists) == 1
        assert "a" not in pods.list_held(), "of the last batch the error's frames know"
        await end(task)


@virtual_time
async def test_next_watch_does_not_keep_the_last_error(pods: Pods) -> None:
    class EndedError(TransportError):
        """May be referred to weakly."""

    errors: list[ref[EndedError]] = []

    def broken() -> EndedError:
        error = EndedError("cut")
        errors.append(ref(error))
        return error

    server = Scripted([ListResult([], "5")], [stream(lambda: bookmark(6), broken), stream(lambda: FOREVER)])
    subject = queue_reflector(server)
    task = await begin(subject)
    assert len(server.watches) == 2
    subject._stats.record_recovery()
    gc.collect()
    assert [error() for error in errors] == [None]
    await end(task)


@pytest.mark.parametrize("streamed", [False, True], ids=["listed", "streamed"])
@virtual_time
async def test_reflector_keeps_no_objects_that_the_store_has(streamed: bool, pods: Pods) -> None:
    class Forgetful(DeltaFIFO):
        """Counts its calls."""

        given = 0

        async def replace(self, objects: Any, resource_version: str = "") -> None:
            self.given += 1

    if streamed:
        events = stream(lambda: WatchEvent(ADDED, pods("a")), lambda: closing_bookmark(5), lambda: FOREVER)
        server = Scripted(watches=[events], watch_list_semantics=True)
    else:
        server = Scripted(make_steps(lambda: ListResult([pods("a")], "5")))
    store = Forgetful()
    task = await begin(queue_reflector(server, store))
    assert store.given == 1
    assert pods.list_held() == []
    await end(task)


@pytest.mark.parametrize("many", [0, 10], ids=["many", "few"])
@virtual_time
async def test_a_store_may_keep_what_it_was_given(
    many: int, pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pager, "MANY", many)
    kept: list[Any] = []

    class Keeping(DeltaFIFO):
        async def replace(self, objects: Any, resource_version: str = "") -> None:
            kept.append(objects)

    task = await begin(queue_reflector(Scripted([ListResult([pods("a"), pods("b")], "5")]), Keeping()))
    (objects,) = kept
    assert [obj["metadata"]["name"] for obj in objects] == ["a", "b"]
    assert isinstance(objects, list) is (many == 10)
    await end(task)


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("bad", [1, 3])
async def test_errors_of_rejected_objects_do_not_keep_the_list(atomic: bool, bad: int, pods: Pods) -> None:
    """Errors keep their frames, and frames keep the list."""
    fifo = RealFIFO(atomic_events=True) if atomic else DeltaFIFO()
    with pytest.raises(RejectedObjectError) as caught:
        await fifo.replace([pods("a"), *({} for _ in range(bad))], "1")
    assert len(caught.value.all()) == bad
    await fifo.pop(lambda deltas, is_in_initial_list: None)
    del caught
    assert pods.list_held() == []
