"""ChangeFeed: snapshots, resuming, selections, slow subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from aioinformer import KubeObject, SharedIndexInformer
from aioinformer.errors import (
    AlreadyStartedError,
    ConfigError,
    InformerError,
    SelectorError,
    SlowSubscriberError,
    StoppedError,
)
from aioinformer.metrics import Sample
from aioinformer.web import ChangeFeed, FeedEvent, Subscription

from ..reflector.running import NoJitter
from ..reflector.scripted import FOREVER, GONE, Scripted, Step, added, deleted, modified, page, raw_pod
from ..virtual_time import run, settle, virtual_time


def informer(*steps: Step, items: int = 2, lists: Any = ()) -> SharedIndexInformer[KubeObject]:
    pods = [raw_pod(chr(ord("a") + number), 1 + number) for number in range(items)]
    watches: list[list[Step]] = [[*steps, FOREVER], [FOREVER]]
    return SharedIndexInformer(
        Scripted([page(*pods, version=10), *lists], watches), KubeObject, random=NoJitter()
    )


@asynccontextmanager
async def feed_of(
    *steps: Step, items: int = 2, history: int = 100, lists: Any = ()
) -> AsyncIterator[ChangeFeed[KubeObject]]:
    subject = informer(*steps, items=items, lists=lists)
    async with subject, ChangeFeed(subject, history) as feed:
        yield feed


def text(event: FeedEvent[Any]) -> str:
    version = "" if event.object is None else f" {event.key}@{event.object.resource_version}"
    old = "" if event.old is None else f" was {event.old.resource_version}"
    return f"{event.type}{version}{old}".replace("default/", "")


async def read(subscription: Subscription[Any], count: int) -> list[str]:
    """Return the next events; those of a snapshot sorted, because its objects have no order."""
    events = [await anext(subscription) for _ in range(count)]
    order = ("RESET", "ADDED", "SYNCED")
    events.sort(key=lambda event: (0, order.index(event.type), event.key) if event.initial else (1, 0, ""))
    return list(map(text, events))


async def read_waiting(subscription: Subscription[Any]) -> list[FeedEvent[Any]]:
    """Return all events that can be read now."""
    events: list[FeedEvent[Any]] = []
    while batch := await subscription.next_batch(0.01):
        events += batch
    return events


SNAPSHOT = ["RESET", "ADDED a@1", "ADDED b@2", "SYNCED"]


@virtual_time
async def test_snapshot_comes_first_then_changes_with_old_and_new() -> None:
    async with feed_of(5.0, modified("a", 11), added("c", 12), deleted("b", 13)) as feed:
        subscription = feed.subscribe()
        assert await read(subscription, 4) == SNAPSHOT
        assert await read(subscription, 3) == ["MODIFIED a@11 was 1", "ADDED c@12", "DELETED b@2"]


@virtual_time
async def test_subscriber_before_the_sync_waits_for_the_whole_snapshot() -> None:
    subject = SharedIndexInformer(
        Scripted([20.0, page(raw_pod("a", 1), version=10)], [[FOREVER]]), KubeObject, random=NoJitter()
    )
    async with subject, ChangeFeed(subject) as feed:
        assert await feed.subscribe().next_batch(5.0) == []
        assert await read(feed.subscribe(), 3) == ["RESET", "ADDED a@1", "SYNCED"]


@virtual_time
async def test_resuming_after_an_id_gives_the_changes_since() -> None:
    async with feed_of(5.0, modified("a", 11), 5.0, added("c", 12)) as feed:
        first = feed.subscribe()
        events = await read_waiting(first)
        await asyncio.sleep(20)
        assert await read(feed.subscribe(events[-1].id), 2) == ["MODIFIED a@11 was 1", "ADDED c@12"]
        assert await read(feed.subscribe(first.id), 2) == ["MODIFIED a@11 was 1", "ADDED c@12"]
        last = (await read_waiting(first))[-1].id
        assert await feed.subscribe(last).next_batch(1.0) == []


@virtual_time
async def test_snapshot_has_no_id_before_its_end() -> None:
    async with feed_of() as feed:
        events = await read_waiting(feed.subscribe())
        assert [event.id != "" for event in events] == [False, False, False, True]
        assert [event.initial for event in events] == [True] * 4


@virtual_time
@pytest.mark.parametrize(
    "after",
    [
        "0123456789abcdef-1",
        "{epoch}-99",
        "{epoch}--1",
        "{epoch}-",
        "{epoch}",
        "{epoch}-" + "9" * 5000,
        "{epoch}-\N{ARABIC-INDIC DIGIT ONE}",
        "x",
    ],
)
async def test_foreign_or_invalid_id_leads_to_a_snapshot(after: str) -> None:
    async with feed_of() as feed:
        await read_waiting(feed.subscribe())
        assert await read(feed.subscribe(after.format(epoch=feed.history.epoch)), 4) == SNAPSHOT


@virtual_time
async def test_id_older_than_the_history_leads_to_a_snapshot() -> None:
    changes = [modified("a", 11 + number) for number in range(5)]
    async with feed_of(5.0, *changes, history=4) as feed:
        first = (await read_waiting(feed.subscribe()))[-1].id
        await asyncio.sleep(20)
        assert await read(feed.subscribe(first), 4) == ["RESET", "ADDED a@15", "ADDED b@2", "SYNCED"]


@virtual_time
async def test_object_that_leaves_the_selection_is_deleted_and_one_that_enters_is_added() -> None:
    steps = [modified("a", version, node=node) for version, node in ((11, "n1"), (12, "n2"), (13, "n1"))]
    async with feed_of(5.0, *(step for watch_event in steps for step in (watch_event, 1.0))) as feed:
        by_field = feed.subscribe(field_selector="spec.node=n1", slow="replay")
        by_function = feed.subscribe(where=lambda obj: obj["spec"].get("node") == "n1", slow="replay")
        for subscription in (by_field, by_function):
            assert await read(subscription, 2) == ["RESET", "SYNCED"]
        for subscription in (by_field, by_function):
            events = [await anext(subscription) for _ in range(3)]
            assert [text(event) for event in events] == ["ADDED a@11", "DELETED a@11", "ADDED a@13"]
            assert events[2].old is None, "an unselected state is not shown"


@virtual_time
async def test_label_selector_selects() -> None:
    async with feed_of(5.0, added("c", 11)) as feed:
        assert await read(feed.subscribe(label_selector="!app"), 5) == [*SNAPSHOT, "ADDED c@11"]
        assert await read(feed.subscribe(label_selector={"app": "web"}), 2) == ["RESET", "SYNCED"]


@virtual_time
async def test_slow_subscriber_gets_the_newest_state_of_each_object() -> None:
    changes = [modified("a", 11 + number) for number in range(20)]
    async with feed_of(5.0, *changes, added("c", 40), deleted("c", 41), modified("b", 42)) as feed:
        subscription = feed.subscribe()
        await read_waiting(subscription)
        await asyncio.sleep(20)
        events = await read_waiting(subscription)
        assert [text(event) for event in events] == ["MODIFIED a@30 was 1", "MODIFIED b@42 was 2"]
        assert [event.id for event in events] == ["", feed.history.id_of(feed.history.last)]


@virtual_time
async def test_replay_gives_every_change_with_an_id() -> None:
    async with feed_of(5.0, *[modified("a", 11 + number) for number in range(3)]) as feed:
        subscription = feed.subscribe(slow="replay")
        await read_waiting(subscription)
        await asyncio.sleep(20)
        events = await read_waiting(subscription)
        assert [text(event) for event in events] == [
            "MODIFIED a@11 was 1",
            "MODIFIED a@12 was 11",
            "MODIFIED a@13 was 12",
        ]
        assert [await read(feed.subscribe(event.id), 1) for event in events[:2]] == [
            ["MODIFIED a@13 was 11"],
            ["MODIFIED a@13 was 12"],
        ]


@virtual_time
async def test_subscriber_behind_the_history_is_reset_or_closed() -> None:
    changes = [modified("a", 11 + number) for number in range(20)]
    async with feed_of(5.0, *changes, history=8) as feed:
        coalescing, closing = feed.subscribe(), feed.subscribe(slow="close")
        for subscription in (coalescing, closing):
            await read_waiting(subscription)
        await asyncio.sleep(20)
        assert await read(coalescing, 4) == ["RESET", "ADDED a@30", "ADDED b@2", "SYNCED"]
        with pytest.raises(SlowSubscriberError, match="20 changes behind, and 8 are kept"):
            await anext(closing)


@virtual_time
async def test_object_that_was_created_again_is_deleted_and_added() -> None:
    again = raw_pod("a", 12).replace(b"uid-a", b"uid-2")
    created = msgspec.structs.replace(added("a", 12), object=again)
    async with feed_of(5.0, [deleted("a", 11), created]) as feed:
        subscription = feed.subscribe()
        await read_waiting(subscription)
        assert await read(subscription, 2) == ["DELETED a@1", "ADDED a@12"]


@virtual_time
async def test_relist_after_expiry_leaves_no_gap() -> None:
    lists = [page(raw_pod("b", 20), raw_pod("c", 21), version=30)]
    async with feed_of(5.0, GONE, lists=lists) as feed:
        subscription = feed.subscribe()
        await read_waiting(subscription)
        assert sorted(await read(subscription, 3)) == ["ADDED c@21", "DELETED a@1", "MODIFIED b@20 was 2"]


@virtual_time
async def test_subscriptions_end_with_the_informer_and_with_the_feed() -> None:
    async def types(subscription: Subscription[Any]) -> list[str]:
        return [event.type async for event in subscription]

    subject = informer()
    async with subject:
        async with ChangeFeed(subject) as feed:
            reading = asyncio.create_task(types(feed.subscribe()))
            await settle()
        assert await reading == ["RESET", "ADDED", "ADDED", "SYNCED"]
        assert await types(feed.subscribe()) == []
        second = await ChangeFeed(subject).__aenter__()
        reading = asyncio.create_task(types(second.subscribe()))
        await settle()
    assert await reading == ["RESET", "ADDED", "ADDED", "SYNCED"]
    await second.__aexit__(None, None, None)
    with pytest.raises(StoppedError):
        await ChangeFeed(subject).__aenter__()


@virtual_time
async def test_feed_is_entered_once_and_before_subscribing() -> None:
    subject = informer()
    async with subject:
        feed = ChangeFeed(subject)
        with pytest.raises(InformerError, match="enter it with async with before subscribing"):
            feed.subscribe()
        async with feed:
            with pytest.raises(AlreadyStartedError):
                await feed.__aenter__()
        assert not subject.state.handlers


@virtual_time
async def test_bad_arguments_raise_at_once_and_harm_nothing() -> None:
    async with feed_of() as feed:
        bad: list[tuple[dict[str, Any], type[Exception]]] = [
            ({"label_selector": "a in"}, SelectorError),
            ({"field_selector": "spec.nodeName"}, SelectorError),
            ({"field_selector": "spec..x=1"}, SelectorError),
            ({"field_selector": "a=" + "x" * 2000}, SelectorError),
            ({"where": 7}, ConfigError),
            ({"slow": "never"}, ConfigError),
        ]
        for arguments, error in bad:
            with pytest.raises(error):
                feed.subscribe(**arguments)
        with pytest.raises(ConfigError, match="history must be a whole number, 1 or more"):
            ChangeFeed(feed.informer, 0)
        assert await read(feed.subscribe(), 4) == SNAPSHOT


@virtual_time
async def test_failing_function_fails_its_subscriber_only() -> None:
    async with feed_of(5.0, modified("a", 11)) as feed:
        failing, other = feed.subscribe(where=lambda obj: obj["none"] == 1), feed.subscribe()
        assert text(await anext(failing)) == "RESET"
        with pytest.raises(KeyError):
            await anext(failing)
        assert await read(other, 5) == [*SNAPSHOT, "MODIFIED a@11 was 1"]
        assert feed.informer.state.handlers[0].failed == 0


class Spec(msgspec.Struct):
    count: int = 0


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return self.name


class Thing(msgspec.Struct):
    metadata: Meta
    spec: Spec

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version


@virtual_time
async def test_undecodable_objects_do_not_exist() -> None:
    steps: list[Step] = [5.0, modified("a", 11, count="x"), 5.0, modified("a", 12, count=2)]
    server = Scripted([page(raw_pod("a", 1), raw_pod("b", 2, count="x"), version=10)], [[*steps, FOREVER]])
    subject = SharedIndexInformer(server, Thing, random=NoJitter())
    async with subject, ChangeFeed(subject) as feed:
        events = await read(feed.subscribe(), 5)
        assert events == ["RESET", "ADDED a@1", "SYNCED", "DELETED a@1", "ADDED a@12"]
        with pytest.raises(SelectorError, match="Spec has no size"):
            feed.subscribe(field_selector="spec.size=1")


@virtual_time
async def test_feed_reports_metrics() -> None:
    async with feed_of(5.0, modified("a", 11), history=4) as feed:
        subscription = feed.subscribe()
        await read_waiting(subscription)
        await asyncio.sleep(20)
        values = {sample.name.removeprefix("aioinformer_feed_"): sample.value for sample in feed.samples()}
        assert values == {
            "subscribers": 1,
            "behind": 1,
            "changes": 1,
            "snapshots": 1,
            "changes_total": 1,
            "resets_total": 1,
        }
        del subscription
        assert _value(feed, "subscribers") == 0


def _value(feed: ChangeFeed[Any], name: str) -> float:
    samples: list[Sample] = list(feed.samples())
    return next(sample.value for sample in samples if sample.name == f"aioinformer_feed_{name}")


class Client:
    """A subscriber that checks each event against what it has, and reconnects at random."""

    def __init__(self, feed: ChangeFeed[KubeObject], random: Random, slow: Any) -> None:
        self.feed = feed
        self.random = random
        self.arguments: dict[str, Any] = {"slow": slow}
        if random.random() < 0.7:
            self.arguments["field_selector"] = "spec.node=n1"
        self.subscription = feed.subscribe(**self.arguments)
        self.objects: dict[str, KubeObject] = {}
        self.id = ""
        self.is_resumed = False  # after a reconnect, changes may be repeated

    async def read(self) -> None:
        batch = await self.subscription.next_batch(0.001) or []
        cut = self.random.randrange(len(batch) + 1) if self.random.random() < 0.3 else None
        for event in batch[:cut]:
            self.apply(event)
        if cut is not None:
            self.subscription = self.feed.subscribe(self.id, **self.arguments)
            self.is_resumed = True

    def apply(self, event: FeedEvent[KubeObject]) -> None:
        if event.type == "RESET":
            self.objects, self.is_resumed = {}, False
        elif event.type == "DELETED":
            assert self.is_resumed or event.key in self.objects
            self.objects.pop(event.key, None)
        elif event.type != "SYNCED":
            assert self.selects(event.object)
            if event.type == "ADDED":
                assert self.is_resumed or event.key not in self.objects
            elif not self.is_resumed:
                assert event.old == self.objects[event.key]
                assert event.old is not None
                assert self.selects(event.old)
            self.objects[event.key] = event.object
        if event.id:
            self.id = event.id

    def selects(self, obj: KubeObject) -> bool:
        return "field_selector" not in self.arguments or obj["spec"].get("node") == "n1"


@pytest.mark.parametrize("seed", range(60))
def test_clients_that_stall_and_reconnect_end_with_the_right_state(seed: int) -> None:
    """However short the history, no subscriber misses a change, or sees what it does not select."""

    async def main() -> None:
        random = Random(seed)
        steps: list[Any] = [1.0]
        alive = {"a": 0, "b": 0}
        for version in range(11, 211):
            name = random.choice("abcdefgh")
            node = random.choice(("n1", "n2"))
            if name not in alive:
                steps.append(added(name, version, node=node))
                alive[name] = version
            elif random.random() < 0.3:
                steps.append(deleted(name, version, node=node))
                del alive[name]
            else:
                steps.append(modified(name, version, node=node))
            if random.random() < 0.4:
                steps.append(random.choice((0.0, 0.1, 2.0)))
        async with feed_of(*steps, history=random.choice((1, 2, 5, 20, 500))) as feed:
            clients = [Client(feed, random, slow) for slow in ("coalesce", "coalesce", "replay", "coalesce")]
            while feed.informer.last_sync_resource_version != "210" or feed.informer.state.handlers[0].depth:
                await random.choice(clients).read()
                await asyncio.sleep(random.choice((0.0, 0.05, 1.0)))
            for client in clients:
                while await client.subscription.next_batch(0.001):
                    client.subscription = feed.subscribe(client.id, **client.arguments)
                    client.is_resumed = True
                    for event in await read_waiting(client.subscription):
                        client.apply(event)
                wanted = {obj.key: obj for obj in feed.informer.lister.list() if client.selects(obj)}
                assert client.objects == wanted

    run(main())
