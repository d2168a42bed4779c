"""The table of owners: one Lease whose annotation says which replica owns each slot. Writes compare its version."""

from __future__ import annotations

from collections.abc import Mapping
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
    """

    slots: int
    owners: dict[int, str]

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
            return cls(slots, {})
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
        return cls(slots, {slot: owner for owner, owned in content.owners.items() for slot in owned})

    def of_owner(self, identity: str) -> set[int]:
        """Return the slots of an owner."""
        return {slot for slot, owner in self.owners.items() if owner == identity}

    def change(self, identity: str, *, give: set[int], take: set[int]) -> Table:
        """Return the table after a replica has given back some slots and taken others."""
        owners = {slot: owner for slot, owner in self.owners.items() if slot not in give or owner != identity}
        return Table(self.slots, owners | dict.fromkeys(sorted(take), identity))

    def annotation(self) -> str:
        """Return the table as the text of its annotation."""
        owners: dict[str, list[int]] = {}
        for slot in sorted(self.owners):
            owners.setdefault(self.owners[slot], []).append(slot)
        return msgspec.json.encode(_Content(self.slots, owners)).decode()
