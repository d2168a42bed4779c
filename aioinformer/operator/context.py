"""Context: what a reconciler of an Operator works with during one run."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from ..client import Client
from ..errors import ConfigError
from ..events import EventRecorder
from ..objects.api_resources import APIResource
from ..objects.kube_object import KubeObject
from ..resources import CachedResource, Resource
from .kinds import Named, declared, shown
from .manager import Manager

T = TypeVar("T")


class Context:
    """What the reconcilers of an Operator work with during one run: the client, resources and Events.

    ``Operator.manager`` makes one for its Manager, and passes it to every reconciler that takes a second argument.

    Args:
        name: The operator's name, which is also the field manager of its writes.
        manager: Runs the operator.
        cached: The resources that it reads from caches.
        direct: The resources that it only uses at the server.
        recorder: Records its Events; None if the operator declares that it records none.

    Attributes:
        name: The operator's name.
        client: Sends requests to the API server.
    """

    def __init__(
        self,
        name: str,
        manager: Manager,
        cached: list[Named],
        direct: list[Named],
        recorder: EventRecorder | None,
    ) -> None:
        self.name = name
        self.client: Client = manager.client
        self._recorder = recorder
        self._cached = {_key(each): manager.resource(each, field_manager=name) for each in cached}
        self._direct = {_key(each): Resource(self.client, each, field_manager=name) for each in direct}

    def __repr__(self) -> str:
        return f"<Context of {self.name}>"

    @overload
    def resource(self, resource: str) -> CachedResource[KubeObject]: ...

    @overload
    def resource(self, resource: type[T]) -> CachedResource[T]: ...

    def resource(self, resource: Named) -> CachedResource[Any]:
        """Return a declared resource, read from its cache, which includes what was written through it.

        Args:
            resource: A class or a name, as it was declared.

        Raises:
            ConfigError: The operator does not declare it, or only declares other verbs than list and watch.
        """
        key = _key(resource)
        if (found := self._cached.get(key)) is not None:
            return found
        if key in self._direct:
            raise ConfigError(
                f"{self.name}: {shown(resource)} is declared without list and watch, so there is no cache of it: use "
                f"context.uncached({shown(resource)}), or add list and watch to its verbs"
            )
        raise self._undeclared(resource)

    @overload
    def uncached(self, resource: str) -> Resource[KubeObject]: ...

    @overload
    def uncached(self, resource: type[T]) -> Resource[T]: ...

    def uncached(self, resource: Named) -> Resource[Any]:
        """Return a declared resource, read at the server.

        Args:
            resource: A class or a name, as it was declared.

        Raises:
            ConfigError: The operator does not declare it.
        """
        key = _key(resource)
        if (found := self._direct.get(key)) is not None:
            return found
        if (cached := self._cached.get(key)) is not None:
            return cached.resource
        raise self._undeclared(resource)

    @property
    def events(self) -> EventRecorder:
        """Records Events about objects.

        Raises:
            ConfigError: The operator declares that it records none.
        """
        if self._recorder is None:
            raise ConfigError(
                f"{self.name} declares events=False: remove that from its Operator to record Events"
            )
        return self._recorder

    def _undeclared(self, resource: Named) -> ConfigError:
        name = shown(resource)
        return ConfigError(
            f"{self.name} does not declare {name}: add it to owns= of its controller if it creates these objects, or "
            f"add Uses({name}, verbs=(...)) to uses=, with what it does with them"
        )


def _key(named: Named) -> tuple[APIResource, type | None]:
    return declared(named), named if isinstance(named, type) else None
