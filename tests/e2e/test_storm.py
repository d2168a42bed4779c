"""20,000 pods that come, change and go, while watches are cut, history expires and more goes wrong; from a seed.

pytest tests/e2e/test_storm.py --storm-seeds 50
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from aioinformer import KubeObject, SharedIndexInformer
from aioinformer._core.tasks import run_until_first
from aioinformer.testing import APIServer
from aioinformer.testing.workload import Troubles, Workload

from ..queues import QUEUES
from .api import PODS
from .clusters import EmbeddedCluster
from .witness import Witness, versions_in_cache

PODS_AT_FIRST = 20_000
OPERATIONS = 500.0
TROUBLE_EVERY = 0.5
TROUBLES_AT_LEAST = 4
OPERATIONS_AFTERWARDS = 500

pytestmark = pytest.mark.timeout(180)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(int(metafunc.config.getoption("--storm-seeds") or 0)))


class MoreTroubles:
    """Faults beyond Troubles: truncated answers, silent connections, an unavailable server."""

    def __init__(self, server: APIServer, seed: int) -> None:
        faults = server.faults
        self._server = server
        self._random = Random(seed)
        self._kinds: list[Callable[[], object]] = [
            lambda: (faults.truncate(fraction=self._random.random()), faults.watch_error(code=410)),
            lambda: (faults.lose_closing_bookmark(), faults.watch_error(code=410)),
            lambda: (faults.fail(410, matching=lambda request: request.is_continue), faults.watch_error()),
            lambda: faults.fail(500, verb="watch", in_stream=True),
            lambda: faults.watch_error(code=500),
            faults.cut_connections,
            lambda: faults.send_raw(b"{no JSON\n"),
            lambda: faults.send_raw(b'{"type":"ADDED","object":{"kind":"Pod"}}\n'),
        ]

    async def run(self, every: float) -> None:
        while True:
            await asyncio.sleep(every * (0.5 + self._random.random()))
            if self._random.random() < 0.2:
                self._server.faults.refuse(cut=True)
                await asyncio.sleep(0.2)
                await self._server.faults.accept()
            else:
                self._random.choice(self._kinds)()


class History:
    """What really happened to pods: the versions of each, by uid, and the version of each one's deletion."""

    def __init__(self, server: APIServer) -> None:
        self.versions: defaultdict[str, set[str]] = defaultdict(set)
        self.deleted: dict[str, str] = {}
        server.cluster.observers.append(self._note)

    def _note(self, resource: Any, event: Any) -> None:
        if resource.plural == "pods":
            stored = event.current or event.previous
            self.versions[stored.uid].add(str(event.resource_version))
            if event.current is None:
                self.deleted[stored.uid] = str(event.resource_version)


@pytest.mark.usefixtures("soon_again")
async def test_after_the_storm_cache_handlers_and_server_are_equal(
    embedded: EmbeddedCluster, seed: int, storm_seconds: float
) -> None:
    server = embedded.server
    history = History(server)
    workload = Workload(server, seed)
    workload.populate(PODS_AT_FIRST)
    async with embedded.client() as client:
        informer = SharedIndexInformer(
            embedded.list_watch(client, PODS, "", protobuf=seed % 4 >= 2),
            KubeObject,
            indexers={"node": lambda pod: [pod["spec"]["nodeName"]]},
            queue=QUEUES[seed % len(QUEUES)],
            initial_events_timeout=0.5,
            random=Random(seed),
        )
        witness = Witness()
        informer.add_event_handler(witness)
        informer.set_watch_error_handler(witness.on_error)
        async with informer:
            troubles, more = Troubles(server, seed), MoreTroubles(server, seed)
            await run_until_first(
                partial(workload.run, OPERATIONS),
                partial(troubles.run, TROUBLE_EVERY),
                partial(more.run, TROUBLE_EVERY),
                partial(until_stormy_enough, troubles, storm_seconds),
            )
            server.faults.clear()
            await server.faults.accept()
            await witness.until_shadow(server.snapshot("v1", "pods"))
            for _ in range(OPERATIONS_AFTERWARDS):  # no list follows that would find what the watch has lost
                workload.step()
            wanted = server.snapshot("v1", "pods")
            await witness.until_shadow(wanted)
            assert versions_in_cache(informer) == wanted
            check_index(informer, server)
            check_calls(witness, history)
            assert sum(troubles.done.values()) >= TROUBLES_AT_LEAST
            assert witness.counts["update"] > 50


async def until_stormy_enough(troubles: Troubles, seconds: float) -> None:
    """Return the duration, extended on machines too slow for the faults."""
    await asyncio.sleep(seconds)
    while sum(troubles.done.values()) < TROUBLES_AT_LEAST:  # noqa: ASYNC110 - it is for tests, and announces nothing
        await asyncio.sleep(0.05)


def check_index(informer: SharedIndexInformer[KubeObject], server: APIServer) -> None:
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for pod in server.list("v1", "pods"):
        nodes[pod["spec"]["nodeName"]].append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    assert {
        node: informer.indexer.index_keys("node", node)
        for node in informer.indexer.list_index_func_values("node")
    } == {node: sorted(names) for node, names in nodes.items()}


def check_calls(witness: Witness, history: History) -> None:
    """Check that every call is true and in order, and that every deleted pod was reported as deleted."""
    assert not witness.illegal
    present: dict[str, str] = {}
    newest: dict[str, int] = {}
    for call in witness.calls:
        uid, version = call.obj.uid, call.obj.resource_version
        assert version in history.versions[uid], f"{call.key} never was at {version}"
        assert int(version) >= newest.get(call.key, 0), f"{call.key} went back to {version}"
        newest[call.key] = int(version)
        if call.kind in ("add", "update"):
            present[call.key] = uid
        else:
            assert present.pop(call.key) == uid
            if call.kind == "delete":  # seen, so with its final state
                assert history.deleted[uid] == version
    assert not set(present.values()) & history.deleted.keys()
