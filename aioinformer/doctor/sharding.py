"""The replicas that share the objects: slots without an owner, dead replicas, and what the server selects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..client.credentials import timestamp
from ..errors import ApiError, ConfigError, DecodeError, message_of
from ..listwatch.list_watch import ResourceListWatch
from ..objects.meta import ListOptions
from ..resources import Resource
from ..sharding import Sharding
from ..sharding.leases import LABEL_NAME, replica_names_of, table_name_of
from ..sharding.reading import ShardedListWatch
from ..sharding.slots import show_slots
from ..sharding.table import Table
from .examination import Examination
from .findings import Finding, Level
from .lease import LATE
from .lists import describe_collection
from .times import describe_seconds

CHECK = "sharding"

LASTS = 60.0
"""Seconds without a change of the owners from which on an assignment counts as final: moves take a few."""

MOST_NAMED = 5
"""Replicas that a finding names."""

LONGEST_NAME = 80
"""Characters of a replica's name: in a forged table it may be as long as an annotation."""

LONGEST_SLOTS = 200
"""Characters of a list of slots."""

SAMPLE = 50
"""Objects that are read to see what a server selects."""

Object = Mapping[str, Any]


class Replica(NamedTuple):
    """A replica by its Lease.

    Attributes:
        name: Its identity, which is the name of its Lease.
        renewed: Seconds since it renewed its Lease, by the server's clock; infinite if it has given it back. Negative
            if clocks differ.
        duration: Seconds for which the Lease is valid.
        since: Seconds since it took the Lease.
    """

    name: str
    renewed: float
    duration: float
    since: float

    @property
    def is_alive(self) -> bool:
        """Whether it renews its Lease, as far as clocks show."""
        return abs(self.renewed) <= LATE * self.duration

    @classmethod
    def of(cls, lease: Object, now: float) -> Replica:
        """Read a Lease, of which any field may be missing."""
        spec = lease.get("spec") or {}
        renewed = now - timestamp(spec.get("renewTime") or "") if spec.get("holderIdentity") else math.inf
        since = now - timestamp(spec.get("acquireTime") or "")
        return cls(lease["metadata"]["name"], renewed, float(spec.get("leaseDurationSeconds") or 0), since)


async def check_sharding(examination: Examination) -> list[Finding]:
    """Check who owns the slots, if the replicas share the objects."""
    sharding = None if examination.manager is None else examination.manager.sharding
    if sharding is None:
        return []
    return [*await _check_owners(examination, sharding), *await _check_selection(examination, sharding)]


# -- owners --------------------------------------------------------------------------------------------------


async def _check_owners(examination: Examination, sharding: Sharding) -> list[Finding]:
    resource = Resource(examination.client, "coordination.k8s.io/v1", "leases", dict, kind="Lease")
    try:
        listed = await resource.list(sharding.namespace, label_selector=f"{LABEL_NAME}={sharding.name}")
    except ApiError as error:
        if error.status == 403:
            text = f"not checked: this user may not list the Leases in {sharding.namespace}"
            return [Finding(CHECK, Level.NOTE, text)]
        raise
    leases = {lease["metadata"]["name"]: lease for lease in listed}
    name = table_name_of(sharding.name)
    lease = leases.pop(name, None)
    if lease is None:
        do = f"Start the operator with --shards {sharding.slots}; --lease-namespace names another namespace"
        text = f"there is no Lease {sharding.namespace}/{name}: no replica has worked yet"
        return [Finding(CHECK, Level.WARNING, text, do)]
    try:
        table = Table.of(lease, sharding.slots, sharding.key)
    except ConfigError as error:
        do = "Give doctor and all replicas the same --shards and key: replicas with others do not start"
        return [Finding(CHECK, Level.FAULT, message_of(error), do)]
    except DecodeError as error:
        do = "No replica works meanwhile: stop all, delete this Lease, and look at who may write Leases there"
        return [Finding(CHECK, Level.FAULT, message_of(error), do)]
    now = examination.server_time
    is_replica = replica_names_of(sharding.name).fullmatch
    replicas = [Replica.of(lease, now) for name, lease in leases.items() if is_replica(name)]
    return [*judge_owners(table, replicas, unchanged=_unchanged_seconds(lease, now))]


