"""The Lease that candidates compete for (client-go ``tools/leaderelection/resourcelock``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import NotFoundError
from ..objects.meta import micro_time
from ..resources import Resource

Spec = dict[str, Any]

MOST_TRANSITIONS = 2**31 - 1
"""What leaseTransitions can hold: a server refuses one more, and the Lease would be locked for good."""


class Record(NamedTuple):
    """What a Lease says.

    Attributes:
        holder: Who holds it; ``""`` for nobody.
        duration: Seconds for which others leave it alone after it has changed.
        acquired: When the holder got it, by its own wall clock.
        renewed: When it was last renewed, likewise.
        transitions: How often it has changed hands.
    """

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int

    def spec(self) -> Spec:
        """As ``coordination.k8s.io/v1`` has it."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }

    @classmethod
    def of(cls, spec: Spec) -> Record:
        """What a spec says, in which anything may be missing."""
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            spec.get("leaseTransitions") or 0,
        )


NOBODY = Record("", 0, "", "", 0)


class LeaseLock:
    """Reads and writes one Lease; a write goes wrong if somebody else has written since.

    Args:
        leases: The resource.
        namespace: The Lease's.
        name: The Lease's.
        labels: Put on it, beside those that it has.
        wall: The wall clock, for what the Lease says to people.
    """

    def __init__(
        self,
        leases: Resource[Spec],
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        wall: Callable[[], float],
    ) -> None:
        self._leases = leases
        self._metadata = {"name": name, "namespace": namespace}
        self._labels = dict(labels)
        self._wall = wall
        self._shown = self._stamp = 0
        self._lease: Spec | None = None
        self.key = f"{namespace}/{name}"

    def now(self) -> str:
        """The time as a Lease has it. While the clock stands still it goes on: others look for a change."""
        shown = int(self._wall() * 1_000_000)
        self._stamp = self._stamp + 1 if shown == self._shown else shown
        self._shown = shown
        return micro_time(self._stamp)

    async def read(self) -> Spec | None:
        """The spec as it is now; None if there is no such Lease."""
        try:
            self._lease = await self._leases.get(self.key)
        except NotFoundError:
            self._lease = None
            return None
        return dict(self._lease.get("spec") or {})

    async def create(self, record: Record) -> Spec:
        """Make the Lease; its spec."""
        metadata = {**self._metadata, **({"labels": self._labels} if self._labels else {})}
        return self._keep(await self._leases.create({"metadata": metadata, "spec": record.spec()}))

    async def update(self, record: Record) -> Spec:
        """Write what was read or written last; its spec as it is then."""
        assert self._lease is not None
        metadata = dict(self._lease["metadata"])
        if self._labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        spec = {**(self._lease.get("spec") or {}), **record.spec()}
        return self._keep(await self._leases.update({**self._lease, "metadata": metadata, "spec": spec}))

    def _keep(self, lease: Spec) -> Spec:
        self._lease = lease
        return dict(lease.get("spec") or {})
