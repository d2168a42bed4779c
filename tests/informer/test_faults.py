"""After any faults of connections and history, cache and handlers equal the server."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioinformer import ApiError, KubeObject, Registration, SharedIndexInformer, TransportError

from ..reflector.history import History, HistoryListWatch
from ..reflector.scripted import error_event, expired_error, too_large, too_many_requests
from ..virtual_time import run
from .handlers import Follower

NAMESPACES = ("red", "blue")

ENDS = (
    None,
    TransportError("cut"),
    error_event(410, "Expired", "too old"),
    error_event(500, "InternalError", "oops"),
    error_event(429, "TooManyRequests", "slow down"),
)
FAILURES = (
    TransportError("refused"),
    ApiError(500, "InternalError", "oops"),
    ApiError(403, "Forbidden", "no"),
    too_many_requests(3),
    expired_error(),
    too_large(),
    ValueError("a user's bug"),
)


class Step(NamedTuple):
    """One step of a scenario."""

    what: str
    arguments: tuple[Any, ...] = ()


def step(what: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(Step, st.just(what), st.tuples(*arguments))


names = st.sampled_from("abcde")
namespaces = st.sampled_from(NAMESPACES)
steps = st.lists(
    st.one_of(
        step("put", namespaces, names),
        step("put", namespaces, names),
        step("delete", namespaces, names),
        step("wait", st.sampled_from([0.0, 0.005, 0.02, 0.3, 2.0, 9.0, 40.0, 400.0])),
        step("wait", st.sampled_from([0.0, 0.005, 0.02, 0.3, 2.0, 9.0])),
        step("cut", st.sampled_from(ENDS)),
        step("compact"),
        step("bookmarks"),
        step("refuse lists", st.lists(st.sampled_from(FAILURES), max_size=3)),
        step("refuse watches", st.lists(st.sampled_from(FAILURES), max_size=3)),
        step("add handler", st.sampled_from([0.0, 0.05])),
        step("remove handler"),
    ),
    max_size=40,
)


class Scenario:
    """A history, an informer of it, and handlers that are added and removed."""

    def __init__(
        self, watch_list: bool, by_namespace: bool, page_size: int, resync: float, seed: int
    ) -> None:
        self.random = Random(seed)
        self.history = History()
        list_watches = {
            namespace: HistoryListWatch(self.history, namespace, watch_list, self.random.randrange)
            for namespace in (NAMESPACES if by_namespace else ("",))
        }
        self.informer = SharedIndexInformer(
            list_watches, KubeObject, resync, random=self.random, page_size=page_size
        )
        self.resync = resync
        self.handlers: dict[Registration, Follower] = {}
        self.all: list[Follower] = []
        for follower in (Follower(), Follower(seconds=0.05), Follower(raises=3)):
            self.add_handler(follower)
        self.resyncing = Follower()
        self.handlers[self.informer.add_event_handler(self.resyncing, resync)] = self.resyncing

    def add_handler(self, follower: Follower) -> None:
        self.handlers[self.informer.add_event_handler(follower, 0.0)] = follower
        self.all.append(follower)

    def remove_handler(self) -> None:
        if len(self.handlers) > 5:
            registration = list(self.handlers)[-1]
            self.informer.remove_event_handler(registration)
            del self.handlers[registration]

    async def do(self, step: Step) -> None:
        history = self.history
        match step.what, step.arguments:
            case "put", (namespace, name):
                history.put(namespace, name)
            case "delete", (namespace, name):
                history.delete(namespace, name)
            case "wait", (seconds,):
                await asyncio.sleep(seconds)
            case "cut", (error,):
                history.cut(error)
            case "compact", ():
                history.compact()
            case "bookmarks", ():
                history.send_bookmarks()
            case "refuse lists", (errors,):
                history.list_failures = list(errors)
            case "refuse watches", (errors,):
                history.watch_failures = list(errors)
            case "add handler", (seconds,):
                self.add_handler(Follower(seconds))
            case "remove handler", ():
                self.remove_handler()
            case _:
                raise AssertionError(step)

    async def play(self, steps: list[Step]) -> None:
        async with self.informer:
            for step in steps:
                await self.do(step)
            await asyncio.sleep(200.125)  # not at the same time as a resync
            self.check()
        assert not self.history.open
        assert not self.history.closed_twice

    def check(self) -> None:
        server = {key: str(version) for key, version in self.history.objects.items()}
        cache = {obj.key: obj.resource_version for obj in self.informer.store.list()}
        assert cache == server
        assert self.informer.has_synced()
        for registration, follower in self.handlers.items():
            assert follower.copy == server
            assert registration.has_synced()
            assert registration.state.depth == 0
        for follower in self.all:
            assert not follower.wrong
            assert not follower.resyncs, "a relist's unchanged objects go to handlers whose resync is due"
        assert not self.resyncing.wrong
        if self.resync and server:
            assert self.resyncing.resyncs
        state = self.informer.state
        assert (state.failed, state.queue_depth, state.objects) == (0, 0, len(server))
        assert sum(reflector.rejected for reflector in state.reflectors) == 0


@pytest.mark.parametrize("by_namespace", [False, True])
@pytest.mark.parametrize("watch_list", [False, True])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps,
    page_size=st.sampled_from([0, 2]),
    resync=st.sampled_from([0.0, 30.0]),
    seed=st.integers(0, 2**16),
)
def test_cache_and_handlers_end_equal_to_the_server(
    watch_list: bool, by_namespace: bool, steps: list[Step], page_size: int, resync: float, seed: int
) -> None:
    """Also: adds only of absent objects, updates and deletions only of present ones, versions never go back, calls
    never overlap (with late, slow and failing handlers), and each stream is closed once."""
    logging.disable(logging.CRITICAL)  # the scenario logs very many errors
    try:
        run(Scenario(watch_list, by_namespace, page_size, resync, seed).play(steps))
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("watch_list", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_long_random_history(watch_list: bool, seed: int) -> None:
    """Hundreds of changes with cuts and expiries."""
    random = Random(seed)

    def some_step() -> Step:
        place = (random.choice(NAMESPACES), random.choice("abcdefghij"))
        return random.choice(
            [Step("put", place)] * 8
            + [Step("delete", place)] * 4
            + [Step("wait", (random.choice([0.0, 0.01, 0.5, 10.0]),))] * 8
            + [Step("cut", (random.choice(ENDS),)), Step("compact"), Step("bookmarks")]
            + [Step("refuse watches", ([random.choice(FAILURES)],)), Step("add handler", (0.0,))]
        )

    logging.disable(logging.CRITICAL)
    try:
        run(Scenario(watch_list, False, 3, 0.0, seed).play([some_step() for _ in range(500)]))
    finally:
        logging.disable(logging.NOTSET)
