"""On the embedded server, in virtual time: the operator dies at each of its requests, and comes again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from aioinformer import Client, LeaderElector
from aioinformer.testing import ResourceType, Simulation, simulate
from aioinformer.testing.storage.codec import load
from aioinformer.testing.storage.storage import StoredEvent
from examples.storage_operator import operator

from .invariants import Invariants
from .mortal import Death, Mortal, keep_running
from .objects import (
    API_VERSIONS,
    DEFINITIONS,
    PROTECTION,
    Object,
    backend,
    cave,
    csi_pod,
    finalizers,
    is_gated,
)
from .story import POINTS, Hands, before, death_at, story

NAMESPACE = "default"


class SimulatedHands(Hands):
    """Acts on the server itself."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    async def create(self, plural: str, obj: Object) -> None:
        self._world.server.create(API_VERSIONS[plural], plural, obj, NAMESPACE)
        await self._think()

    async def patch(self, plural: str, name: str, patch: Object) -> None:
        self._world.server.patch(API_VERSIONS[plural], plural, name, patch, NAMESPACE)
        await self._think()

    async def json_patch(self, plural: str, name: str, patch: list[Object]) -> None:
        self._world.server.patch(API_VERSIONS[plural], plural, name, patch, NAMESPACE)
        await self._think()

    async def delete(self, plural: str, name: str) -> None:
        self._world.server.delete(API_VERSIONS[plural], plural, name, NAMESPACE)
        await self._think()

    async def list(self, plural: str) -> dict[str, Object]:
        objects = self._world.server.list(API_VERSIONS[plural], plural, NAMESPACE)
        return {obj["metadata"]["name"]: obj for obj in objects}

    async def eventually(
        self, what: str, plural: str, condition: Callable[[dict[str, Object]], object]
    ) -> None:
        def holds() -> object:
            objects = self._world.server.list(API_VERSIONS[plural], plural, NAMESPACE)
            return condition({obj["metadata"]["name"]: obj for obj in objects})

        await self._world.eventually(holds, within=3600, what=what)
        self._world.note("user", f"sees: {what}")

    async def a_while(self) -> None:
        await asyncio.sleep(self._world.random.uniform(0, 60))

    async def _think(self) -> None:
        await asyncio.sleep(self._world.random.choice((0, 0, 0.005, 0.02, 1)))


def define(world: Simulation) -> SimulatedHands:
    """The definitions, and a user."""
    for definition in DEFINITIONS:
        world.server.create(definition["apiVersion"], "customresourcedefinitions", definition)
    return SimulatedHands(world)


def world_of(world: Simulation) -> SimulatedHands:
    """The definitions, the invariants, and a user."""
    invariants = Invariants()

    def observe(resource: ResourceType, event: StoredEvent) -> None:
        stored = event.current or event.previous
        assert stored is not None
        invariants.observe(resource.plural, load(resource, stored), gone=event.current is None)

    world.server.cluster.observers.append(observe)
    world.always(invariants.check)
    return define(world)


async def operate(
    world: Simulation,
    deaths: Iterable[Death] = (),
    *,
    lease: str = "",
    note: Callable[[Death | None], object] = lambda death: None,
) -> None:
    """The operator, which comes again each time that it has died.

    Args:
        world: Where.
        deaths: When it dies.
        lease: The Lease by which one of several works at a time; with none all do.
        note: Told of each death.
    """
    for death in (*deaths, None):
        process = Mortal(world.new_client().transport, death)

        async def run(client: Client) -> None:
            identity = f"operator-{world.random.getrandbits(32):08x}"
            election = LeaderElector(client, lease, NAMESPACE, identity) if lease else None
            await operator.manager(client, leader_election=election).run()

        try:
            await process.live(run)
        finally:
            world.note("operator", f"ended after {len(process.asked)} requests: {process.asked[-1:]}")
        note(death)
        await asyncio.sleep(world.random.uniform(0, 30))


@pytest.mark.parametrize("seeds", [range(first, first + 25) for first in range(0, POINTS, 25)], ids=str)
def test_it_may_die_at_any_request(seeds: range) -> None:
    died: list[Death | None] = []
    for seed in seeds:
        death = death_at(seed)

        async def scenario(world: Simulation, death: Death = death) -> None:
            hands = world_of(world)
            await before(hands)
            async with keep_running(operate(world, [death], note=died.append)):
                await story(hands)

        simulate(scenario, seed=seed)
    assert len(died) > 0.7 * len(seeds)


def test_it_may_die_again_and_again() -> None:
    for seed in range(25):

        async def scenario(world: Simulation) -> None:
            hands = world_of(world)
            await before(hands)
            deaths = [Death(world.random.randint(1, 20), world.random.random() < 0.5) for _ in range(12)]
            async with keep_running(operate(world, deaths)):
                await story(hands)

        simulate(scenario, seed=seed)


def test_two_may_compete() -> None:
    for seed in range(25):

        async def scenario(world: Simulation) -> None:
            hands = world_of(world)
            await before(hands)
            deaths = [Death(world.random.randint(1, 40), world.random.random() < 0.5) for _ in range(2)]
            async with keep_running(operate(world, deaths), operate(world, deaths[:1])):
                await story(hands)

        simulate(scenario, seed=seed)


def test_one_of_two_may_lead() -> None:
    for seed in range(25):

        async def scenario(world: Simulation) -> None:
            hands = world_of(world)
            await before(hands)
            deaths = [Death(world.random.randint(1, 40), world.random.random() < 0.5) for _ in range(2)]
            async with keep_running(
                operate(world, deaths, lease="lease"), operate(world, deaths[:1], lease="lease")
            ):
                await story(hands)

        simulate(scenario, seed=seed)


