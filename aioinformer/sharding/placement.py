"""Placement: which slot each object of a cache is in."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from .._core.cancellation import CALL_ERRORS
from .._core.failure_log import FailureLog
from ..errors import message_of
from ..objects.kube_object import KubeObject
from .slots import slot_of, slot_of_text

logger = logging.getLogger(__name__)

MOST_GONE = 65_536
"""Deleted objects whose slots are remembered, until they are reconciled."""


class Grouping(NamedTuple):
    """What decides about the slot of an object.

    Attributes:
        text_of: Returns the text that decides.
        slot_of: Returns the slot of a text, for a number of slots.
        is_selected: Whether servers can select by it.
    """

    text_of: Callable[[KubeObject], str]
    slot_of: Callable[[str, int], int] = slot_of
    is_selected: bool = False


def uid_of_owner(obj: KubeObject) -> str:
    """Return the uid of the object's controller, or else of its first owner; its own if it has none."""
    owners = obj.metadata.owner_references
    owner = next((owner for owner in owners if owner.controller), owners[0] if owners else None)
    return obj.uid if owner is None else owner.uid


BY_UID = Grouping(lambda obj: obj.uid, is_selected=True)
BY_NAMESPACE = Grouping(lambda obj: obj.namespace, slot_of_text)
BY_OWNER = Grouping(uid_of_owner)


def by_function(function: Callable[[KubeObject], str]) -> Grouping:
    """Return the grouping by a user's function. An object for which it fails is grouped by its uid, on all replicas."""
    failures = FailureLog("key", logger)

    def text_of(obj: KubeObject) -> str:
        try:
            text = function(obj)
            text.encode()
        except CALL_ERRORS as error:
            line = "the key of %s is not known, so its uid decides about its slot: the function failed: %s"
            failures.log(error, line, obj.key, message_of(error))
            return obj.uid
        return text

    return Grouping(text_of, slot_of_text)


class Placement:
    """The slots of the objects that one reader has handed on.

    Args:
        grouping: What decides about an object's slot.
        slots: The number of slots.

    Attributes:
        moved: Of a list: objects that were in the placement before, and that their texts have put into other slots.
    """

    def __init__(self, grouping: Grouping, slots: int) -> None:
        self._grouping = grouping
        self._slots = slots
        self.moved: set[str] = set()
        self._slot: dict[str, int] = {}
        self._keys: dict[int, dict[str, None]] = {}
        self._gone: OrderedDict[str, int] = OrderedDict()

    def slot_for(self, obj: KubeObject) -> int:
        """Return the slot of an object."""
        return self._grouping.slot_of(self._grouping.text_of(obj), self._slots)

    def slot_of(self, key: str) -> int | None:
        """Return the slot of an object that was handed on, or was deleted since; None for others."""
        slot = self._slot.get(key)
        return self._gone.get(key) if slot is None else slot

    def get(self, key: str) -> int | None:
        """Return the slot of an object that was handed on and is not deleted; None for others."""
        return self._slot.get(key)

    def __getitem__(self, key: str) -> int:
        return self._slot[key]

    def __contains__(self, key: str) -> bool:
        return key in self._slot

    def put(self, key: str, slot: int) -> None:
        """Record an object."""
        before = self._slot.get(key)
        if before == slot:
            return
        if before is not None:
            self._keys[before].pop(key, None)
        elif self._gone:
            self._gone.pop(key, None)
        self._slot[key] = slot
        self._keys.setdefault(slot, {})[key] = None

    def remove(self, key: str, *, is_deleted: bool) -> None:
        """Record that an object was deleted, or has left the share."""
        slot = self._slot.pop(key, None)
        if slot is None:
            return
        self._keys[slot].pop(key, None)
        if not self._keys[slot]:
            del self._keys[slot]
        if is_deleted:
            self._gone[key] = slot
            if len(self._gone) > MOST_GONE:
                self._gone.popitem(last=False)

    def replace(self, other: Placement, slots: Collection[int]) -> None:
        """Take the objects of a list of these slots. Objects of these slots that are not in it were deleted."""
        for key in list(self._slot):
            if key not in other._slot:
                self.remove(key, is_deleted=self._slot[key] in slots and key not in other.moved)
        self._slot, self._keys = other._slot, other._keys

    def keys_in(self, slots: Collection[int]) -> Iterator[str]:
        """Yield the objects in some slots."""
        for slot in slots:
            yield from list(self._keys.get(slot, ()))

    def keys_outside(self, slots: Collection[int]) -> Iterator[str]:
        """Yield the objects that are in none of some slots."""
        yield from self.keys_in(self._keys.keys() - set(slots))

    def counts(self) -> dict[int, int]:
        """Return the number of objects in each slot that has some. May be read in any thread."""
        return {slot: len(keys) for slot, keys in sorted(self._keys.copy().items())}


def slot_in(informer: Any, key: str) -> int | None:
    """Return the slot of an object of an informer; None if the informer never had it in this share."""
    for reader in informer.list_watches.values():
        slot: int | None = reader.placement.slot_of(key)
        if slot is not None:
            return slot
    return None


def keys_in(informer: Any, slots: Collection[int]) -> Iterator[str]:
    """Yield the keys of the objects in some slots that an informer has read."""
    for reader in informer.list_watches.values():
        yield from reader.placement.keys_in(slots)


def shard_by_of(informer: Any) -> str:
    """Return what decides about the share that an informer reads; ``""`` if it reads all."""
    return next((getattr(reader, "shard_by", "") for reader in informer.list_watches.values()), "")
