"""CachedResource: reads an informer's cache, and never less than it wrote itself.

controller-runtime's client reads caches that may be behind its own writes (its issues 1464, 3320); client-go has the
MutationCache for that, which shows the writer's states beside those of the cache. Here a read waits for the cache, so
that what indexes and lists say fits together.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Iterable
from typing import TypeVar

from .._core.checks import require_seconds
from ..errors import AioInformerError, ConfigError, NotFoundError, VersionTimeout
from ..informer import SharedIndexInformer
from ..informer.version_waits import Goal, Gone
from ..listwatch.collection import Collection
from ..objects.decoders import class_of
from ..objects.keys import (
    deletion_handling_meta_namespace_key_func,
    lacks_uid,
    lacks_version,
    namespace_of,
    resource_version_of,
    split_meta_namespace_key,
)
from ..objects.versions import NONE, is_opaque, number_of
from ..store.lister import Selector
from .resource import Resource
from .writes import Writes

logger = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT = 10.0
"""Seconds that a read waits for the cache."""

OPAQUE_PATIENCE = 1.0
"""Seconds that a read waits for a version that is no number, each time before it asks the server."""

_SWEEP_AT = 1000


class CachedResource(Writes[T]):
    """The objects of one resource: read from an informer's cache, changed at the API server.

    What was written through this object is in the cache once a read of it returns, deletions too: until then the read
    waits. It costs nothing where nothing was written since, and next to nothing otherwise, as events of one's own
    writes mostly come before the next read. What others write is seen as the cache sees it.

    Reads also wait for the informer's first list.

    Not waited for are evictions, writes whose answer did not come, and objects outside of the informer's namespaces. An
    object that the informer's selectors do not pick is waited for until the cache is known to be past it.

    A deletion is waited for from a version of the object on: what was written to it here, the target's, the one that
    ``delete`` was told to expect, or the answer's; for two seconds if it was not written here, as it may never come.
    After that, and where there is none, as where a key is deleted that others have made anew, the cache may
    show that object later, or an older one of its name.

    Before a read fails, the server is asked for the object: what it has, the cache may show. A deletion may have been
    undone by a restore of etcd, or a transformer leave out the uids by which namesakes are told apart.

    A version that is no number (Karmada and other aggregated servers) cannot be compared: a read waits until the cache
    shows exactly what was written. From one second on it also asks the server for the object, once a second: it ends
    when the cache shows what the server has, and raises VersionTimeout if it never does.

    Args:
        resource: Whose objects.
        informer: Of the same resource, entered by its owner.
        timeout: Seconds that a read waits; and then for the server's answer.

    Raises:
        ConfigError: The timeout is no duration, the informer is of another resource or has a key_func of its own, or a
            Struct has no field for what is needed: what a write returns for the version to wait for, what is cached
            for the uid.
    """

    def __init__(
        self, resource: Resource[T], informer: SharedIndexInformer[T], *, timeout: float = TIMEOUT
    ) -> None:
        require_seconds("timeout", timeout)
        if not isinstance(resource, Resource) or not isinstance(informer, SharedIndexInformer):
            raise ConfigError(
                f"a CachedResource is of a Resource and an informer, not of {resource!r} and {informer!r}"
            )
        written = resource._endpoint.addresses.collection
        for each in informer.list_watches.values():
            read = getattr(each, "resource", None)  # of functions nobody knows
            if isinstance(read, Collection) and (read.group, read.plural) != (written.group, written.plural):
                raise ConfigError(f"the informer reads {read}, and the resource is of {written}")
        object_type = resource._endpoint.codec.object_type
        if object_type is not None and lacks_version(class_of(object_type)):
            raise ConfigError(
                f"{object_type.__name__}.metadata needs `resource_version: str`: reads wait for what was written"
            )
        if lacks_uid(class_of(informer.object_type)):
            raise ConfigError(
                f"{informer.object_type.__name__}.metadata needs `uid: str`: reads wait until what was deleted is gone"
            )
        if informer.indexer.key_of is not deletion_handling_meta_namespace_key_func:
            raise ConfigError(
                f"{informer.name} has a key_func of its own: writes are known by namespace and name"
            )
        super().__init__(resource._endpoint)
        self.resource = resource
        """Reads at the server."""
        self.informer = informer
        """Keeps the cache."""
        self._timeout = timeout
        self._written: dict[str, Goal] = {}  # by keys; one that is newer includes those before it
        self._sweep_at = _SWEEP_AT
        self._is_warned = False

    async def get(self, key: str) -> T:
        """An object as it is cached.

        Args:
            key: ``"namespace/name"``, or ``"name"``.

        Raises:
            ConfigError: The informer does not read this namespace: nobody knows what is in it.
            NotFoundError: The cache has none.
            VersionTimeout: The cache does not show what was written here, in time.
            SyncTimeout: The first list has not come in time.
            StoppedError: The informer has stopped before the cache showed what was written here, or had synced.
        """
        key = self._endpoint.addresses.key_of(key)
        self._require_read(split_meta_namespace_key(key)[0])
        await self._catch_up([key])
        return self.informer.lister.get(key)

    async def list(self, namespace: str | None = None, selector: Selector[T] = None) -> builtins.list[T]:
        """The cached objects. Raises as ``get``.

        Args:
            namespace: None for all that are read.
            selector: A label selector or a predicate.

        Raises:
            SelectorError: The label selector cannot be parsed.
        """
        self._require_read(namespace or "")
        await self._catch_up(self._written)
        return self.informer.lister.namespace(namespace or "").list(selector)

    async def by_index(self, index: str, value: str) -> builtins.list[T]:
        """The cached objects with a value in an index. Raises as ``get``.

        Raises:
            UnknownIndexError: There is no such index.
        """
        await self._catch_up(self._written)
        return self.informer.indexer.by_index(index, value)

    def _require_read(self, namespace: str) -> None:
        if namespace and not self.informer.version_waits.reads(namespace):
            raise ConfigError(
                f"the cache of {self.informer.name} has nothing of namespace {namespace!r}: have the informer read it, "
                "or ask the server, by this CachedResource's `resource`"
            )

    async def _catch_up(self, keys: Iterable[str]) -> None:
        """Wait until the cache shows what was written to these keys by now."""
        self.informer.require_own_loop()
        if not self.informer.has_synced():
            await self.informer.wait_synced(self._timeout)
        goals = [self._written[key] for key in keys if key in self._written]
        if goals:
            deadline = asyncio.get_running_loop().time() + self._timeout
            for goal in goals:
                try:
                    await self._reach(goal, deadline)
                except VersionTimeout as error:
                    error.timeout = self._timeout  # of all together
                    raise
                self._forget(goal)

    async def _reach(self, goal: Goal, deadline: float) -> None:
        """Wait until the cache has reached a goal, or is not behind the object that the server has."""
        waits, now = self.informer.version_waits, asyncio.get_running_loop().time
        awaited, asks_first = goal, goal.is_contested
        while True:
            left = max(0.0, deadline - now())
            late: VersionTimeout | None = None
            if not asks_first:
                try:
                    await waits.wait(awaited, min(left, OPAQUE_PATIENCE) if goal.is_opaque else left)
                    return
                except VersionTimeout as error:
                    late = error
            asks_first = False
            awaited = await self._goal_at_the_server(goal) or awaited
            if waits.is_reached(awaited) or (not goal.is_contested and waits.is_reached(goal)):
                return
            if late is not None and (not goal.is_opaque or now() >= deadline):
                raise late

    async def _goal_at_the_server(self, goal: Goal) -> Goal | None:
        """The state of the object that the server has, to wait for; None if the server does not say."""
        waits, key = self.informer.version_waits, goal.key or ""
        try:
            async with asyncio.timeout(self._timeout):
                return waits.goal_of(await self.resource.get(key))
        except NotFoundError:
            # A version that is a number is still to come, and to go.
            return waits.gone(key, "", "") if goal.is_opaque else None
        except (AioInformerError, TimeoutError):
            return None

    def _forget(self, goal: Goal) -> None:
        if self._written.get(goal.key or "") is goal:
            del self._written[goal.key or ""]

    def _record_written(self, obj: T) -> None:
        waits, said = self.informer.version_waits, resource_version_of(obj)
        if not waits.reads(namespace_of(obj)):
            return
        version = number_of(said)
        if version <= 0 and not is_opaque(said):
            self._warn_of_no_version()
            return
        goal = waits.goal_of(obj)
        known = self._known(goal)
        # Answers may come in another order than that in which the server gave them.
        if isinstance(known, Gone) and ("" not in known.uids or known.number > version):
            goal = known.behind(goal)
        elif known is not None and known.number > version:
            return
        elif version == NONE and known is not None and not waits.is_reached(known):
            goal.is_contested = True
        self._note(goal)

    def _warn_of_no_version(self) -> None:
        if not self._is_warned:
            self._is_warned = True
            logger.warning(
                "%r: the server's answer to a write has no resourceVersion, so reads do not wait for such writes; read "
                "these objects at the server (.resource)",
                self,
            )

    def _record_removed(self, key: str, uid: str, version: str) -> None:
        if self.informer.version_waits.reads(split_meta_namespace_key(key)[0]):
            gone = self.informer.version_waits.gone(key, uid, version)
            known = self._known(gone)
            self._note(gone if known is None else gone.behind(known))

    def _known(self, goal: Goal) -> Goal | None:
        """What is waited for already, of the same key, unless a restore came between."""
        known = self._written.get(goal.key or "")
        return known if known is not None and known.restores == goal.restores else None

    def _note(self, goal: Goal) -> None:
        self._written[goal.key or ""] = goal
        if len(self._written) > self._sweep_at:  # of what nobody reads
            for each in list(self._written.values()):
                if self.informer.version_waits.is_reached(each):
                    self._forget(each)
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._written))
