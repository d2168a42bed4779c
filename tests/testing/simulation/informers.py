"""Histories of an informer in storms: the scenario, drawn from its seed, and its invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from aioinformer import Client, DecodeError, KubeObject, ListWatch, SharedIndexInformer
from aioinformer._core.tasks import finish
from aioinformer.testing import Simulation
from aioinformer.testing.simulation.outcome import Outcome
from aioinformer.testing.simulation.run import run_once

from .settings import NAMES, NAMESPACES, Setting, handler, setting
from .witness import Picky, State, Truth, Witness


class InformerHistory:
    """One history.

    Args:
        world: Where.
        setting: Of which kind.
    """

    def __init__(self, world: Simulation, setting: Setting) -> None:
        self.world = world
        self.setting = setting
        self.random = world.random
        self.truth = Truth(world, "configmaps")
        self.witnesses: list[Witness] = []
        self.synced = False
        self.stored_at_sync: set[str] = set()
        self.version_at_sync = 0
        self.listed_at: dict[str, int] = {}
        self.first: dict[str, str] = {}
        self.first_version = 0
        self.made = 0
        self.reads: list[asyncio.Task[None]] = []
        self.version_checked = ""
        self.client = Client.from_url(world.server.url) if setting.sockets else world.client
        self.informer = self._informer()
        for options in setting.handlers:
            self._add_handler(options)
        self.from_the_beginning = list(self.witnesses)

    async def run(self) -> None:
        """Run through the storm, then check that nothing was lost."""
        world, setting = self.world, self.setting
        for _ in range(setting.objects):
            self._write()
        world.server.faults.expire_history()  # no replica lies further behind than this
        self.first = {key: state.uid for key, state in self.list_wanted().items()}
        self.first_version = world.server.resource_version
        world.always(self._watch_syncs)
        world.always(self._watch_version)
        if setting.by_run:
            running = asyncio.create_task(self.informer.run(), name="informer")
            try:
                await self._live()
            finally:
                await finish(running)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(setting.cancelled), self.informer:
                    await self._live()
        if self.client is not world.client:
            await self.client.close()
        assert self.informer.is_stopped
        self._check_legal()

    async def _live(self) -> None:
        setting = self.setting
        others = [asyncio.create_task(self._write_on()), asyncio.create_task(self._come_and_go())]
        try:
            async with asyncio.timeout(setting.cancelled if setting.by_run else None):
                await self.world.storm(setting.storm, every=setting.trouble_every)
                await finish(*others)
                await self._prove()
        except TimeoutError:
            return
        finally:
            await finish(*others, *self.reads)

    async def _prove(self) -> None:
        """After the storm, cache, handlers and server must become equal and stay equal."""
        world, setting = self.world, self.setting
        for _ in range(self.random.randint(0, 3)):
            self._write()
        patience = 2 * setting.options["min_watch_timeout"] + 300
        await world.eventually(self._is_equal, patience, "cache, handlers and server equal")
        await asyncio.sleep(2 * setting.resync + self.random.choice((0, 0, 0, 60)))
        await world.eventually(self._is_equal, 60, "cache, handlers and server equal still")
        # Where there is nothing, a first list that is not answered yet is not missed.
        await world.eventually(lambda: self.synced, patience, "everything is there, and it says so")
        await world.eventually(
            lambda: all(witness.synced or witness.removed for witness in self.witnesses),
            patience,
            "every handler got the initial objects and has synced",
        )
        self._check_initial()
        self._check_manners()
        await world.eventually(
            lambda: all(read.done() for read in self.reads), 300, "what was written is shown"
        )
        for read in self.reads:
            read.result()

    def list_wanted(self) -> dict[str, State]:
        """The collection as it is on the server."""
        collection = self.world.server.cluster.collection(self.world.server.resource("v1", "configmaps"))
        return {
            key: State(stored.uid, str(stored.resource_version))
            for key, stored in collection.objects.items()
            if not self.setting.namespaces or stored.namespace in self.setting.namespaces
        }

    # What happens

    def _informer(self) -> SharedIndexInformer[KubeObject]:
        setting = self.setting
        queue: Any = setting.queue
        return SharedIndexInformer(
            {
                namespace: ListWatch.for_resource(self.client, "v1", "configmaps", namespace or None)
                for namespace in setting.namespaces or ("",)
            },
            Picky,
            setting.resync,
            {"upper": lambda obj: [obj.metadata.name.upper()]},
            queue=queue,
            random=Random(f"{self.world.seed} informer"),
            **setting.options,
        )

    def _add_handler(self, options: dict[str, Any]) -> None:
        options = options.copy()
        backlog, limit = options.pop("backlog"), options.pop("backlog_limit")
        options["coalesces"] = backlog == "coalesce"
        witness = Witness(self.world, self.truth, f"handler {len(self.witnesses)}", **options)
        self.witnesses.append(witness)
        witness.registration = self.informer.add_event_handler(
            witness, None if options["resyncs"] else 0.0, backlog=backlog, backlog_limit=limit
        )

    async def _come_and_go(self) -> None:
        """Add handlers in the middle, and remove some."""
        setting = self.setting
        while True:
            await asyncio.sleep(self.random.expovariate(2 / setting.storm))
            if self.world.happens("handlers", "one comes"):
                self._add_handler(handler(self.random, setting.resync))
            await asyncio.sleep(self.random.expovariate(2 / setting.storm))
            witness = self.random.choice(self.witnesses)
            if self.world.happens("handlers", f"{witness.name} goes"):
                assert witness.registration is not None
                self.informer.remove_event_handler(witness.registration)
                witness.removed = True

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1 / self.setting.write_every))
            for _ in range(self.random.choice((1, 1, 1, 5))):
                self._write()

    def _write(self) -> None:
        """Create, change, delete, or delete and create again."""
        server = self.world.server
        random = Random(self.random.getrandbits(64))
        namespace, name = random.choice(NAMESPACES), random.choice(NAMES)
        dice = random.random()
        if not self.world.happens("writer", f"{namespace}/{name}"):
            return
        self.made += 1
        unfit = {"unfit": "yes"} if random.random() < self.setting.unfit else {}
        data = {"made": str(self.made), **unfit}
        obj = {"metadata": {"name": name, "namespace": namespace}, "data": data}
        resource = server.resource("v1", "configmaps")
        if server.cluster.find(resource, namespace, name) is None:
            self._wait_written(server.create("v1", "configmaps", obj))
        elif dice < 0.6:
            self._wait_written(server.update("v1", "configmaps", obj))
        else:
            server.delete("v1", "configmaps", name, namespace)
            if dice > 0.8:
                self._wait_written(server.create("v1", "configmaps", obj))

    def _wait_written(self, obj: dict[str, Any]) -> None:
        """Sometimes wait until the cache shows a write."""
        ours = not self.setting.namespaces or obj["metadata"]["namespace"] in self.setting.namespaces
        if self.informer._controllers and ours and self.random.random() < 0.2:
            self.reads.append(asyncio.create_task(self._read(obj)))

    async def _read(self, written: dict[str, Any]) -> None:
        metadata = written["metadata"]
        try:
            shown: KubeObject | None = await self.informer.wait_for(written)
        except DecodeError:
            shown = self.informer.store.find_any(f"{metadata['namespace']}/{metadata['name']}")
        self.world.note("reader", f"{metadata['namespace']}/{metadata['name']} shown")
        if shown is None:
            assert metadata["uid"] in self.truth.deleted, f"{metadata} is said to be gone"
        else:
            assert int(shown.resource_version) >= int(metadata["resourceVersion"]), f"{metadata} is not shown"

    # Invariants

    def _watch_syncs(self) -> None:
        """After every step: has_synced must not be True too early."""
        if len(self.listed_at) < len(self.informer._controllers):
            namespaces = self.setting.namespaces or ("",)
            for namespace, controller in zip(namespaces, self.informer._controllers, strict=True):
                if version := controller.last_sync_resource_version:
                    self.listed_at.setdefault(namespace, int(version))
        if not self.synced and self.informer.has_synced():
            self.synced = True
            self.stored_at_sync = set(self.informer.store.list_keys())
            self.version_at_sync = self.world.server.resource_version
            self.world.note("informer", f"has synced: {sorted(self.stored_at_sync)}")
            missing = [
                key
                for key, uid in self.first.items()
                if uid not in self.truth.deleted and key not in self.stored_at_sync
            ]
            assert not missing, f"has_synced without {missing}"
        for witness in self.witnesses:
            if not witness.synced and not witness.removed:
                assert witness.registration is not None
                if witness.registration.has_synced():
                    witness.synced = True
                    assert self.synced, f"{witness.name} has synced before the informer"
                    for key, uid in self.first.items():
                        is_reported = (
                            key in witness.shadow or key in witness.unfit or uid in self.truth.deleted
                        )
                        assert is_reported or not witness.is_aware, f"{witness.name} has synced without {key}"

    def _watch_version(self) -> None:
        """After every step: the version must not be ahead of the store and the queue."""
        version = self.informer.last_sync_resource_version
        if version == self.version_checked or any(
            controller.unfinished for controller in self.informer._controllers
        ):
            return
        self.version_checked = version
        assert self.informer.has_synced(), f"everything up to {version} was processed, and it has not synced"
        reached = int(version)
        stored = self.list_stored()
        for key, state in self.list_wanted().items():
            assert int(state.version) > reached or stored.get(key) == state, f"{version} without {key}"
        for key, state in stored.items():
            gone = self.truth.deleted.get(state.uid, reached + 1) <= reached
            assert not gone, f"{version} with {key}, which was deleted before"

    def _is_equal(self) -> bool:
        self._check_legal()
        wanted, fitting = self.list_wanted(), self.list_fitting()
        known = {key: state for key, state in wanted.items() if key in fitting}
        return wanted == self.list_stored() and all(
            witness.view(fitting) == (wanted if witness.is_aware else known)
            for witness in self.witnesses
            if not witness.removed
        )

    def list_stored(self) -> dict[str, State]:
        """What the cache has, undecodable objects included."""
        store = self.informer.store
        return {
            obj.key: State(obj.uid, obj.resource_version) for obj in (*store.list(), *store.undecodable())
        }

    def list_fitting(self) -> set[str]:
        """The keys of the cached objects that fit their type."""
        return {obj.key for obj in self.informer.store.list()}

    def _check_legal(self) -> None:
        for witness in self.witnesses:
            assert not witness.illegal, f"{witness.name} got an illegal call: {witness.illegal}"

    def _check_manners(self) -> None:
        """The informer must send no unnecessary requests and handle every answer."""
        reflectors = self.informer.state.reflectors
        troubles = [entry for entry in self.world.history if entry.who == "storm"]
        lists_and_watches = sum(reflector.lists + reflector.watches for reflector in reflectors)
        allowed = (0.25 * self.world.now + 4 * len(troubles)) * len(reflectors) + 30
        assert lists_and_watches < allowed, f"{lists_and_watches} requests in {self.world.now:.0f} s"
        if not any("garbage" in str(trouble.what) for trouble in troubles):
            assert not any(reflector.rejected for reflector in reflectors), "objects were rejected"

    def _check_initial(self) -> None:
        for witness in self.from_the_beginning:
            for key, uid in witness.initial.items():
                gone = self.truth.deleted.get(uid, self.version_at_sync + 1) <= self.version_at_sync
                assert key in self.stored_at_sync or gone, f"has_synced without {key} of the initial list"
                listed_at = self.listed_at.get(key.partition("/")[0]) or self.listed_at[""]
                # What came right after the list may have been read in the same step.
                assert self.truth.was_there(key, self.first_version, listed_at), (
                    f"{key} was not there up to {listed_at}, the first list"
                )
        index = self.informer.indexer
        listed = {
            key for name in index.list_index_func_values("upper") for key in index.index_keys("upper", name)
        }
        assert listed == self.list_fitting(), "the index is not the store's"
        for obj in self.informer.store.undecodable():
            assert "unfit" in obj["data"], f"{obj.key} fits"


def scenario_of(setting: Setting) -> Callable[[Simulation], Any]:
    """The scenario of a setting."""

    async def scenario(world: Simulation) -> None:
        world.note("setting", setting)
        await InformerHistory(world, setting).run()

    return scenario


def history_of(seed: int) -> Outcome:
    """The history of a seed."""
    chosen = setting(seed)
    return run_once(scenario_of(chosen), seed, **chosen.server)
