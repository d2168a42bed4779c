"""The base class of the embedded controllers: a queue of work that is done in small steps."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from aioinformer.testing.cluster.deletion import delete
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import Object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent, StoredObject

_STATUS = WriteOptions(subresource="status")
_Task = tuple["Callable[..., Iterator[None]]", tuple[object, ...]]


class ClusterController:
    """Reacts to the changes of a cluster.

    `observe` only queues work, without duplicates. `work` then does it in small steps, so that emptying a namespace of
    100,000 objects does not block the event loop. Each step reads the current state of the cluster.

    Args:
        cluster: The cluster.

    Attributes:
        name: Its name in kube-controller-manager.
    """

    name = ""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._tasks: OrderedDict[_Task, None] = OrderedDict()
        cluster.observers.append(self.observe)

    @property
    def busy(self) -> bool:
        """True if there is work."""
        return bool(self._tasks)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue the work for a change."""
        raise NotImplementedError

    def work(self) -> Iterator[None]:
        """Do all queued work in small steps."""
        while self._tasks:
            (step, arguments), _ = self._tasks.popitem(last=False)
            yield from step(*arguments)

    def add(self, step: Callable[..., Iterator[None]], *arguments: object) -> None:
        """Queue a step unless it is queued already."""
        self._tasks[step, arguments] = None

    def delete(self, resource: ResourceType, stored: StoredObject, policy: str | None = None) -> None:
        """Delete an object that existed a moment ago."""
        try:
            options = DeleteOptions(propagation_policy=policy)
            delete(self.cluster, resource, stored.namespace, stored.name, options)
        except StatusError:
            return  # deleted or changed meanwhile; the controller has observed that

    def set_status(self, resource: ResourceType, namespace: str, name: str, status: Object) -> None:
        """Write the status of an object; without a difference nothing changes."""
        self.cluster.modify(resource, namespace, name, lambda obj: {**obj, "status": status}, _STATUS)

    def drop_finalizer(self, resource: ResourceType, stored: StoredObject, finalizer: str) -> None:
        """Remove a finalizer from an object."""

        def change(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = [entry for entry in finalizers_of(obj) if entry != finalizer]
            return obj

        self.cluster.modify(resource, stored.namespace, stored.name, change)


def finalizers_of(obj: Object) -> list[str]:
    """Return an object's finalizers."""
    return obj["metadata"].get("finalizers") or []


def work_all(controllers: list[ClusterController]) -> None:
    """Do all queued work of all controllers, without yielding."""
    while any(controller.busy for controller in controllers):
        for controller in controllers:
            for _ in controller.work():
                pass
