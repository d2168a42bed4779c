"""The operator's Lease, and whether its holder is alive."""

from __future__ import annotations

import math
from typing import Any

from ..client.credentials import timestamp
from ..errors import ApiError
from ..operator.leases import election_lease_of
from .examination import Examination
from .findings import Finding, Level
from .times import describe_seconds

LATE = 2.0
"""How many durations after its last renewal a holder counts as dead: its clock may differ from the server's."""


async def check_lease(examination: Examination) -> list[Finding]:
    """Check who holds the Lease, if the operator runs with one."""
    if examination.manager is not None and examination.manager.sharding is not None:
        return []  # all replicas reconcile
    options, client = examination.options, examination.client
    namespace = options.lease_namespace or client.namespace
    name = election_lease_of(examination.name, options)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    key = f"{namespace}/{name}"
    try:
        lease = await client.get_json(path)
    except ApiError as error:
        if error.status == 403:
            return [Finding("lease", Level.NOTE, f"not checked: this user may not read the Lease {key}")]
        if error.status == 404:
            return [judge_missing(key, is_elected=options.leader_elect)]
        raise
    return [judge_lease(key, lease.get("spec") or {}, examination.server_time)]


def judge_missing(key: str, *, is_elected: bool) -> Finding:
    """Return what it means that there is no Lease."""
    if is_elected:
        do = "Start the operator with --leader-elect; --lease-name and --lease-namespace name another Lease"
        return Finding("lease", Level.WARNING, f"there is no Lease {key}: no replica has led yet", do)
    return Finding("lease", Level.NOTE, f"there is no Lease {key}: the operator runs without --leader-elect")


def judge_lease(key: str, spec: dict[str, Any], now: float) -> Finding:
    """Return whether the holder of a Lease renews it.

    Args:
        key: The Lease's.
        spec: Its spec, of which any field may be missing.
        now: The current time.
    """
    holder, duration = spec.get("holderIdentity") or "", spec.get("leaseDurationSeconds") or 0
    if not holder:
        do = "Start the operator: its last leader has ended and released the Lease"
        return Finding("lease", Level.WARNING, f"the Lease {key} has no holder", do)
    age = now - timestamp(spec.get("renewTime") or "")
    if age < -LATE * duration:
        when = "has no time of renewal" if age == -math.inf else "was renewed in the future"
        do = "Compare the clocks of the operator's nodes; look at the operator's pods: the holder may be dead"
        return Finding("lease", Level.WARNING, f"{holder} holds the Lease {key}, which {when}", do)
    text = f"{holder} holds the Lease {key}, and renewed it {describe_seconds(max(age, 0.0))} ago"
    if age > LATE * duration:
        do = (
            f"The holder is dead or cut off, and no replica replaces it: look at the operator's pods. Another one may "
            f"take over after {duration} s"
        )
        return Finding("lease", Level.FAULT, text, do)
    return Finding("lease", Level.OK, text)
