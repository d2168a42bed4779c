"""Operators on a simulated API server, in virtual time, in several orders of whatever is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from aioinformer import Client, KubeObject
from aioinformer.leaderelection import LeaderElector
from aioinformer.objects.keys import resource_version_of
from aioinformer.operator import Controller, Manager, Request, Result, TriggerState
from aioinformer.testing import Simulation

T = TypeVar("T")


CONTAINERS = {"spec": {"containers": [{"name": "web", "image": "example.com/web"}]}}
"""The minimum of a Pod."""

Reconcile = Callable[[Request[KubeObject]], Coroutine[Any, Any, Result | None]]


class StubbornReconcile:
    """A reconcile or map function that ignores its cancellation until the test lets it end."""

    def __init__(self) -> None:
        self.gives_in = False

    async def __call__(self, asked: Request[KubeObject] | KubeObject) -> None:
        while not self.gives_in:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)


def return_or_raise(outcome: T | Exception) -> T:
    """Return a value, or raise it if it is an exception."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class Reconciler:
    """Records its requests, and does what the test says.

    Attributes:
        seen: The key and version of each request; None for an object that is gone.
        at_work: Keys that are being reconciled.
    """

    def __init__(self, act: Callable[[Request[KubeObject]], Any] | None = None) -> None:
        self._act = act
        self.seen: list[tuple[str, str | None]] = []
        self.at_work: list[str] = []

    async def __call__(self, request: Request[KubeObject]) -> Result | None:
        assert request.key not in self.at_work, "never the same key twice"
        obj = request.object
        self.seen.append((request.key, None if obj is None else resource_version_of(obj)))
        self.at_work.append(request.key)
        try:
            result = None if self._act is None else self._act(request)
            return await result if asyncio.iscoroutine(result) else result
        finally:
            self.at_work.remove(request.key)

    @property
    def keys(self) -> list[str]:
        """Return the keys of its requests."""
        return [key for key, _ in self.seen]


async def run_until_a_worker_dies(manager: Manager, controller: Controller[Any]) -> asyncio.Task[None]:
    """Run a manager that ends when a worker of this idle controller is cancelled from outside."""
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    (worker,) = controller._workers._tasks
    worker.cancel()
    await asyncio.sleep(5)
    return running


def trigger(controller: Controller[Any], number: int) -> TriggerState:
    return controller.state.triggers[number]


def create(world: Simulation, name: str, plural: str = "configmaps", **fields: Any) -> dict[str, Any]:
    """Create an object in the namespace "default"."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return world.server.create("v1", plural, {"metadata": metadata, **fields})


def change(world: Simulation, name: str, plural: str = "configmaps", **fields: Any) -> dict[str, Any]:
    """Merge fields into an object."""
    return world.server.patch("v1", plural, name, fields)


def elector(client: Client) -> LeaderElector:
    return LeaderElector(client, "operator", "default")


def make_managed(client: Client, reconcile: Any, **options: Any) -> tuple[Manager, Controller[KubeObject]]:
    manager = Manager(client, **options)
    maps = manager.for_resource("v1", "configmaps")
    return manager, manager.add(Controller("tests", reconcile, maps))


@asynccontextmanager
async def run_controller(
    world: Simulation,
    reconcile: Any,
    *,
    plural: str = "configmaps",
    grace_period: float = 20.0,
    **options: Any,
) -> AsyncIterator[Controller[KubeObject]]:
    """Run a controller of one collection."""
    manager = Manager(world.client, grace_period=grace_period)
    controller = manager.add(Controller("tests", reconcile, manager.for_resource("v1", plural), **options))
    async with manager:
        yield controller


@asynccontextmanager
async def feed_queue(controller: Controller[Any]) -> AsyncIterator[None]:
    """Let changes and sources fill a controller's queue, without a manager."""
    controller.require_not_fed()
    controller.feed()
    try:
        yield
    finally:
        await controller.stop_triggers()


async def quiet(controller: Controller[Any], seconds: float = 1.0) -> None:
    """Let the simulation run for some seconds."""
    await asyncio.sleep(seconds)
    assert not len(controller.queue), controller.state
