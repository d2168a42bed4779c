"""The slots of a sharded operator, and the replicas that own them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...operator.debug_page import Snapshot
from ...sharding.slots import MOST_SLOTS, show_slots
from ..output import printable
from .table import Table, show_seconds

SLOT_COLUMNS = ("replica", "slots", "which", "")
MOST_OWNERS = 50
"""Replicas that are shown: others can write their names."""


def slots(new: Snapshot) -> Table:
    """Return the replicas that share the objects, the one with the most slots first; free slots before them."""
    sharding = new.get("sharding")
    if not sharding:
        return Table("Slots", SLOT_COLUMNS, [])
    count, owned = sharding["slots"], sharding["owned"]
    if not 0 < count <= MOST_SLOTS:
        raise ValueError(f"{count} slots")
    title = [f"Slots: this replica owns {len(owned)} of {count}", f"{sharding['moves']:,} moves"]
    if sharding["moved_seconds"] is not None:
        title.append(f"the last {show_seconds(sharding['moved_seconds'])} ago")
    if sharding["leaving"]:
        title.append(f"gives back {len(sharding['leaving'])}")
    if load := sharding.get("load"):
        title.append(
            f"objects per slot {load['least']:,} to {load['most']:,} (slot {load['fullest']}), "
            f"median {load['median']:g}"
        )
    if False in sharding["is_filtered_by_server"].values():
        title.append("the server does not select slots")
    owners = sorted(sharding["owners"].items(), key=lambda owner: (-len(owner[1]), owner[0]))
    rows: list[tuple[str, ...]] = [
        (name, str(len(its)), show_slots(its), _describe_replica(sharding, name))
        for name, its in owners[:MOST_OWNERS]
    ]
    rows += [
        (name, "0", "", "") for name in sharding["members"][:MOST_OWNERS] if name not in sharding["owners"]
    ]
    if len(owners) > MOST_OWNERS:
        rows.append((f"and {len(owners) - MOST_OWNERS:,} more", "", "", ""))
    free = set(range(count)).difference(*sharding["owners"].values())
    if free:
        rows.insert(0, ("no owner", str(len(free)), show_slots(free), ""))
    return Table(printable(", ".join(title)), SLOT_COLUMNS, rows)


def _describe_replica(sharding: Mapping[str, Any], name: str) -> str:
    if name == sharding["identity"]:
        return "this replica"
    return "" if name in sharding["members"] else "its Lease has expired"
