"""The table of owners: one Lease whose annotation says which replica owns each slot. Writes compare its version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ..errors import ConfigError, DecodeError
from ..objects.nesting import DECODE_ERRORS, reader_of

OWNERS = "aioinformer.dev/slots"
"""The annotation."""


class _Content(msgspec.Struct):
    slots: int
    owners: dict[str, list[int]] = {}


_read = reader_of(_Content)


class Table(msgspec.Struct, frozen=True):
    """Who owns which slot.

    Attributes:
        slots: The number of slots.
        owners: The identity that owns a slot, by slot. Others are free.
        members: The identities that take part. A replica writes its own, which shows that it can read and write.
    """

    slots: int
    owners: dict[int, str] = {}
    members: frozenset[str] = frozenset()

    @classmethod
    def of(cls, lease: Mapping[str, Any], slots: int) -> Table:
        """Read the table from its Lease.

        Raises:
            ConfigError: Other replicas have another number of slots.
            DecodeError: The annotation cannot be read.
        """
        metadata = lease.get("metadata") or {}
        text = (metadata.get("annotations") or {}).get(OWNERS)
        where = f"the Lease {metadata.get('namespace')}/{metadata.get('name')}"
        if text is None:
            return cls(slots)
        try:
            content = _read(text.encode())
        except DECODE_ERRORS as error:
            raise DecodeError(
                f"the annotation {OWNERS} of {where} cannot be read: {error}. Delete the Lease while no replica runs"
            ) from error
        if content.slots != slots:
            raise ConfigError(
                f"{where} has {content.slots} slots, but this replica is configured for {slots}: give all replicas the "
                "same number, or a new number together with a new name"
            )
        owners = {slot: owner for owner, owned in content.owners.items() for slot in owned}
        return cls(slots, owners, frozenset(content.owners))

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
        return Table(self.slots, owners, (self.members - set(gone)) | {identity})

    def without(self, identity: str) -> Table:
        """Return the table after a replica has left."""
        owners = {slot: owner for slot, owner in self.owners.items() if owner != identity}
        return Table(self.slots, owners, self.members - {identity})

    def annotation(self) -> str:
        """Return the table as the text of its annotation."""
        owners: dict[str, list[int]] = {member: [] for member in sorted(self.members)}
        for slot in sorted(self.owners):
            owners[self.owners[slot]].append(slot)
        return msgspec.json.encode(_Content(self.slots, owners)).decode()
