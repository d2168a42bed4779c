"""Sharding: replicas share the objects of collections. The rules are in the other files of this folder."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random, SystemRandom
from typing import Any, Literal

import anyio.lowlevel

from .._core.callables import require_plain
from .._core.cancellation import maybe_await
from .._core.checks import LABEL, require_count, require_namespace, require_seconds
from .._core.tasks import Running, finish, run_until_first, shield
from ..client import Client
from ..errors import (
    AioInformerError,
    ConfigError,
    LeadershipLostError,
    NotFoundError,
    WrongEventLoopError,
    message_of,
)
from ..leaderelection import LeaderElector
from ..listwatch.list_watch import ListWatch, ResourceListWatch
from ..objects.kube_object import KubeObject
from .assignment import assign
from .leases import LABEL_NAME, Leases
from .members import LONGEST_LEASE, Members
from .placement import BY_NAMESPACE, BY_OWNER, BY_UID, Grouping, by_function
from .reading import ShardedListWatch
from .share import Claim, Share
from .slots import MOST_SLOTS, show_slots
from .state import ShardingState
from .table import Table

logger = logging.getLogger(__name__)

LONGEST_NAME = 40

CANCEL_GRACE = 10.0
"""Seconds that cancelled work may take to end before its slots are left to expire."""

ShardBy = Literal["uid", "owner", ""]
"""What decides about the share of a collection: the object's uid, its owner's uid, or ``""``: it is read whole."""

Work = Callable[[], Awaitable[Any]]


class Sharding(Running):
    """Gives this replica a share of the objects: some of a fixed number of slots.

    The slot of an object is a hash of its uid, so it never changes. Each replica announces itself by a Lease that it
    renews, as a LeaderElector does. One more Lease is the table of owners. A replica takes a slot that is free or whose
    owner's Lease has expired, and gives slots back when another replica has fewer. Pass it to a Manager, to an
    Operator's ``manager``, to a SharedInformerFactory, or wrap a ListWatch for a single informer by ``read``.

    A Manager runs it. Without a Manager, run it yourself: ``async with sharding:``.

    Guarantees:
        As long as clocks run at about the same speed (their times do not matter), no two replicas own a slot at once,
        and work that was claimed in a slot has ended before another replica gets it. See docs/replicas.md for the
        limits: a replica that is frozen in the middle of a step finishes that step late.

    Requests: each replica renews its Lease and lists the Leases once per ``retry_period``, so by default one request a
    second, and one more for each change of owners.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        name: The name of all Leases, the same for all replicas; at most 40 characters.
        namespace: The Leases' namespace.
        slots: The number of slots: the same for all replicas, and it must not change while one runs. Several times the
            number of replicas, so that they get about the same load.
        key: What decides about the slot of an object: its ``"uid"``, its ``"namespace"``, or a plain function of a
            KubeObject that returns a text. Objects of one text stay together. Servers select by uid only. The text of
            an object must stay the same. An object for which the function fails is grouped by its uid.
        move_grace: Seconds that running work may take to end when its slot moves; then it is cancelled.
        lease_duration: As for LeaderElector.
        renew_deadline: As for LeaderElector.
        retry_period: As for LeaderElector; also the seconds between two looks at the table of owners.
        wall: As for LeaderElector: it decides nothing.
        random: The source of identities and jitter.
        asleep: As for LeaderElector.

    Raises:
        ConfigError: An argument is invalid.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        namespace: str,
        *,
        slots: int = 64,
        key: Literal["uid", "namespace"] | Callable[[KubeObject], str] = "uid",
        move_grace: float = 5.0,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        wall: Callable[[], float] | None = None,
        random: Random | None = None,
        asleep: Callable[[], float] | None = None,
    ) -> None:
        if not isinstance(name, str) or not LABEL.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ConfigError(
                f"name must be a DNS label of at most {LONGEST_NAME} characters, as in 'websites', not {name!r}"
            )
        require_namespace("namespace", namespace)
        require_count("slots", slots)
        if not 1 <= slots <= MOST_SLOTS:
            raise ConfigError(f"slots must be from 1 to {MOST_SLOTS}, not {slots}")
        require_seconds("move_grace", move_grace)
        if lease_duration > LONGEST_LEASE:
            raise ConfigError(
                f"lease_duration must be at most {LONGEST_LEASE:g} seconds, not {lease_duration:g}"
            )
        self._groupings: dict[str, Grouping] = {"uid": BY_UID, "owner": BY_OWNER}
        if key == "namespace":
            self._groupings = {"uid": BY_NAMESPACE, "owner": BY_NAMESPACE}
        elif key != "uid":
            if not callable(key):
                raise ConfigError(f"key must be 'uid', 'namespace' or a function, not {key!r}")
            require_plain("key", key)
            self._groupings = {"uid": by_function(key)}  # the text of an owner is not known
        self.key = key if isinstance(key, str) else "function"
        self._client = Client.of(client)
        self.name = name
        self.namespace = namespace
        self.slots = slots
        self.share = Share(slots)
        self._move_grace = move_grace
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._random = random or SystemRandom()
        self._wall = wall
        self._asleep = asleep
        self._elector = self._new_elector()  # checks the durations
        self._leases = Leases(
            self._client,
            name,
            namespace,
            table=Table(slots, key=self.key),
            members=Members(lease_duration),
            timeout=renew_deadline / 2,
            reads=self._describe_reads,
        )
        self._drains: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._readers: list[ShardedListWatch] = []
        self._left_behind = ""
        self._moves = 0
        self._moved_at: float | None = None
        self._last_error: Exception | None = None
        self.share.may_work = lambda: self._elector.is_leader

    def __repr__(self) -> str:
        return f"<Sharding {self.namespace}/{self.name}>"

    # -- reading and working -------------------------------------------------------------------------------

    def read(self, list_watch: ListWatch, shard_by: ShardBy = "uid", *, namespaced: bool = True) -> ListWatch:
        """Return a ListWatch that reads this replica's share of a collection.

        Args:
            list_watch: What ``ListWatch.for_resource`` returned.
            shard_by: ``"uid"`` for objects of their own, ``"owner"`` for objects that follow the one that owns them,
                ``""`` for all objects. With a function as ``key``, ``"owner"`` reads all objects, too.
            namespaced: Pass False for cluster-scoped objects.

        Raises:
            ConfigError: The ListWatch does not read an API server, or ``shard_by`` is unknown; or the ``key`` is the
                namespace, and the objects are in none.
        """
        if shard_by not in ("uid", "owner", ""):
            raise ConfigError(f"shard_by must be 'uid', 'owner' or '', not {shard_by!r}")
        if shard_by not in self._groupings:
            return list_watch
        if not isinstance(list_watch, ResourceListWatch):
            raise ConfigError(f"only a collection of an API server can be shared, not {list_watch!r}")
        if self.key == "namespace" and not namespaced:
            raise ConfigError(
                f"key='namespace' shares objects in namespaces; {list_watch.description} are in none: use key='uid'"
            )
        reader = ShardedListWatch(list_watch, self.share, self._groupings[shard_by], shard_by)
        self._readers.append(reader)
        return reader

    def owns(self, obj: KubeObject) -> bool:
        """Return whether this replica may work on an object now; call it right before a write."""
        return self.share.owns(self.slot_of(obj))

    def slot_of(self, obj: KubeObject) -> int:
        """Return the slot of an object."""
        grouping = self._groupings["uid"]
        return grouping.slot_of(grouping.text_of(obj), self.slots)

    def claim(self, obj: KubeObject, cancel: Callable[[], object] = lambda: None) -> Claim | None:
        """Begin work on an object; None if it is not this replica's. Its slot stays until you call ``Claim.end``.

        Args:
            obj: The object.
            cancel: Called once if the slot moves and the work takes longer than ``move_grace``: cancel the work.
        """
        return self.share.claim(self.slot_of(obj), cancel)

    @property
    def last_error(self) -> Exception | None:
        """Why the last try to renew the Lease, or to read or write the owners, failed; None if it succeeded."""
        return self._last_error or self._elector.state.last_error

    @property
    def is_leader(self) -> bool:
        """Whether this replica takes part for certain: its Lease was renewed in time."""
        return self._elector.is_leader

    @property
    def state(self) -> ShardingState:
        """A snapshot."""
        loop_time = self._own_loop_time()
        owners: dict[str, list[int]] = {}
        for slot, owner in sorted(self._leases.table.owners.items()):
            owners.setdefault(owner, []).append(slot)
        objects: Counter[int] = Counter()
        for reader in self._readers:
            objects.update(reader.placement.counts())
        return ShardingState(
            name=self.name,
            identity=self._identity if self.is_leader else "",
            slots=self.slots,
            owned=tuple(sorted(self.share.slots)),
            leaving=tuple(sorted(self.share.leaving)),
            owners={owner: tuple(owned) for owner, owned in owners.items()},
            members=tuple(sorted(self._leases.members.alive(self._leases.asked_at))),
            moves=self._moves,
            moved_seconds=None if self._moved_at is None else loop_time - self._moved_at,
            objects=dict(sorted(objects.items())),
            is_filtered_by_server={
                reader.description: reader.is_filtered_by_server
                for reader in self._readers
                if reader.is_filtered_by_server is not None
            },
            last_error=self.last_error,
        )

    def let_expire(self, left_behind: str) -> None:
        """Let this replica's slots expire instead of giving them back, since work in them still runs."""
        self._left_behind = left_behind
        self._elector.let_expire(left_behind)

    # -- terms ---------------------------------------------------------------------------------------------

    async def run(self, work: Work | None = None) -> None:
        """Take part, and run the work meanwhile.

        Args:
            work: A coroutine function, for one term. None takes part until cancelled, also again after a lost term.

        Raises:
            LeadershipLostError: With ``work``: this replica's Lease could not be renewed. The work has ended, and the
                slots are gone.
            ConfigError: Other replicas have another number of slots, or the client's configuration is invalid.

        Cancellation: a cancellation that arrives while the slots are lost is raised, not the loss.
        """
        task = asyncio.current_task()
        assert task is not None
        requests = task.cancelling()
        with self.in_one_run():
            while True:
                try:
                    await self._take_part(anyio.sleep_forever if work is None else work)
                    return
                except LeadershipLostError as error:
                    if task.cancelling() > requests:  # else a caller that tries again would never end
                        await anyio.lowlevel.checkpoint_if_cancelled()
                        raise asyncio.CancelledError from error
                    if work is not None:
                        raise
                    logger.warning("%r lost its slots and takes part again: %s", self, error)

    async def _take_part(self, work: Work) -> None:
        """One term: announce this replica, own slots while ``work`` runs, give them back."""
        elector = self._elector = self._new_elector()
        self._left_behind = ""
        try:
            async with elector:
                try:
                    await run_until_first(partial(_await, work), self._keep_slots)
                finally:
                    await shield(self._end_claims(), grace=self._move_grace + CANCEL_GRACE)
                    self.share.change(())
                    if not self._left_behind:
                        self._leases.members.record_end(self._identity)
                        if elector.is_leader:
                            await shield(self._give_back(), grace=self._renew_deadline)
        finally:
            self.share.change(())
            if not self._left_behind:
                await shield(self._withdraw(), grace=self._renew_deadline)

    async def _end_claims(self) -> None:
        """End all work that was claimed; that of a manager has ended before."""
        drains = list(self._drains.values())
        await finish(*drains)
        self.share.leaving |= self.share.slots
        busy = self.share.busy_slots
        if not busy:
            return
        with anyio.move_on_after(self._move_grace if self._elector.is_leader else 0.0):
            for slot in busy:
                await self.share.wait_idle(slot)
        for slot in busy:
            self.share.cancel_work(slot)
        with anyio.move_on_after(CANCEL_GRACE):
            for slot in busy:
                await self.share.wait_idle(slot)
        if still_busy := self.share.busy_slots:
            self.let_expire(f"claims in the slots {show_slots(still_busy)}")

    def _new_elector(self) -> LeaderElector:
        """Return an elector of a Lease that only this term of this replica ever holds."""
        self._identity = f"{self.name}-{self._random.getrandbits(48):012x}"
        return LeaderElector(
            self._client,
            self._identity,
            self.namespace,
            labels={LABEL_NAME: self.name},
            wall=self._wall,
            random=Random(self._random.getrandbits(32)),
            asleep=self._asleep,
            lease_duration=self._lease_duration,
            renew_deadline=self._renew_deadline,
            retry_period=self._retry_period,
        )

    async def _keep_slots(self) -> None:
        now = asyncio.get_running_loop().time
        looked_at = now()
        while True:
            self._wake.clear()
            try:
                delay = await self._look()
                self._last_error, looked_at = None, now()
            except (ConfigError, WrongEventLoopError):
                raise
            except AioInformerError as error:
                self._record_failure(error)
                if now() > looked_at + self._renew_deadline:  # free slots may wait for this replica
                    why = f"the owners of the slots could not be read for {self._renew_deadline:g} s"
                    raise LeadershipLostError(self._leases.table_key, self._identity, why) from error
                delay = self._retry_period
            if delay > 0:
                with anyio.move_on_after(delay):
                    await self._wake.wait()
            else:
                await asyncio.sleep(self._random.random() * 0.05)  # after a conflict: others write, too

    def _record_failure(self, error: AioInformerError) -> None:
        if self._last_error is None or type(error) is not type(self._last_error):
            logger.warning("%r: the owners of the slots are not known for now: %s", self, message_of(error))
        self._last_error = error

    async def _look(self) -> float:
        """Read all Leases, then give back and take slots. Returns the seconds until the next look."""
        asked_at = asyncio.get_running_loop().time()
        leases = self._leases
        await leases.read(asked_at)
        me, table, members = self._identity, leases.table, leases.members
        self._adopt(table.of_owner(me))
        alive = {*members.alive(asked_at), me}
        wanted = assign(self.slots, table.owners, (table.members & alive) | {me})[me]
        for slot in self.share.slots - wanted - self.share.leaving:
            self._begin_drain(slot)
        give = {slot for slot in self.share.leaving if not self.share.is_busy(slot)}
        take = {slot for slot in wanted if table.owners.get(slot) not in alive}
        if me not in table.members and alive.isdisjoint(table.owners.values()):
            take.clear()  # until others that start at the same time have announced themselves, too
        gone = table.members - alive  # a replica that has just joined cannot know that yet
        is_due = give or take or gone or me not in table.members or not leases.has_table
        if is_due and self._elector.is_leader:
            changed = table.change(me, give=give, take=take, gone=gone)
            if not await leases.write(changed):
                return 0.0
            self._adopt(changed.of_owner(me))
        await leases.remove_dead(alive, 2 * self._lease_duration)
        others = (members.expires_at(owner) for owner in table.members - {me})
        until_expiry = min((at - asked_at for at in others if at > asked_at), default=float("inf"))
        return min(self._retry_period, until_expiry + 0.001)

    def _describe_reads(self) -> tuple[str, ...]:
        """Return the collections whose objects are shared by themselves."""
        return tuple(sorted({reader.description for reader in self._readers if reader.shard_by == "uid"}))

    def _adopt(self, owned: set[int]) -> None:
        """Take what the table says about this replica. A slot that it has begun to give back stays so."""
        before = self.share.slots
        if owned == before:
            return
        self._moves += len(owned ^ before)
        self._moved_at = asyncio.get_running_loop().time()
        logger.info("%r: this replica owns the slots %s", self, show_slots(owned))
        self.share.change(owned)
        for slot in before - owned:  # what this replica gave back has no work; others were taken from it
            self.share.cancel_work(slot)

    def _begin_drain(self, slot: int) -> None:
        """Let no more work begin in a slot, and give it back once the running work has ended."""
        self.share.leaving.add(slot)
        if self.share.is_busy(slot):
            task = asyncio.create_task(self._drain(slot), name=f"{self!r} gives back {slot}")
            self._drains[slot] = task
            task.add_done_callback(partial(self._record_drained, slot))

    def _record_drained(self, slot: int, task: asyncio.Task[None]) -> None:
        if self._drains.get(slot) is task:
            del self._drains[slot]

    async def _drain(self, slot: int) -> None:
        with anyio.move_on_after(self._move_grace):
            await self.share.wait_idle(slot)
        self.share.cancel_work(slot)
        await self.share.wait_idle(slot)
        self._wake.set()

    # -- leaving -------------------------------------------------------------------------------------------

    async def _give_back(self) -> None:
        """Give back all slots. On a failure the others only wait longer."""
        try:
            while True:
                await self._leases.read(asyncio.get_running_loop().time())
                table = self._leases.table
                if self._identity not in table.members:
                    return
                if await self._leases.write(table.without(self._identity)):
                    logger.info("%r: this replica has given back its slots", self)
                    return
        except AioInformerError as error:
            if self._identity in self._leases.table.members:
                line = "%r: the slots could not be given back, they have to expire: %s"
                logger.warning(line, self, message_of(error))

    async def _withdraw(self) -> None:
        """Delete this term's Lease. If it stays, the others delete it later."""
        try:
            await self._leases.delete(self._identity)
        except NotFoundError:
            pass
        except AioInformerError as error:
            logger.info("%r: this replica's Lease was not deleted: %s", self, message_of(error))

    def _own_loop_time(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:  # in another thread
            return self._leases.asked_at


async def _await(work: Work) -> None:
    await maybe_await(work())
