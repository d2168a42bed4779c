"""Members: the replicas that announce themselves by a Lease each, and when one counts as gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

Spec = Mapping[str, Any]

LONGEST_LEASE = 3600.0
"""Seconds after which a replica counts as gone, whatever duration its Lease claims."""


class _Seen(NamedTuple):
    """The state of a Lease, and when it was first read.

    Attributes:
        spec: The Lease's spec; None if there is no such Lease.
        at: Loop time before the read that first had it.
        duration: Seconds that it is valid from then on.
    """

    spec: Spec | None
    at: float
    duration: float


class Members:
    """What this replica knows of the others, by the rules of a LeaderElector.

    A replica is gone when its Lease has not changed for its duration, by this process's own clock, or when its holder
    has given the Lease back. Times in the Lease do not count. A replica whose Lease does not exist had one, which may
    have been deleted: it is gone after a whole duration, too.

    Args:
        lease_duration: Seconds for replicas without a Lease.
    """

    def __init__(self, lease_duration: float) -> None:
        self._lease_duration = lease_duration
        self._seen: dict[str, _Seen] = {}
        self._ended: set[str] = set()

    def observe(self, leases: Mapping[str, Spec], members: Iterable[str], asked_at: float) -> None:
        """Take the Leases that the server had after ``asked_at``.

        Args:
            leases: The specs of the Leases, by the identity that each is for.
            members: The identities that the table names.
            asked_at: Loop time before the request.
        """
        known = set(leases) | set(members)
        for identity in known:
            spec = leases.get(identity)
            seen = self._seen.get(identity)
            if seen is None or (seen.spec != spec and spec is not None):
                self._seen[identity] = _Seen(spec, asked_at, self._duration_of(spec or {}))
        for identity in self._seen.keys() - known:
            del self._seen[identity]
        self._ended &= known

    def _duration_of(self, spec: Spec) -> float:
        duration = spec.get("leaseDurationSeconds")
        if not isinstance(duration, int) or duration <= 0:
            return self._lease_duration
        return min(float(duration), LONGEST_LEASE)

    def record_end(self, identity: str) -> None:
        """Record that an identity of this process has ended: all its work has."""
        self._ended.add(identity)

    def expires_at(self, identity: str) -> float:
        """Return the loop time from which on a replica counts as gone, unless its Lease changes before."""
        seen = self._seen.get(identity)
        if seen is None or identity in self._ended:
            return -inf
        if seen.spec is not None and not seen.spec.get("holderIdentity"):
            return -inf  # given back
        return seen.at + seen.duration

    def is_alive(self, identity: str, asked_at: float) -> bool:
        """Return whether a replica may still work, as of a read that was requested at a loop time."""
        return asked_at < self.expires_at(identity)

    def is_gone_for(self, identity: str, asked_at: float, seconds: float) -> bool:
        """Return whether a replica is gone, and its Lease has not changed for so many seconds."""
        seen = self._seen.get(identity)
        return seen is not None and not self.is_alive(identity, asked_at) and asked_at > seen.at + seconds

    def alive(self, asked_at: float) -> Iterator[str]:
        """Yield the replicas that may still work."""
        return (identity for identity in self._seen if self.is_alive(identity, asked_at))
