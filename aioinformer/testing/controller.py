"""What every controller here is: it watches changes, notes what to look at, and works on it in small steps."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from aioinformer.testing.cluster import DeleteOptions
from aioinformer.testing.deletion import delete
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import Object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredEvent, StoredObject

_Task = tuple["Callable[..., Iterator[None]]", tuple[object, ...]]


class Controller:
    """Reacts to the changes of a cluster.

    Observing a change only notes what to look at, once however often it is noted; `work` then does it in small
    steps, so that emptying a namespace of 100,000 objects can share the event loop. Each step looks at the
    cluster anew: whatever happened meanwhile is taken as it is.

    Args:
        cluster: The cluster.

    Attributes:
        name: What kube-controller-manager calls it.
    """

    name = ""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._tasks: OrderedDict[_Task, None] = OrderedDict()
        cluster.observers.append(self.observe)

    @property
    def busy(self) -> bool:
        """Whether there is work."""
        return bool(self._tasks)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Note what a change asks for."""
        raise NotImplementedError

    def work(self) -> Iterator[None]:
        """Do what there is to do, a small step at a time, until nothing is left."""
        while self._tasks:
            (step, arguments), _ = self._tasks.popitem(last=False)
            yield from step(*arguments)

    def add(self, step: Callable[..., Iterator[None]], *arguments: object) -> None:
        """Note something to do."""
        self._tasks[step, arguments] = None

    def delete(self, resource: ResourceType, stored: StoredObject, policy: str | None = None) -> None:
        """Delete an object that was there a moment ago."""
        try:
            options = DeleteOptions(propagation_policy=policy)
            delete(self.cluster, resource, stored.namespace, stored.name, options)
        except StatusError:
            return  # gone already, or changed: whoever did that has been observed

    def drop_finalizer(self, resource: ResourceType, stored: StoredObject, finalizer: str) -> None:
        """Take one finalizer off an object."""

        def change(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = [entry for entry in finalizers_of(obj) if entry != finalizer]
            return obj

        self.cluster.modify(resource, stored.namespace, stored.name, change)


def finalizers_of(obj: Object) -> list[str]:
    """An object's finalizers."""
    return obj["metadata"].get("finalizers") or []


def settle(controllers: list[Controller]) -> None:
    """Let controllers do all that there is to do, at once."""
    while any(controller.busy for controller in controllers):
        for controller in controllers:
            for _ in controller.work():
                pass
