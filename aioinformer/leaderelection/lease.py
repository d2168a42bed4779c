"""The Lease that candidates compete for (client-go ``tools/leaderelection/resourcelock``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import NotFoundError
from ..objects.meta import micro_time
from ..resources import Resource

Spec = dict[str, Any]

MOST_TRANSITIONS = 2**31 - 1
"""Largest leaseTransitions: a server refuses more, which would lock the Lease for good."""


class Record(NamedTuple):
    """The contents of a Lease.

    Attributes:
        holder: Its holder's identity; ``""`` if it has none.
        duration: Seconds that other candidates wait after they have seen it change.
        acquired: When the holder acquired it, by the holder's wall clock.
        renewed: When the holder last renewed it, by the same clock.
        transitions: How often its holder changed.
    """

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int

    def spec(self) -> Spec:
        """Return the record as a ``coordination.k8s.io/v1`` spec."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }

    @classmethod
    def of(cls, spec: Spec) -> Record:
        """Read a spec, of which any field may be missing."""
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            spec.get("leaseTransitions") or 0,
        )


NO_HOLDER = Record("", 0, "", "", 0)


class LeaseLock:
    """Reads and writes one Lease. A write fails if another client has written since the last read or write.

    Args:
        leases: The resource.
        namespace: The Lease's namespace.
        name: The Lease's name.
        labels: Labels to add to the Lease.
        wall: The wall clock, for the timestamps in the Lease.
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
        self._last_reading = self._last_stamp = 0
        self._lease: Spec | None = None
        self.key = f"{namespace}/{name}"

    @property
    def exists(self) -> bool:
        """Whether the Lease existed when it was read or written last. Only then it can be updated."""
        return self._lease is not None

    def now(self) -> str:
        """Return a timestamp for the Lease. It always increases, since other candidates watch for changes."""
        reading = int(self._wall() * 1_000_000)
        self._last_stamp = self._last_stamp + 1 if reading == self._last_reading else reading
        self._last_reading = reading
        return micro_time(self._last_stamp)

    async def read(self) -> Spec | None:
        """Read the Lease and return its spec; None if it does not exist."""
        try:
            self._lease = await self._leases.get(self.key)
        except NotFoundError:
            self._lease = None
            return None
        return dict(self._lease.get("spec") or {})

    async def create(self, record: Record) -> Spec:
        """Create the Lease and return its spec."""
        metadata = {**self._metadata, **({"labels": self._labels} if self._labels else {})}
        return self._keep(await self._leases.create({"metadata": metadata, "spec": record.spec()}))

    async def update(self, record: Record) -> Spec:
        """Update the Lease that was read or written last, and return its spec."""
        assert self._lease is not None
        metadata = dict(self._lease["metadata"])
        if self._labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        spec = {**(self._lease.get("spec") or {}), **record.spec()}
        return self._keep(await self._leases.update({**self._lease, "metadata": metadata, "spec": spec}))

    def _keep(self, lease: Spec) -> Spec:
        self._lease = lease
        return dict(lease.get("spec") or {})