def _unchanged_seconds(lease: Object, now: float) -> float | None:
    """Return the seconds since a Lease was last written; None if the server does not say."""
    fields = lease["metadata"].get("managedFields") or ()
    times = [timestamp(field["time"]) for field in fields if field.get("time")]
    return max(0.0, now - max(times)) if times else None


def judge_owners(
    table: Table, replicas: Collection[Replica], *, unchanged: float | None
) -> Iterator[Finding]:
    """Yield what is wrong with the owners of the slots; that all is well, if nothing is.

    Args:
        table: The owners.
        replicas: The replicas that have a Lease.
        unchanged: Seconds since the table changed; None if that is not known.
    """
    alive = [replica for replica in replicas if replica.is_alive]
    if not alive:
        yield _judge_none_alive(table, replicas)
        return
    lasts = unchanged is not None and unchanged >= LASTS
    findings = [
        *_judge_dead(table, replicas),
        *_judge_free(table, unchanged),
        *_judge_absent(table, alive),
        *(_judge_shares(table, alive) if lasts else ()),
    ]
    yield from findings
    if not any(finding.level is not Level.NOTE for finding in findings):
        least, most = _range(len(table.of_owner(replica.name)) for replica in alive)
        moved = "" if unchanged is None else f"; the last move was {describe_seconds(unchanged)} ago"
        share = str(least) if least == most else f"{least} to {most}"
        owners = "1 replica owns" if len(alive) == 1 else f"{len(alive)} replicas each own"
        text = f"{owners} {share} of {table.slots} slots{moved}"
        yield Finding(CHECK, Level.OK, text)


def _judge_none_alive(table: Table, replicas: Collection[Replica]) -> Finding:
    if not table.members:
        do = "Start the operator: its last replica has stopped and given back its slots"
        return Finding(CHECK, Level.WARNING, "no replica runs, and all slots are free", do)
    last = min((abs(replica.renewed) for replica in replicas), default=math.inf)
    ago = "" if math.isinf(last) else f"; the last one renewed its Lease {describe_seconds(last)} ago"
    do = "The replicas are dead or cut off: look at the operator's pods and their logs"
    return Finding(CHECK, Level.FAULT, f"no replica is alive, so nothing is reconciled{ago}", do)


def _judge_dead(table: Table, replicas: Collection[Replica]) -> Iterator[Finding]:
    """Yield the owners that do not renew their Leases, or have none."""
    known = {replica.name: replica for replica in replicas}
    dead = []
    for name in sorted(set(table.owners.values())):
        replica = known.get(name)
        if replica is not None and replica.is_alive:
            continue
        dead.append(f"{_shorten(name)}, which owns {_show(table.of_owner(name))}, {_describe_dead(replica)}")
    if dead:
        more = f"; and {len(dead) - MOST_NAMED} more" if len(dead) > MOST_NAMED else ""
        text = f"owners of slots are dead: {'; '.join(dead[:MOST_NAMED])}{more}. Their objects are not reconciled"
        do = (
            "Other replicas take these slots when the Lease's duration has passed. If they do not, look at their logs: "
            "they may not write the Lease of the slots, or do not run"
        )
        yield Finding(CHECK, Level.FAULT, text, do)


def _describe_dead(replica: Replica | None) -> str:
    if replica is None:
        return "has no Lease"
    if math.isinf(replica.renewed):
        return "has given back its Lease, or never renewed it"
    when = describe_seconds(replica.renewed)
    if replica.renewed < 0:
        return f"renewed its Lease {when} in the future, by another clock than the server's"
    return f"renewed its Lease {when} ago"


def _judge_free(table: Table, unchanged: float | None) -> Iterator[Finding]:
    free = sorted(set(range(table.slots)) - table.owners.keys())
    if not free:
        return
    since = "" if unchanged is None else f" for at least {describe_seconds(unchanged)}"
    text = f"no replica owns {_show(free)}{since}: their objects are not reconciled"
    if unchanged is not None and unchanged < LASTS:
        yield Finding(CHECK, Level.NOTE, text, "Nothing yet: slots are moving. Run doctor again in a minute")
        return
    do = "Look at the logs of the replicas: they should take free slots within seconds"
    yield Finding(CHECK, Level.FAULT, text, do)


