"""Share: the slots of this replica, and the work on their objects that has not ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import anyio

from .._core.cancellation import CALL_ERRORS

logger = logging.getLogger(__name__)


class Claim:
    """Work on an object of a slot. The slot is not given back before ``end`` is called."""

    __slots__ = ("_cancel", "_share", "slot")

    def __init__(self, share: Share, slot: int, cancel: Callable[[], object]) -> None:
        self._share = share
        self.slot = slot
        self._cancel: Callable[[], object] | None = cancel

    def cancel(self) -> None:
        """Cancel the work, once."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            try:
                cancel()
            except CALL_ERRORS:
                logger.exception("the function that cancels work in slot %d failed", self.slot)

    def end(self) -> None:
        """Record that the work has ended."""
        self._share.end_claim(self)


class Share:
    """The slots of this replica. Plain rules: a Sharding changes them, informers read them, workers claim them.

    Args:
        count: The number of slots of the whole key space.

    Attributes:
        slots: The slots that this replica owns: informers read their objects.
        leaving: Those among them that another replica shall own: no work begins in them.
        on_gain: Called with slots that this replica has got.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.slots: frozenset[int] = frozenset()
        self.leaving: set[int] = set()
        self.on_gain: list[Callable[[Collection[int]], object]] = []
        self.may_work: Callable[[], bool] = lambda: False
        self._claims: dict[int, set[Claim]] = {}
        self._ended: dict[int, asyncio.Event] = {}
        self._readers: set[anyio.CancelScope] = set()

    def owns(self, slot: int) -> bool:
        """Return whether work in a slot may begin now."""
        return slot in self.slots and slot not in self.leaving and self.may_work()

    def change(self, slots: Collection[int]) -> None:
        """Set the slots that this replica owns."""
        before, self.slots = self.slots, frozenset(slots)
        self.leaving &= self.slots
        if self.slots == before:
            return
        for scope in self._readers:
            scope.cancel()
        if gained := self.slots - before:
            for call in self.on_gain:
                call(gained)

    # -- work ----------------------------------------------------------------------------------------------

    def claim(self, slot: int | None, cancel: Callable[[], object]) -> Claim | None:
        """Begin work in a slot; return None if it must not begin.

        Args:
            slot: The slot; None for an object that is in no slot of this replica.
            cancel: Called once if the slot has to be given back: cancels the work, which must then end.
        """
        if slot is None or not self.owns(slot):
            return None
        claim = Claim(self, slot, cancel)
        self._claims.setdefault(slot, set()).add(claim)
        return claim

    def end_claim(self, claim: Claim) -> None:
        """Record that work has ended."""
        claims = self._claims.get(claim.slot, set())
        claims.discard(claim)
        if not claims:
            self._claims.pop(claim.slot, None)
            if (ended := self._ended.pop(claim.slot, None)) is not None:
                ended.set()

    def is_busy(self, slot: int) -> bool:
        """Return whether work in a slot has not ended."""
        return slot in self._claims

    @property
    def busy_slots(self) -> list[int]:
        """The slots with work that has not ended."""
        return sorted(self._claims)

    async def wait_idle(self, slot: int) -> None:
        """Wait until no work in a slot runs."""
        while slot in self._claims:
            await self._ended.setdefault(slot, asyncio.Event()).wait()

    def cancel_work(self, slot: int) -> None:
        """Cancel the work in a slot."""
        for claim in list(self._claims.get(slot, ())):
            claim.cancel()

    # -- reading -------------------------------------------------------------------------------------------

    @contextmanager
    def until_changed(self) -> Iterator[None]:
        """Run the block until it ends or the slots change. Its waits are cancelled then, and it is left silently."""
        with anyio.CancelScope() as scope:
            self._readers.add(scope)
            try:
                yield
            finally:
                self._readers.discard(scope)
