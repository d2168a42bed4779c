"""The assignment of slots to replicas. Every replica computes the same one from the same table and members."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .slots import runs_of


def assign(slots: int, owners: Mapping[int, str], members: Collection[str]) -> dict[str, set[int]]:
    """Return the slots that each member should own.

    Each gets the same number, give or take one, and as few slots as possible move. An owner that has too many keeps its
    longest runs of adjacent slots, and a free slot goes to the owner of a neighbour if that may have more.

    Args:
        slots: The number of slots.
        owners: The owners of slots. Owners that are not members own nothing any more.
        members: The replicas; without one there is nothing to assign.
    """
    owned: dict[str, set[int]] = {member: set() for member in members}
    for slot, owner in owners.items():
        if owner in owned:
            owned[owner].add(slot)
    if not owned:
        return {}
    # Those that own most may keep one more: this moves the fewest.
    ranked = sorted(owned, key=lambda member: (-len(owned[member]), member))
    least, rest = divmod(slots, len(ranked))
    quota = {member: least + (place < rest) for place, member in enumerate(ranked)}
    assigned = {member: _longest_runs(owned[member], quota[member]) for member in ranked}
    keeper = {slot: member for member, kept in assigned.items() for slot in kept}
    for slot in range(slots):
        if slot in keeper:
            continue
        neighbours = (keeper.get(slot - 1), keeper.get(slot + 1))
        taker = next(
            (member for member in neighbours if member and len(assigned[member]) < quota[member]), None
        ) or min(ranked, key=lambda member: (len(assigned[member]) - quota[member], member))
        assigned[taker].add(slot)
        keeper[slot] = taker
    return assigned


def _longest_runs(owned: Collection[int], most: int) -> set[int]:
    kept: set[int] = set()
    for begin, end in sorted(runs_of(owned), key=lambda run: (run[0] - run[1], run[0])):
        kept.update(range(begin, min(end, begin + most - len(kept))))
    return kept