def _judge_absent(table: Table, alive: Iterable[Replica]) -> Iterator[Finding]:
    """Yield the replicas that renew their Leases and take no part."""
    absent = [replica for replica in alive if replica.name not in table.members and replica.since >= LASTS]
    if absent:
        names = _name_some(replica.name for replica in absent)
        do = (
            "Look at its log: it cannot write the Lease of the slots, or its event loop is blocked. If it is another "
            "operator of the same name, give it another one"
        )
        text = f"replicas renew their Leases and own nothing: {names}"
        yield Finding(CHECK, Level.WARNING, text, do)


def _judge_shares(table: Table, alive: Iterable[Replica]) -> Iterator[Finding]:
    """Yield that an assignment that lasts is uneven."""
    shares = {
        replica.name: len(table.of_owner(replica.name)) for replica in alive if replica.name in table.members
    }
    if not shares:
        return
    least, most = _range(shares.values())
    if most - least > 1:
        largest = _name_some(name for name, share in shares.items() if share == most)
        do = (
            "A replica gives a slot back once its reconciles there have ended: one that ignores its cancellation, or a "
            "claim that is not ended, keeps it. /debug shows the slots that wait"
        )
        text = (
            f"replicas own from {least} to {most} slots, and nothing moves: {largest} should give some back"
        )
        yield Finding(CHECK, Level.WARNING, text, do)
    elif least == 0:
        do = "Run fewer replicas, or give all of them more --shards together with a new name"
        text = f"there are {len(shares)} replicas and only {table.slots} slots: some replicas own nothing"
        yield Finding(CHECK, Level.WARNING, text, do)


def _range(numbers: Iterable[int]) -> tuple[int, int]:
    ordered = sorted(numbers)
    return ordered[0], ordered[-1]


def _name_some(names: Iterable[str]) -> str:
    ordered = sorted(map(_shorten, names))
    more = f" and {len(ordered) - MOST_NAMED} more" if len(ordered) > MOST_NAMED else ""
    return ", ".join(ordered[:MOST_NAMED]) + more


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _show(slots: Collection[int]) -> str:
    text = f"the slots {show_slots(slots)}"
    return text if len(text) <= LONGEST_SLOTS else f"{len(slots)} slots"


# -- selection -----------------------------------------------------------------------------------------------


async def _check_selection(examination: Examination, sharding: Sharding) -> list[Finding]:
    """List some objects of half of the slots of each collection, and look at what the server has selected."""
    assert examination.manager is not None
    shared: list[str] = []
    by_client: list[str] = []
    selected: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    sharding.share.change(range(sharding.slots // 2))  # of this process, which takes no part
    for informer in examination.manager.informers:
        for reader in informer.list_watches.values():
            if not isinstance(reader, ResourceListWatch):
                continue
            name = describe_collection(reader.resource)
            if not isinstance(reader, ShardedListWatch):
                shared.append(name)
                continue
            if not reader.can_be_selected:
                if sharding.slots > 1:
                    by_client.append(name)
                continue
            try:
                await reader.list(ListOptions(limit=SAMPLE))
            except ApiError as error:
                if error.status in (403, 404):
                    continue  # said by other checks
                raise
            selected[reader.is_filtered_by_server].append(name)
    return [*judge_selection(selected[True], selected[False], by_client, shared)]


def judge_selection(
    by_server: Collection[str],
    unselected: Collection[str],
    by_client: Collection[str],
    shared: Collection[str],
) -> Iterator[Finding]:
    """Yield what each replica reads from the server.

    Args:
        by_server: Collections of which the server sends the slots that are asked for.
        unselected: Those of which it could, and does not.
        by_client: Those of which no server could: the client drops the objects of other slots.
        shared: Those that each replica keeps as a whole.
    """
    if by_server:
        text = f"the server selects slots: each replica reads its part of {_name_some(by_server)}"
        yield Finding(CHECK, Level.OK, text)
    if unselected:
        text = (
            f"the server does not select slots: each replica reads all of {_name_some(unselected)}, and drops what "
            "others own. Memory falls with the number of replicas, and the traffic of the server grows with it"
        )
        do = "Turn on the API server's feature gate ShardedListAndWatch (Kubernetes 1.36), or plan for this traffic"
        yield Finding(CHECK, Level.NOTE, text, do)
    if by_client:
        text = (
            f"each replica reads all of {_name_some(by_client)}, and drops what others own: servers select by uid "
            "only"
        )
        yield Finding(CHECK, Level.NOTE, text)
    if shared:
        yield Finding(CHECK, Level.NOTE, f"each replica reads and keeps all of {_name_some(shared)}")
