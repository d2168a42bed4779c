"""Invariants of every informer history, and handlers that check them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer import (
    DecodeError,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandler,
    UndecodableObject,
)

if TYPE_CHECKING:
    from aioinformer import Registration
    from aioinformer.cache import TypeMeta
    from aioinformer.testing import Simulation


UNFIT = b'"unfit"'
"""What makes an object not fit ``Picky``."""


class Picky(KubeObject, frozen=True, eq=False, gc=False):
    """An object type that not every object fits."""

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Picky:
        if UNFIT in raw:
            raise DecodeError("not a Picky")
        return super().from_bytes(raw, type_meta)


class State(NamedTuple):
    """The state of an object as a handler knows it."""

    uid: str
    version: str


class Truth:
    """The real changes of a resource on the server.

    Attributes:
        keys: The key of each object, by uid.
        versions: The versions of each object, by uid.
        deleted: The version of its deletion, by uid.
    """

    def __init__(self, world: Simulation, plural: str) -> None:
        self.keys: dict[str, str] = {}
        self.versions: dict[str, set[str]] = {}
        self.deleted: dict[str, int] = {}
        self._plural = plural
        world.server.cluster.observers.append(self._note)

    def _note(self, resource: Any, event: Any) -> None:
        if resource.plural == self._plural:
            stored = event.current or event.previous
            self.keys[stored.uid] = event.key
            self.versions.setdefault(stored.uid, set()).add(str(event.resource_version))
            if event.current is None:
                self.deleted[stored.uid] = event.resource_version

    def was_there(self, key: str, since: int, until: int) -> bool:
        """Return whether an object of this key existed at one of these versions of the collection."""
        return any(
            min(map(int, self.versions[uid])) <= until and since < self.deleted.get(uid, since + 1)
            for uid, of in self.keys.items()
            if of == key
        )


class Witness(ResourceEventHandler[KubeObject]):
    """A handler that detects illegal notifications.

    Args:
        world: Where it lives.
        truth: What really happened.
        name: What the history calls it.
        resyncs: Whether it may get unchanged objects.
        coalesces: Whether what happened to one object meanwhile reaches it as one.
        raises: How often, of once, it raises.
        slow: Seconds that a call takes at most; 0 for a plain function.
        is_aware: Whether it has ``on_undecodable``.

    Attributes:
        shadow: The collection according to its notifications.
        unfit: The states of undecodable objects, if it has ``on_undecodable``.
        initial: The key and uid of each object of the initial list.
        registration: Its registration.
        synced: Whether that was seen to have synced.
        removed: Whether it was removed.
    """

    def __init__(
        self,
        world: Simulation,
        truth: Truth,
        name: str,
        *,
        resyncs: bool = False,
        coalesces: bool = False,
        raises: float = 0.0,
        slow: float = 0.0,
        is_aware: bool = True,
    ) -> None:
        self._world = world
        self._truth = truth
        self._random = Random(f"{world.seed} {name}")
        self._resyncs = resyncs
        self._coalesces = coalesces
        self._raises = raises
        self._slow = slow
        self._busy = False
        self._newest: dict[str, int] = {}
        self.name = name
        self.shadow: dict[str, State] = {}
        self.unfit: dict[str, State] = {}
        self.is_aware = is_aware
        if is_aware:
            self.on_undecodable = self._on_undecodable
        self.initial: dict[str, str] = {}
        self.registration: Registration | None = None
        self.synced = False
        self.removed = False
        self.calls = 0
        self.illegal: list[str] = []

    def __repr__(self) -> str:
        return f"<Witness {self.name}>"

    # Handler methods

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> Any:
        initial = ", initial" if is_in_initial_list else ""
        self._note(f"add {obj.key} at {obj.resource_version}{initial}")
        if obj.key in self.shadow:
            self._blame(f"an add of {obj.key}, which it knows already")
        if is_in_initial_list:
            self.initial[obj.key] = obj.uid
            if self.synced:
                self._blame(f"{obj.key} of the initial list after has_synced")
        self._take(obj)
        return self._work()

    def on_update(self, old: KubeObject, new: KubeObject) -> Any:
        self._note(f"update {new.key} from {old.resource_version} to {new.resource_version}")
        known = self.shadow.get(new.key)
        if known != State(old.uid, old.resource_version):
            self._blame(f"an update of {new.key} from {old.resource_version}, which was {known}")
        if old.resource_version == new.resource_version and not self._resyncs:
            self._blame(f"an update of {new.key} that is none, and it does not resync")
        self._take(new)
        return self._work()

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> Any:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        key = obj.key
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        self._note(f"delete {key}{', missed' if missed else ''}")
        if type(last) is UndecodableObject:
            self._blame(f"a delete with an undecodable {key}")
        known, was_unfit = self.shadow.pop(key, None), self.unfit.pop(key, None)
        if known is None and was_unfit is not None:
            return self._work()
        if known is None:
            self._blame(f"a delete of {key}, which it does not know")
        elif last is None:
            self._blame(f"a delete of {key} without its last state")
        elif last.uid != known.uid and not self._coalesces:
            self._blame(f"a delete of another {key} than the one it knows")
        elif missed and last.resource_version != known.version and not self._coalesces:
            self._blame(f"a tombstone of {key} with a state that it was not told of")
        if last is not None:
            deleted = self._truth.deleted.get(last.uid)
            if deleted is None:
                self._blame(f"a delete of {key}, which is still there")
            elif not missed and last.resource_version != str(deleted):
                self._blame(f"a delete of {key} that does not show its deletion")
        return self._work()

    def _on_undecodable(self, obj: UndecodableObject) -> Any:
        self._note(f"undecodable {obj.key} at {obj.resource_version}")
        state = State(obj.uid, obj.resource_version)
        if self.unfit.get(obj.key) == state and not self._resyncs:
            self._blame(f"an undecodable {obj.key} that it knows already, and it does not resync")
        self._check_version(obj)
        self.unfit[obj.key] = state
        return self._work()

    def view(self, fitting: set[str]) -> dict[str, State]:
        """What it knows of the newest states. One that is not aware knows the objects that fit."""
        known = {**self.shadow, **self.unfit}
        return known if self.is_aware else {key: state for key, state in known.items() if key in fitting}

    # Within

    def _take(self, obj: KubeObject) -> None:
        if type(obj) is UndecodableObject:
            self._blame(f"an undecodable {obj.key} where it must fit")
        self._check_version(obj)
        self.unfit.pop(obj.key, None)
        self.shadow[obj.key] = State(obj.uid, obj.resource_version)

    def _check_version(self, obj: KubeObject) -> None:
        if obj.resource_version not in self._truth.versions.get(obj.uid, ()):
            self._blame(f"{obj.key} at {obj.resource_version}, which it never was")
        if int(obj.resource_version) < self._newest.get(obj.key, 0):
            self._blame(f"{obj.key} back at {obj.resource_version}, after {self._newest[obj.key]}")
        self._newest[obj.key] = int(obj.resource_version)

    def _note(self, what: str) -> None:
        self.calls += 1
        self._world.note(self.name, what)
        if self.removed:
            self._blame("a call after it was removed")
        if self._busy:
            self._blame("a call while it was still busy with another")

    def _blame(self, what: str) -> None:
        self.illegal.append(what)
        self._world.note(self.name, f"ILLEGAL: {what}")

    def _work(self) -> Any:
        if self._slow:
            return self._work_slowly(self._random.random() * self._slow)
        self._raise_perhaps()
        return None

    async def _work_slowly(self, seconds: float) -> None:
        self._busy = True
        try:
            await asyncio.sleep(seconds if self._random.random() < 0.5 else 0)
            self._raise_perhaps()
        finally:
            self._busy = False

    def _raise_perhaps(self) -> None:
        if self._raises and self._random.random() < self._raises:
            raise (RuntimeError if self.calls % 2 else asyncio.CancelledError)(f"{self.name} fails")
