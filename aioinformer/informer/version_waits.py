"""VersionWaits: read your writes, by waiting until the cache shows a version (KEP-5504 makes versions comparable)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Any

import anyio

from ..controller import Controller
from ..errors import ConfigError, StoppedError, VersionTimeout
from ..objects.keys import (
    namespace_of,
    resource_version_of,
    split_meta_namespace_key,
    uid_of,
)
from ..objects.versions import (
    NONE,
    is_opaque,
    number_of,
    require_version,
    require_watchable,
)
from ..store import Store

MOST_NAMESAKES = 10
"""Deletions of one name to wait for at once; of more, only the last ones."""
DELETION_TIMEOUT = 2.0
"""Seconds to wait for a version of a deleted object that was not written here, and may never arrive."""


class Goal:
    """A version to wait for.

    A collection has reached a version once its reflector has read that far and everything queued by then was
    processed. An object has reached it earlier: as soon as the store has the object at its version.

    A list at a lower version than before, as after a restore of etcd, undoes writes, and the version may never come.
    So a goal from before such a list is reached once the list was processed: then the cache shows what the server has.

    An opaque version, which is not a number, has no order: it is reached when exactly that version is shown or read.

    Args:
        version: The resourceVersion.
        key: The object's key, or None for the collection.
        namespace: The object's namespace, or None.
        restores: How many lists went back to a lower version so far, by namespace.
    """

    def __init__(
        self,
        version: str,
        key: str | None = None,
        namespace: str | None = None,
        restores: Mapping[str, int] | None = None,
    ) -> None:
        self.version = version
        self.key = key
        self.namespace = namespace
        self.restores = restores or {}
        self.number = number_of(version)
        self.is_contested = False
        """Whether another write of the object, with an opaque version, may be newer."""
        self._is_reached = False
        self._processed_at: dict[str, int] = {}  # of the collections that have read far enough

    @property
    def is_opaque(self) -> bool:
        """Whether the version cannot be compared, so that the cache may pass it unnoticed."""
        return is_opaque(self.version)

    def is_reached(self, store: Store[Any], controllers: Mapping[str, Controller]) -> bool:
        """Return whether the goal is or was reached. Call it at every progress, so that none is missed."""
        self._is_reached = self._is_reached or self._is_reached_now(store, controllers)
        return self._is_reached

    def give_up(self) -> None:
        """Count as reached, because the version may never come."""
        self._is_reached = True

    def _is_reached_now(self, store: Store[Any], controllers: Mapping[str, Controller]) -> bool:
        by_each = [self._is_reached_by(*pair) for pair in controllers.items()]
        return self._is_shown(store) or (bool(by_each) and all(by_each))

    def _is_shown(self, store: Store[Any]) -> bool:
        obj = None if self.key is None else store.find_any(self.key)
        return obj is not None and self._is_at(resource_version_of(obj))

    def _is_at(self, version: str) -> bool:
        return version == self.version or NONE < self.number <= number_of(version)

    def _is_reached_by(self, namespace: str, controller: Controller) -> bool:
        goal = self._processed_at.get(namespace)
        if goal is None:
            if not self._is_read(controller) and controller.restores == self.restores.get(namespace, 0):
                return False
            goal = self._processed_at[namespace] = controller.processed + controller.unfinished
        return controller.processed >= goal

    def _is_read(self, controller: Controller) -> bool:
        return self._is_at(controller.last_sync_resource_version)


class Gone(Goal):
    """The deletion of an object: the store does not have it any more.

    A cache that never saw the object, or has an older object of that name, would report it deleted. So the wait is
    first for a known version of the object, if there is one.

    Args:
        key: The object's key.
        uids: Its uid and those of its predecessors; ``""`` where unknown.
        after: A version at which it existed, or was deleted. It may never come: then it is given up.
        restores: As of any goal.
        written: As ``after``, for a version that was written here, and so will come.
    """

    def __init__(
        self,
        key: str,
        uids: tuple[str, ...],
        after: Goal | None = None,
        restores: Mapping[str, int] | None = None,
        written: Goal | None = None,
    ) -> None:
        super().__init__("", key, split_meta_namespace_key(key)[0], restores)
        self.uids = uids
        self.after = after
        self.written = written
        self.number = max(
            (version.number for version in (after, written) if version is not None), default=NONE
        )

    @property
    def is_opaque(self) -> bool:
        return any(version is not None and version.is_opaque for version in (self.after, self.written))

    def behind(self, goal: Goal) -> Gone:
        """Return this goal combined with an earlier one: a deletion, or a version that was written here."""
        before = goal if isinstance(goal, Gone) else Gone(self.key or "", (), written=goal)
        uids = tuple(dict.fromkeys((*before.uids, *self.uids)))[-MOST_NAMESAKES:]
        after, written = _later(self.after, before.after), _later(before.written, self.written)
        return Gone(self.key or "", uids, after, self.restores, written)

    def _is_reached_now(self, store: Store[Any], controllers: Mapping[str, Controller]) -> bool:
        versions = [version for version in (self.after, self.written) if version is not None]
        is_past = all(version.is_reached(store, controllers) for version in versions)
        return is_past and super()._is_reached_now(store, controllers)

    def _is_shown(self, store: Store[Any]) -> bool:
        obj = store.find_any(self.key or "")
        return obj is None or ("" not in self.uids and uid_of(obj) not in ("", *self.uids))

    def _is_read(self, controller: Controller) -> bool:
        return False  # a restore may bring the object back


def _later(one: Goal | None, other: Goal | None) -> Goal | None:
    """Return the later of two versions, the first of opaque ones; ignore versions that were reached or given up."""
    remaining = [version for version in (one, other) if version is not None and not version._is_reached]
    return max(remaining, key=lambda goal: goal.number, default=None)


@dataclass(slots=True, eq=False)
class _Waiter:
    """A task that waits for a goal.

    Attributes:
        rank: The version at which the goal is checked, NONE for every progress; and the order of arrival.
    """

    goal: Goal
    future: asyncio.Future[None]
    rank: tuple[int, int]


_RANK = attrgetter("rank")


class VersionWaits:
    """The tasks that wait for versions. Without any, controllers are not observed and pay nothing.

    Waiters are sorted by version, in one list for each namespace and one for all namespaces. Progress checks only those
    whose version it has reached.

    Args:
        name: The informer's name, for messages.
        store: Its cache.
        namespaces: The namespaces that it reads; ``""`` alone for an informer with one source.
        state: Returns its state, for messages.
    """

    def __init__(
        self, name: str, store: Store[Any], namespaces: Mapping[str, Any], state: Callable[[], object]
    ) -> None:
        self._name = name
        self._store = store
        self._namespaces = namespaces
        self._state = state
        self._controllers: dict[str, Controller] = {}
        self._waiting: dict[str | None, list[_Waiter]] = {namespace: [] for namespace in (*namespaces, None)}
        self._ranks = count()
        self._stopped = False

    def __len__(self) -> int:
        """Return the number of waiters."""
        return sum(map(len, self._waiting.values()))

    def start(self, controllers: Mapping[str, Controller]) -> None:
        """Set the controllers, by namespace."""
        self._controllers = dict(controllers)
        self._observe_while_waited(self._controllers)

    def stop(self) -> None:
        """Wake all waiters: nothing will come any more."""
        self._stopped = True
        for waiting in self._waiting.values():
            for wait in waiting:
                if not wait.future.done():
                    wait.future.set_result(None)

    def goal_of(self, written: Any) -> Goal:
        """Return the goal for an object or a resourceVersion.

        Raises:
            ConfigError: There is no valid version, or the namespace is not read here.
            KeyFuncError: The object has no key.
        """
        if isinstance(written, str):
            require_version("what to wait for", written)
            return Goal(written, restores=self._restores(None))
        key = self._store.key_of(written)
        version = resource_version_of(written)
        require_watchable(f"metadata.resourceVersion of {key}", version)
        namespace = namespace_of(written)
        if not self.reads(namespace):
            raise ConfigError(
                f"{self._name} reads the namespaces {', '.join(self._namespaces)}, but not that of {key}"
            )
        return Goal(version, key, namespace, self._restores(namespace))

    def goal_of_deletion(self, key: str, uid: str, version: str) -> Gone:
        """Return the goal for the deletion of an object, with its uid and a version of it, ``""`` if unknown."""
        namespace = split_meta_namespace_key(key)[0]
        restores, after = self._restores(namespace), None
        if number_of(version) > 0 or is_opaque(version):
            after = Goal(version, key, namespace, restores)
            if after.is_opaque:
                self.is_reached(after)  # checked now, while the cache may still show that version
            # The selectors may not match it, and a restored server may never get there.
            asyncio.get_running_loop().call_later(DELETION_TIMEOUT, self._give_up, after)
        return Gone(key, (uid,), after, restores)

    def _give_up(self, goal: Goal) -> None:
        goal.give_up()
        always = self._up_to(NONE, self._waiting[self._list_of(goal)])
        self._check(wait for wait in always if isinstance(wait.goal, Gone) and wait.goal.after is goal)

    def reads(self, namespace: str) -> bool:
        """Return whether objects of a namespace are read here."""
        return "" in self._namespaces or namespace in self._namespaces

    def is_reached(self, goal: Goal) -> bool:
        """Return whether a goal was reached."""
        return goal.is_reached(self._store, self._controllers_of(goal.namespace))

    def wake(self) -> None:
        """Wake the waiters whose goal is reached, after something was stored."""
        for line in self._waiting:
            self._wake(line)

    def _on_progress(self, namespace: str) -> None:
        self._wake(namespace)
        self._wake(None)

    def _wake(self, line: str | None) -> None:
        waiting = self._waiting[line]
        if not waiting:
            return
        if waiting[-1].rank[0] > NONE and self._is_restored(waiting[-1].goal):
            for wait in waiting:  # versions went back: check all at every progress
                wait.rank = (NONE, wait.rank[1])
            waiting.sort(key=_RANK)
        # The store may be ahead of these versions for a moment; the next progress checks again. With several
        # controllers each counts from when it has read that far.
        versions = [
            controller.last_sync_resource_version for controller in self._controllers_of(line).values()
        ]
        self._check(self._up_to(max(map(number_of, versions), default=NONE), waiting))

    def _up_to(self, read: int, waiting: list[_Waiter]) -> list[_Waiter]:
        return waiting[: bisect_left(waiting, (read + 1, 0), key=_RANK)]

    def _check(self, waiting: Iterable[_Waiter]) -> None:
        for wait in waiting:
            if not wait.future.done() and self.is_reached(wait.goal):
                wait.future.set_result(None)

    async def wait(self, goal: Goal, timeout: float | None) -> None:
        """Wait for a goal. Raises as ``SharedIndexInformer.wait_for``.

        Raises:
            ConfigError: An opaque version without a timeout: the cache may have passed it, unnoticed.
        """
        if timeout is None and goal.is_opaque:
            raise ConfigError(
                f"{self._name}: {goal.key or 'the collection'} at {goal.version!r} needs a timeout: a version that is "
                "no number is known only while the cache shows exactly it, and the cache may be past it already"
            )
        if self.is_reached(goal):
            return
        with anyio.move_on_after(timeout) as scope:
            await self._wait(goal)
        if not self.is_reached(goal):
            if scope.cancelled_caught:
                raise self._timeout(goal, timeout)
            raise StoppedError(
                f"{self._name} stopped at {self._lowest_version(goal)} before it had reached "
                f"{goal.version or 'the deletion'}{_about(goal)}: {self._state()}"
            )

    async def _wait(self, goal: Goal) -> None:
        if self._stopped:
            return
        line = self._list_of(goal)
        waiting = self._waiting[line]
        always = isinstance(goal, Gone) or self._is_restored(goal)
        rank = (NONE if always else goal.number, next(self._ranks))
        waiter = _Waiter(goal, asyncio.get_running_loop().create_future(), rank)
        insort(waiting, waiter, key=_RANK)
        if len(waiting) == 1:
            self._observe_while_waited(self._controllers_of(line))
        try:
            await waiter.future
        finally:
            del waiting[bisect_left(waiting, waiter.rank, key=_RANK)]
            if not waiting:
                self._observe_while_waited(self._controllers_of(line))

    def _observe_while_waited(self, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            waited = self._waiting[namespace] or self._waiting[None]
            self._controllers[namespace].watch_progress(
                partial(self._on_progress, namespace) if waited else None
            )

    def _list_of(self, goal: Goal) -> str | None:
        """Return which list of waiters a goal belongs to: its namespace's, if that is read separately."""
        return goal.namespace if goal.namespace in self._waiting else None

    def _restores(self, namespace: str | None) -> dict[str, int]:
        concerned = self._controllers_of(namespace).items()
        return {part: controller.restores for part, controller in concerned if controller.restores}

    def _is_restored(self, goal: Goal) -> bool:
        """Return whether versions went back since the goal was made."""
        return goal.restores != self._restores(goal.namespace)

    def _controllers_of(self, namespace: str | None) -> Mapping[str, Controller]:
        """Return the controllers that must reach a goal: one namespace's, or all."""
        if namespace is None or namespace not in self._controllers:
            return self._controllers
        return {namespace: self._controllers[namespace]}

    def _lowest_version(self, goal: Goal) -> str:
        """Return the lowest version that was read, for messages."""
        versions = [
            controller.last_sync_resource_version
            for controller in self._controllers_of(goal.namespace).values()
        ]
        return min(versions, key=number_of, default="") or "no version"

    def _timeout(self, goal: Goal, timeout: float | None) -> VersionTimeout:
        return VersionTimeout(
            self._name, goal.version, self._lowest_version(goal), goal.key, timeout or 0.0, str(self._state())
        )


def _about(goal: Goal) -> str:
    return f" for {goal.key}" if goal.key is not None else ""
