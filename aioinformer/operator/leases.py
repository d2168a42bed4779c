"""The names of the Leases by which replicas of an operator elect a leader or share the objects."""

from __future__ import annotations

from hashlib import sha256

from ..client import Client
from ..sharding import Sharding
from ..sharding.sharding import LONGEST_NAME
from .run_options import RunOptions


def election_lease_of(name: str, options: RunOptions) -> str:
    """Return the name of the leader's Lease.

    Args:
        name: The operator's name, or ``module.function`` of a function that makes its manager.
        options: How the operator runs.
    """
    return options.lease_name or name.lower().replace("_", "-")


def sharding_name_of(name: str, options: RunOptions) -> str:
    """Return the name of the Sharding of an operator. A long one ends with a hash, so that it fits and is unique.

    Args: As for ``election_lease_of``.
    """
    lease = election_lease_of(name, options)
    label = lease.replace(".", "-")
    if len(label) <= LONGEST_NAME:
        return label
    digest = sha256(lease.encode()).hexdigest()[:8]
    return f"{label[: LONGEST_NAME - 1 - len(digest)].rstrip('-')}-{digest}"


def sharding_of(client: Client, name: str, options: RunOptions) -> Sharding | None:
    """Return the Sharding by which the replicas of an operator share the objects; None without ``options.shards``.

    Args:
        client: Of the server.
        name: As for ``election_lease_of``.
        options: How the operator runs.
    """
    if not options.shards:
        return None
    home = options.lease_namespace or client.namespace
    return Sharding(client, sharding_name_of(name, options), home, slots=options.shards)
