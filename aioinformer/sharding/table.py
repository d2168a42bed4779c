"""The table of owners: one Lease whose annotation says which replica owns each slot. Writes compare its version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import ConfigError, DecodeError
from ..objects.nesting import DECODE_ERRORS, reader_of

OWNERS = "aioinformer.dev/slots"
"""The annotation."""


class _Content(msgspec.Struct, omit_defaults=True):
    slots: int
    owners: dict[str, list[int]] = {}
    key: str = ""
    reads: list[str] = []


_read = reader_of(_Content)


class Table(msgspec.Struct, frozen=True):
    """Who owns which slot.

    Attributes:
        slots: The number of slots.
        owners: The identity that owns a slot, by slot. Others are free.
        members: The identities that take part. A replica writes its own, which shows that it can read and write.
        key: What decides about the slot of an object: ``"uid"``, ``"namespace"`` or ``"function"``; ``""`` if the
            replicas are older than this field.
        reads: The primary collections of the replica that wrote the table last.
    """

    slots: int
    owners: dict[int, str] = {}
    members: frozenset[str] = frozenset()
    key: str = ""
    reads: tuple[str, ...] = ()

    @classmethod
    def of(cls, lease: Mapping[str, Any], slots: int, key: str = "") -> Table:
        """Read the table from its Lease.

        Args:
            lease: The Lease; empty if there is none.
            slots: The number of slots of this replica.
            key: What decides about the slot of an object.

        Raises:
            ConfigError: Other replicas have another number of slots or another key.
            DecodeError: The annotation cannot be read.
        """
        metadata = lease.get("metadata") or {}
        text = (metadata.get("annotations") or {}).get(OWNERS)
        where = f"the Lease {metadata.get('namespace')}/{metadata.get('name')}"
        if text is None:
            return cls(slots, key=key)
        try:
            content = _read(text.encode())
        except DECODE_ERRORS as error:
            raise _unreadable(where, str(error)) from error
        if content.owners and content.slots != slots:
            raise ConfigError(
                f"{where} has {content.slots} slots, but this replica is configured for {slots}: give all replicas the "
                "same number, or a new number together with a new name"
            )
        if content.owners and content.key and key and content.key != key:
            raise ConfigError(
                f"{where} is of replicas with key={content.key!r}, but this replica has key={key!r}: give all replicas "
                "the same key, or another key together with a new name"
            )
        owners: dict[int, str] = {}
        for owner, owned in content.owners.items():
            for slot in owned:
                if not 0 <= slot < slots:
                    raise _unreadable(where, f"there is no slot {slot}")
                if slot in owners:
                    raise _unreadable(where, f"the slot {slot} has two owners")
                owners[slot] = owner
        return cls(slots, owners, frozenset(content.owners), key, tuple(content.reads))

    def of_owner(self, identity: str) -> set[int]:
        """Return the slots of an owner."""
        return {slot for slot, owner in self.owners.items() if owner == identity}

    def change(
        self, identity: str, *, give: Collection[int], take: Collection[int], gone: Collection[str]
    ) -> Table:
        """Return the table after a replica has given back some slots and taken others.

        Args:
            identity: The replica, which takes part from then on.
            give: Slots of this replica.
            take: Free slots, or slots of replicas that are gone.
            gone: Replicas that are gone.
        """
        owners = {
            slot: owner
            for slot, owner in self.owners.items()
            if owner not in gone and not (owner == identity and slot in give)
        }
        owners |= dict.fromkeys(take, identity)
        return replace(self, owners=owners, members=(self.members - set(gone)) | {identity})

    def without(self, identity: str) -> Table:
        """Return the table after a replica has left."""
        owners = {slot: owner for slot, owner in self.owners.items() if owner != identity}
        return replace(self, owners=owners, members=self.members - {identity})

    def annotation(self) -> str:
        """Return the table as the text of its annotation."""
        owners: dict[str, list[int]] = {member: [] for member in sorted(self.members)}
        for slot in sorted(self.owners):
            owners[self.owners[slot]].append(slot)
        content = _Content(self.slots, owners, self.key, list(self.reads))
        return msgspec.json.encode(content).decode()


def _unreadable(where: str, why: str) -> DecodeError:
    return DecodeError(
        f"the annotation {OWNERS} of {where} cannot be read: {why}. Stop all replicas, and delete the Lease"
    )
