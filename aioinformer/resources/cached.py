"""CachedResource: reads from an informer's cache, which then includes all writes made through it.

controller-runtime's client reads caches that may be behind its own writes (its issues 1464, 3320). client-go's
MutationCache overlays the written objects on the cache. Here a read waits for the cache instead, so that lists and
indexes stay consistent.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Iterable
from typing import Any, TypeVar

import anyio

from .._core.checks import require_seconds
from ..errors import AioInformerError, ConfigError, NotFoundError, VersionTimeout
from ..fifo.user_callbacks import transform
from ..informer import SharedIndexInformer
from ..informer.version_waits import Goal, Gone
from ..listwatch.collection import Collection
from ..objects.codec import codec_for
from ..objects.decoders import class_of
from ..objects.keys import (
    deletion_handling_meta_namespace_key_func,
    lacks_uid,
    lacks_version,
    namespace_of,
    resource_version_of,
    split_meta_namespace_key,
)
from ..objects.kube_object import KubeObject
from ..objects.undecodable import UndecodableObject
from ..objects.versions import NONE, is_opaque, number_of
from ..store.lister import Selector
from .resource import Resource
from .writes import Writes

logger = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT = 10.0
"""Default time that a read waits for the cache, in seconds."""

OPAQUE_WAIT = 1.0
"""Seconds that a read waits for a version that is not a number, before each time it asks the server."""

_SWEEP_AT = 1000


class CachedResource(Writes[T]):
    """Objects of one resource: reads come from an informer's cache, writes go to the API server.

    A read waits until the cache includes what was written through this object before, including deletions. That costs
    nothing without such writes, and little otherwise, since the events of a write mostly arrive before the next read.
    Writes of others are visible as soon as the cache has them.

    Reads also wait for the informer's first list.

    Reads do not wait for evictions, for writes whose answer did not arrive, and for objects outside of the informer's
    namespaces. For an object that the informer's selectors exclude, a read waits until the cache is known to be past
    the write.

    A read waits for a deletion by a version of the object: of the last write here, of the target, the
    ``resource_version`` passed to ``delete``, or the answer's. It waits at most two seconds if the object was not
    written here, since the event may never arrive. After that, or without a version (a key is deleted whose object
    others have recreated), the cache may show the deleted object or an older one of its name.

    Before a read fails, it asks the server for the object: the cache may be right to show what the server has. A
    restore of etcd may have undone a deletion, or a transformer may drop the uids that distinguish recreated objects.

    A version that is not a number (Karmada and other aggregated servers) cannot be compared: a read waits until the
    cache shows exactly what was written. After one second it also asks the server for the object, once a second. It
    returns when the cache shows what the server has, and raises VersionTimeout if that does not happen in time.

    Args:
        resource: The resource to write to.
        informer: An informer of the same resource. Its owner enters it.
        timeout: Seconds that a read waits for the cache, and then for the server's answer.

    Raises:
        ConfigError: The timeout is not a duration; the informer reads another resource or has its own key_func; or a
            Struct lacks a field: the resource's needs the resourceVersion, the informer's needs the uid.
    """

    def __init__(
        self, resource: Resource[T], informer: SharedIndexInformer[T], *, timeout: float = TIMEOUT
    ) -> None:
        require_seconds("timeout", timeout)
        if not isinstance(resource, Resource) or not isinstance(informer, SharedIndexInformer):
            raise ConfigError(
                f"CachedResource needs a Resource and an informer, not {resource!r} and {informer!r}"
            )
        written = resource._endpoint.addresses.collection
        for list_watch in informer.list_watches.values():
            read = getattr(list_watch, "resource", None)  # unknown for user functions
            if isinstance(read, Collection) and (read.group, read.plural) != (written.group, written.plural):
                raise ConfigError(f"the informer reads {read}, and the resource is of {written}")
        object_type = resource._endpoint.codec.object_type
        if object_type is not None and lacks_version(class_of(object_type)):
            raise ConfigError(
                f"{object_type.__name__}.metadata needs `resource_version: str`: reads wait for the version of a write"
            )
        if lacks_uid(class_of(informer.object_type)):
            raise ConfigError(
                f"{informer.object_type.__name__}.metadata needs `uid: str`: reads wait until a deleted object is gone"
            )
        if informer.indexer.key_of is not deletion_handling_meta_namespace_key_func:
            raise ConfigError(
                f"{informer.name} has its own key_func: a CachedResource needs keys of namespace and name"
            )
        super().__init__(resource._endpoint)
        self.resource = resource
        """Reads at the server, without the cache."""
        self.informer = informer
        """Keeps the cache up to date."""
        self._timeout = timeout
        self._written: dict[str, Goal] = {}  # by key; a newer goal includes the older ones
        self._sweep_at = _SWEEP_AT
        self._has_warned = False

    async def get(self, key: str) -> T:
        """Return a cached object.

        Args:
            key: ``"namespace/name"``, or ``"name"``.

        Raises:
            ConfigError: The informer does not read this namespace.
            NotFoundError: The object is not in the cache.
            DecodeError: The object does not fit the object type.
            VersionTimeout: The cache did not include an earlier write in time.
            SyncTimeout: The first list did not arrive in time.
            StoppedError: The informer stopped before it had synced or the cache included an earlier write.
        """
        key = self._endpoint.addresses.key_of(key)
        self._require_read(split_meta_namespace_key(key)[0])
        await self._catch_up([key])
        return self.informer.lister.get(key)

    def is_current(self, key: str) -> bool:
        """Return whether the cache is known to include all writes to a key, so that a read of it does not wait."""
        return key not in self._written

    async def list(self, namespace: str | None = None, selector: Selector[T] = None) -> builtins.list[T]:
        """Return the cached objects, without those that do not fit the object type. Raises as ``get``.

        Args:
            namespace: None for all namespaces that the informer reads.
            selector: A label selector or a predicate.

        Raises:
            SelectorError: The label selector cannot be parsed.
        """
        self._require_read(namespace or "")
        await self._catch_up(self._written)
        return self.informer.lister.namespace(namespace or "").list(selector)

    async def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Return the cached objects with a value in an index, as ``list``. Raises as ``get``.

        Raises:
            UnknownIndexError: The index does not exist.
        """
        await self._catch_up(self._written)
        return self.informer.indexer.by_index(index, value)

    def _require_read(self, namespace: str) -> None:
        if namespace and not self.informer.version_waits.reads(namespace):
            raise ConfigError(
                f"{self.informer.name} does not read the namespace {namespace!r}, so the cache lacks it: let the "
                "informer read it, or read at the server with this CachedResource's `resource`"
            )

    async def _catch_up(self, keys: Iterable[str]) -> None:
        """Wait until the cache includes all writes so far to these keys."""
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
                    error.timeout = self._timeout  # the timeout of the whole read, not of this goal
                    raise
                self._forget(goal)

    async def _reach(self, goal: Goal, deadline: float) -> None:
        """Wait until the cache has reached a goal, or shows what the server has."""
        waits, now = self.informer.version_waits, asyncio.get_running_loop().time
        awaited, asks_first = goal, goal.is_contested
        while True:
            left = max(0.0, deadline - now())
            late: VersionTimeout | None = None
            if not asks_first:
                try:
                    await waits.wait(awaited, min(left, OPAQUE_WAIT) if goal.is_opaque else left)
                    return
                except VersionTimeout as error:
                    late = error
            asks_first = False
            awaited = await self._goal_at_server(goal) or awaited
            if waits.is_reached(awaited) or (not goal.is_contested and waits.is_reached(goal)):
                return
            if late is not None and (not goal.is_opaque or now() >= deadline):
                raise late

    async def _goal_at_server(self, goal: Goal) -> Goal | None:
        """Return the object's state at the server as a goal; None if the server does not answer."""
        waits, key = self.informer.version_waits, goal.key or ""
        try:
            with anyio.move_on_after(self._timeout):
                return waits.goal_of(KubeObject.from_bytes(await self._endpoint.read(key)))
        except NotFoundError:
            # The events of a numeric version are still to come.
            return waits.goal_of_deletion(key, "", "") if goal.is_opaque else None
        except AioInformerError:
            pass
        return None

    def _forget(self, goal: Goal) -> None:
        if self._written.get(goal.key or "") is goal:
            del self._written[goal.key or ""]

    def _is_partial(self, obj: Any) -> bool:
        """Also an object that was read from the cache: the informer's transformer may have removed fields."""
        return super()._is_partial(obj) or (
            self._is_transformed(type(obj)) and bool(resource_version_of(obj))
        )

    def _as_read(self, key: str, body: bytes, object_type: type[Any]) -> Any:
        if not self._is_transformed(object_type):
            return super()._as_read(key, body, object_type)
        return transform(self.informer.transformer, key, codec_for(object_type).decode(body))

    def _is_transformed(self, object_type: type[Any]) -> bool:
        return self.informer.transformer is not None and object_type is class_of(self.informer.object_type)

    def _record_written(self, obj: T | UndecodableObject) -> None:
        waits, said = self.informer.version_waits, resource_version_of(obj)
        if not waits.reads(namespace_of(obj)):
            return
        version = number_of(said)
        if version <= 0 and not is_opaque(said):
            self._warn_of_no_version()
            return
        goal = waits.goal_of(obj)
        known = self._current_goal(goal)
        # Answers may arrive in another order than the server sent them.
        if isinstance(known, Gone) and ("" not in known.uids or known.number > version):
            goal = known.behind(goal)
        elif known is not None and known.number > version:
            return
        elif version == NONE and known is not None and not waits.is_reached(known):
            goal.is_contested = True
        self._await(goal)

    def _warn_of_no_version(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%r: the server's answer to a write has no resourceVersion, so reads do not wait for such writes; to "
                "see them, read these objects at the server (.resource)",
                self,
            )

    def _record_removed(self, key: str, uid: str, version: str) -> None:
        if self.informer.version_waits.reads(split_meta_namespace_key(key)[0]):
            gone = self.informer.version_waits.goal_of_deletion(key, uid, version)
            known = self._current_goal(gone)
            self._await(gone if known is None else gone.behind(known))

    def _current_goal(self, goal: Goal) -> Goal | None:
        """Return the goal of the same key, unless etcd was restored since it was set."""
        known = self._written.get(goal.key or "")
        return known if known is not None and known.restores == goal.restores else None

    def _await(self, goal: Goal) -> None:
        self._written[goal.key or ""] = goal
        if len(self._written) > self._sweep_at:  # drop reached goals of keys that no read asked for
            for written in list(self._written.values()):
                if self.informer.version_waits.is_reached(written):
                    self._forget(written)
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._written))
