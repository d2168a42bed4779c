"""Context: what a reconciler of an Operator works with during one run."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal, TypeVar, overload

import anyio

from .._core.log_fields import WorkLogger
from ..client import Client
from ..client.lookup import resource_of as api_resource_of
from ..errors import ConfigError
from ..events import EventRecorder
from ..objects.keys import namespace_of
from ..objects.kube_object import KubeObject
from ..objects.labels import LabelSelector
from ..resources import CachedResource, Resource
from .kinds import CacheKey, Kind, ResourceReference, arguments_of, base_of, is_optional, key_of, show
from .manager import Manager
from .metadata import NAME, read_metadata
from .owning import apply_as_owner, require_possible_owner

T = TypeVar("T")

Fields = Mapping[str, Any]
Lifespan = Callable[["Context"], AsyncIterator[Any]]
"""Opens a dependency, yields it once, and closes it."""


class Context:
    """What the reconcilers of an Operator work with during one run: the client, resources, Events and dependencies.

    ``Operator.manager`` makes one for its Manager, and passes it to every reconciler that takes a second argument.

    Args:
        name: The operator's name, which is also the field manager of its writes.
        manager: Runs the operator.
        namespace: The namespace that it works in.
        namespaces: Several namespaces, in place of one.
        cached: The resources that it reads from caches.
        direct: The resources that it only uses at the server.
        recorder: Records its Events; None if the operator declares that it records none.
        settings: Its settings; None if it has none.

    Attributes:
        name: The operator's name.
        namespace: The only namespace that it works in; None for all or several.
        namespaces: The namespaces that it works in; ``()`` for all.
        client: Sends requests to the API server. ``client.namespace`` is the namespace of the pod.
        logger: Logs with the operator's name. In a reconcile, records have its controller, namespace, name, uid,
            attempt and duration, in ``record.fields`` and as fields of ``--log-format=json``.

    Raises:
        ConfigError: An index is invalid, or two Kinds of one resource have an index of the same name.
    """

    def __init__(
        self,
        name: str,
        manager: Manager,
        *,
        namespace: str | None,
        namespaces: Iterable[str] | None = None,
        cached: Iterable[ResourceReference],
        direct: Iterable[ResourceReference],
        recorder: EventRecorder | None,
        settings: object = None,
        shard_by: Mapping[CacheKey, Literal["uid", "owner", ""]] | None = None,
    ) -> None:
        self.name = name
        several = (namespace,) if namespace else tuple(dict.fromkeys(namespaces or ()))
        self.namespace = several[0] if len(several) == 1 else None
        self.namespaces = several
        self.client: Client = manager.client
        self.logger = WorkLogger(logging.getLogger(name), {})
        self._recorder = recorder
        self._provided = [] if settings is None else [settings]
        self._cached: dict[CacheKey, CachedResource[Any]] = {}
        declared = [*dict.fromkeys(cached)]
        optional = {key_of(resource) for resource in declared if is_optional(resource)}
        for resource in declared:
            if (key := key_of(resource)) not in self._cached:
                self._cached[key] = manager.resource(
                    *arguments_of(resource),
                    field_manager=name,
                    label_selector=key.label_selector,
                    field_selector=key.field_selector,
                    optional=key in optional,
                    shard_by=(shard_by or {}).get(key, ""),
                )
            if isinstance(resource, Kind):
                self._cached[key].informer.add_indexers(resource.indexers)
        self._direct: dict[CacheKey, Resource[Any]] = {
            key_of(declared): Resource(self.client, *arguments_of(declared), field_manager=name)
            for declared in direct
        }

    def __repr__(self) -> str:
        return f"<Context of {self.name}>"

    @overload
    def resource(self, resource: str) -> CachedResource[KubeObject]: ...

    @overload
    def resource(self, resource: type[T] | Kind[T]) -> CachedResource[T]: ...

    def resource(self, resource: ResourceReference) -> CachedResource[Any]:
        """Return a declared resource, read from its cache, which includes what was written through it.

        Args:
            resource: A class, a name or a Kind, as it was declared.

        Raises:
            ConfigError: The operator does not declare it, or only declares other verbs than list and watch; or this
                Kind has an index that no declared one has.
        """
        key = key_of(resource)
        if (cached := self._cached.get(key)) is not None:
            if isinstance(resource, Kind) and (
                lacking := resource.indexers.keys() - cached.informer.indexer.indexers
            ):
                raise ConfigError(
                    f"{self.name} declares {show(resource)} without the index {', '.join(sorted(lacking))}: "
                    "declare the Kind that has it, in place of the class or the name"
                )
            return cached
        if key in self._direct:
            raise ConfigError(
                f"{self.name}: {show(resource)} is declared without list and watch, so there is no cache of it: use "
                f"context.uncached({show(resource)}), or add list and watch to its verbs"
            )
        raise self._undeclared_error(resource)

    @overload
    def uncached(self, resource: str) -> Resource[KubeObject]: ...

    @overload
    def uncached(self, resource: type[T] | Kind[T]) -> Resource[T]: ...

    def uncached(self, resource: ResourceReference) -> Resource[Any]:
        """Return a declared resource, read at the server.

        Args:
            resource: A class, a name or a Kind, as it was declared.

        Raises:
            ConfigError: The operator does not declare it.
        """
        key = key_of(resource)
        if (direct := self._direct.get(key)) is not None:
            return direct
        if (cached := self._cached.get(key)) is not None:
            return cached.resource
        raise self._undeclared_error(resource)

    @overload
    async def apply_owned(
        self, owner: Any, resource: str, fields: Fields, *, adopt: bool = False
    ) -> KubeObject: ...

    @overload
    async def apply_owned(
        self, owner: Any, resource: type[T] | Kind[T], fields: Fields, *, adopt: bool = False
    ) -> T: ...

    async def apply_owned(
        self, owner: Any, resource: ResourceReference, fields: Fields, *, adopt: bool = False
    ) -> Any:
        """Create an object that an owner owns, or correct its fields, by server-side apply.

        It takes over fields that others changed. Fields that the previous call set and this one omits are removed. The
        object is deleted with its owner.

        An object that belongs to others is not changed: it has another controller, or none, and this operator has not
        applied it. The server checks that, so owners that race for one name cannot take the object from each other.

        Args:
            owner: The object that is being reconciled; it becomes the controller in ``ownerReferences``.
            resource: A class, a name or a Kind, as it was declared.
            fields: The fields to set. ``metadata`` needs a name or namespace only if they differ from the owner's.
            adopt: Whether to take over an object that exists without a controller, whatever made it.

        Returns:
            The object as the server stored it.

        Raises:
            AlreadyOwnedError: The object belongs to others.
            OwnerError: The owner is in another namespace, or in one while the object is cluster-scoped. The reconcile
                is not retried.
            ConfigError: The operator does not declare the resource; the owner lacks its apiVersion, kind or uid; or the
                labels are not those that the Kind selects.
            ConflictError: Others changed the object during each of five tries.
            AioInformerError: As for ``Resource.apply``.
        """
        key, home = key_of(resource), namespace_of(owner)
        written = self._cached.get(key) or self.uncached(resource)
        metadata = {"name": read_metadata(owner, NAME), "namespace": home, **(fields.get("metadata") or {})}
        child = f"{show(resource)} {'/'.join(filter(None, (metadata['namespace'], metadata['name'])))}"
        known = api_resource_of(self.client, base_of(resource))
        require_possible_owner(child, owner, metadata["namespace"], is_namespaced=known.namespaced)
        if isinstance(written, CachedResource) and not LabelSelector.parse(key.label_selector).matches(
            metadata.get("labels") or {}
        ):
            raise ConfigError(
                f"{child}: the cache has only objects with {key.label_selector}, so the operator would not see this "
                "one: add these labels to its metadata"
            )
        stored = Resource(self.client, known, dict)
        obj = {**fields, "metadata": metadata}
        return await apply_as_owner(written, stored, obj, owner, manager=self.name, adopt=adopt)

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

    def get(self, kind: type[T]) -> T:
        """Return the settings, or what a lifespan of the operator provides, by its class.

        Raises:
            ConfigError: The operator has nothing of this class, or its lifespans are not open.
        """
        for value in self._provided:
            if isinstance(value, kind):
                return value
        known = ", ".join(type(value).__name__ for value in self._provided)
        raise ConfigError(
            f"{self.name} has no {kind.__name__}{f'; it has {known}' if known else ''}. Pass it as settings= of the "
            "Operator, or yield it in a function with @operator.lifespan, which is open while the manager runs"
        )

    @asynccontextmanager
    async def provide(self, lifespans: Iterable[Lifespan]) -> AsyncIterator[None]:
        """Open lifespans one after the other, each of which may use what the earlier ones provide, and close them.

        Closing them raises nothing at their ``yield``: a run normally ends by cancellation.
        """
        before = len(self._provided)
        stack = AsyncExitStack()
        try:
            for lifespan in lifespans:
                opened = asynccontextmanager(lifespan)(self)
                self._provided.append(await opened.__aenter__())
                stack.push_async_callback(opened.__aexit__, None, None, None)
            yield
        finally:
            try:
                with anyio.CancelScope(shield=True):  # a cancelled scope would cancel each of their awaits
                    await stack.aclose()
            finally:
                del self._provided[before:]

    def _undeclared_error(self, resource: ResourceReference) -> ConfigError:
        name, key = show(resource), key_of(resource)
        if any(key.resource == declared.resource for declared in (*self._cached, *self._direct)):
            return ConfigError(
                f"{self.name} declares {name} with another object type or other selectors: pass the class or the Kind "
                "that it declares"
            )
        return ConfigError(
            f"{self.name} does not declare {name}: add it to owns= of its controller if it creates these objects, or "
            f"add Uses({name}, verbs=(...)) to uses=, with what it does with them"
        )
