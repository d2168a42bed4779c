"""The operator: its caches, controllers and triggers."""

from __future__ import annotations

from typing import Any

from aioinformer import EventRecorder
from aioinformer.operator import Controller, Manager, Owns, Request, Watch

from .backends import BackendReconciler
from .caves import CaveReconciler
from .model import API_VERSION, GROUP, Backend, Cave, Pod, by_mount, pods_by_mount, pods_by_owner

NAME = f"{GROUP}/storage-operator"
RECHECK = 20.0


async def run(
    client: Any,
    *,
    events: EventRecorder | None = None,
    namespace: str | None = None,
    recheck: float = RECHECK,
    **options: Any,
) -> None:
    """Run the operator until cancelled.

    Args:
        client: The cluster's client.
        events: Records what happens; None makes a recorder.
        namespace: The watched namespace; None for all.
        recheck: Seconds between counts of a deleted Cave's pods.
        **options: Options of the Manager, such as `leader_election`.
    """
    async with events or EventRecorder(client, NAME) as recorder:
        await storage_operator(client, recorder, namespace=namespace, recheck=recheck, **options).run()


def storage_operator(
    client: Any,
    events: EventRecorder,
    *,
    namespace: str | None = None,
    recheck: float = RECHECK,
    **options: Any,
) -> Manager:
    """Make the operator without running it. Arguments as for `run`."""
    manager = Manager(client, namespace=namespace, **options)
    caves = manager.resource(API_VERSION, "caves", Cave, kind="Cave")
    backends = manager.resource(API_VERSION, "backends", Backend, kind="Backend")
    pods = manager.resource("v1", "pods", Pod, kind="Pod")
    caves.informer.add_indexers({"mount": by_mount})
    backends.informer.add_indexers({"mount": by_mount})
    pods.informer.add_indexers({"mount": pods_by_mount, "owner": pods_by_owner})

    def caves_of(pod: Pod) -> list[Request[Cave]]:
        index = caves.informer.indexer
        return [Request.of(cave) for mount in pods_by_mount(pod) for cave in index.by_index("mount", mount)]

    def backends_of(cave: Cave) -> list[Request[Backend]]:
        found = backends.informer.indexer.by_index("mount", str(cave.spec.mount))
        return [Request.of(backend) for backend in found]

    to_caves = CaveReconciler(caves, pods, namespace, events, recheck)
    manager.add(Controller("caves", to_caves, caves, watches=[Watch(pods, caves_of)]))
    to_backends = BackendReconciler(backends, caves.resource, pods, namespace, events)
    manager.add(
        Controller("backends", to_backends, backends, owns=[Owns(pods)], watches=[Watch(caves, backends_of)])
    )
    return manager