def test_through_trouble() -> None:
    for seed in range(25):

        async def scenario(world: Simulation) -> None:
            hands = world_of(world)
            await before(hands)
            async with keep_running(operate(world), operate(world), world.storm(600)):
                await story(hands)

        simulate(scenario, seed=seed)


def test_a_pod_and_a_deletion_may_meet() -> None:
    """A Backend comes while its Cave is to go: the pods begin and the Cave stays for them, or they do not."""
    outcomes = Counter[str]()

    async def meet(world: Simulation, hands: SimulatedHands, name: str) -> None:
        random = world.random
        await hands.create("caves", cave(name))
        await hands.eventually("it is protected", "caves", lambda caves: finalizers(caves[name]))

        async def mounted() -> None:
            await asyncio.sleep(random.uniform(0, 0.1))
            await hands.create("backends", backend(name, name))

        async def deleted() -> None:
            await asyncio.sleep(random.uniform(0, 0.2))
            await hands.delete("caves", name)

        async def stalled() -> None:
            await asyncio.sleep(random.uniform(0, 0.1))
            for connection in world.network.connections:
                connection.stall(random.choice((0, 0, 0.1, 1)))

        await asyncio.gather(mounted(), deleted(), stalled())
        await asyncio.sleep(60)
        runs, is_there = f"{name}-0" in await hands.list("pods"), name in await hands.list("caves")
        assert runs == is_there
        outcomes["mounted" if runs else "gone"] += 1
        await hands.delete("backends", name)
        await hands.eventually("it goes", "caves", lambda caves: name not in caves)

    async def scenario(world: Simulation) -> None:
        hands = world_of(world)
        async with keep_running(operate(world), operate(world)):
            for number in range(4):
                await meet(world, hands, f"deep-{number}")

    for seed in range(25):
        simulate(scenario, seed=seed)
    assert min(outcomes["mounted"], outcomes["gone"]) > 10


def test_pods_are_counted_again_after_20_s() -> None:
    async def scenario(world: Simulation) -> None:
        hands = world_of(world)
        await before(hands)
        async with operator.running(world.client) as manager:
            caves = next(controller for controller in manager.controllers if controller.name == "caves")
            await hands.eventually("it is protected", "caves", lambda caves: finalizers(caves["old"]))
            await hands.delete("caves", "old")
            await asyncio.sleep(10)
            before_it = caves.state.reconciles
            await asyncio.sleep(100)
            assert caves.state.reconciles == before_it + 5

    simulate(scenario)


def test_an_operator_with_nothing_to_do_does_nothing() -> None:
    async def scenario(world: Simulation) -> None:
        hands = world_of(world)
        await before(hands)
        process = Mortal(world.new_client().transport)
        await hands.create("backends", backend("web", "old", 3))
        async with keep_running(process.live(lambda client: operator.manager(client).run())):
            await hands.eventually(
                "it runs", "backends", lambda backends: backends["web"].get("status", {}).get("pods") == 3
            )
            await asyncio.sleep(60)
            before_it = len(process.asked)
            await asyncio.sleep(3600)
            assert {request.partition(" ")[0] for request in process.asked[before_it:]} <= {"STREAM"}

    simulate(scenario)


def test_a_living_cave_that_lost_the_finalizer_gets_it_again() -> None:
    async def scenario(world: Simulation) -> None:
        hands = world_of(world)
        await hands.create("caves", cave("deep"))
        async with keep_running(operate(world)):
            await hands.eventually("it is protected", "caves", lambda caves: finalizers(caves["deep"]))
            await hands.patch("caves", "deep", {"metadata": {"finalizers": ["example.com/other"]}})
            await hands.eventually(
                "it is again", "caves", lambda caves: PROTECTION in finalizers(caves["deep"])
            )
            assert "example.com/other" in finalizers((await hands.list("caves"))["deep"])

    simulate(scenario)


def test_a_deleted_pod_is_made_again() -> None:
    async def scenario(world: Simulation) -> None:
        hands = define(world)
        await before(hands)
        await hands.create("backends", backend("web", "old"))
        async with keep_running(operate(world)):
            await hands.eventually(
                "it runs", "pods", lambda pods: "web-0" in pods and not is_gated(pods["web-0"])
            )
            await hands.delete("pods", "web-0")
            await hands.eventually(
                "again", "pods", lambda pods: "web-0" in pods and not is_gated(pods["web-0"])
            )

    simulate(scenario)


def test_all_caves_of_a_volume_have_to_protect_it() -> None:
    """Two Caves may describe the same one: while either is being deleted, no pod begins to mount it."""

    async def scenario(world: Simulation) -> None:
        hands = world_of(world)
        await hands.create("caves", cave("deep"))
        await hands.create("caves", cave("same", "deep"))
        await hands.create("pods", csi_pod("legacy", "deep"))
        async with keep_running(operate(world)):
            await hands.eventually(
                "both are protected", "caves", lambda caves: all(map(finalizers, caves.values()))
            )
            await hands.delete("caves", "same")
            await hands.create("backends", backend("web", "deep"))
            await asyncio.sleep(60)
            assert list(await hands.list("pods")) == ["legacy"]
            await hands.delete("pods", "legacy")
            await hands.eventually(
                "it runs", "pods", lambda pods: "web-0" in pods and not is_gated(pods["web-0"])
            )
            assert list(await hands.list("caves")) == ["deep"]

    simulate(scenario)
