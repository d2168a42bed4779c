"""The replicas of a run as processes: started, asked, stopped and killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from aioinformer.sharding.leases import table_name_of
from aioinformer.sharding.table import Table

from ..harness.cell import CLIENTS_CORE, SERVERS_CORE
from ..harness.processes import ClientFailedError, ClientProcess, ReplayServer
from .replica import NAMESPACE, SHARDING, SLOTS

PATIENCE = 180.0
"""Seconds for all slots to have an owner and all objects to be reconciled."""
GOODBYE = 30.0
POLL = 0.1
QUIET = 0.5
TABLE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{table_name_of(SHARDING)}"
TABLE_POLL = 0.02


class State(msgspec.Struct):
    """What a replica says about itself; times in nanoseconds of the monotonic clock."""

    cpu: float
    owned: list[int]
    objects: int
    reconciles: int
    reconciled_at: int
    server_selects: bool


class ReplicaProcess(ClientProcess):
    """A replica that has started and waits for ``run``."""

    def __init__(self, name: str, server: str, encoding: str) -> None:
        command = [sys.executable, "-m", "benchmarks.replicas.replica", name, server, encoding]
        super().__init__(command, [SERVERS_CORE, CLIENTS_CORE], GOODBYE)
        self.name = name

    def state(self) -> State:
        self.send("state")
        return msgspec.convert(self.answer("state", PATIENCE), State)

    def settle(self) -> None:
        """Collect its garbage."""
        self.send("settle")
        self.answer("settled", PATIENCE)

    def stop(self, signal_number: signal.Signals) -> float:
        """Send a signal, and return the seconds until the process has ended.

        Raises:
            ClientFailedError: It did not end, or failed.
        """
        began = time.monotonic()
        self._process.send_signal(signal_number)
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(GOODBYE)
        if status is None:
            self._fail(f"did not end within {GOODBYE:g} s of {signal_number.name}")
        if status not in (0, -signal.SIGKILL):
            self._fail(f"exited with status {status}")
        return time.monotonic() - began


class Fleet:
    """The replicas that run.

    Args:
        server: The replay server.
        encoding: ``"json"`` or ``"protobuf"``.
        objects: The number of objects.
    """

    def __init__(self, server: ReplayServer, encoding: str, objects: int) -> None:
        self._server, self._encoding, self._objects = server, encoding, objects
        self._count = 0
        self.replicas: list[ReplicaProcess] = []

    def start(self) -> ReplicaProcess:
        """Start one more, without letting it take part."""
        replica = ReplicaProcess(f"replica-{self._count}", self._server.http, self._encoding)
        self._count += 1
        replica.__enter__()
        self.replicas.append(replica)
        replica.answer("ready")
        return replica

    def end(self, replica: ReplicaProcess, signal_number: signal.Signals) -> float:
        """Stop or kill one; return the seconds that took."""
        self.replicas.remove(replica)
        try:
            return replica.stop(signal_number)
        finally:
            replica.__exit__(None, None, None)

    def close(self) -> None:
        """Kill all."""
        while self.replicas:
            with suppress(ClientFailedError):  # it has failed before
                self.end(self.replicas[-1], signal.SIGKILL)

    def states(self) -> list[State]:
        return [replica.state() for replica in self.replicas]

    def sent(self) -> list[int]:
        """Return the bytes that the server has sent to each."""
        sent = self._server.sent()
        return [sent.get(replica.name, 0) for replica in self.replicas]

    def wait(self, is_done: Callable[[list[State]], bool], what: str) -> list[State]:
        """Wait until the states of the replicas are as wanted.

        Raises:
            ClientFailedError: They are not within PATIENCE.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            states = self.states()
            if is_done(states):
                return states
            if time.monotonic() > deadline:
                raise ClientFailedError(f"{what} took more than {PATIENCE:g} s: {states}")
            time.sleep(POLL)

    def wait_balanced(self, reconciles: int = 0) -> list[State]:
        """Wait until the replicas share all slots, their caches have all objects, and there were so many reconciles."""

        def is_balanced(states: list[State]) -> bool:
            owned = sorted(slot for state in states for slot in state.owned)
            counts = [len(state.owned) for state in states]
            return (
                owned == list(range(SLOTS))
                and max(counts) - min(counts) <= 1
                and sum(state.objects for state in states) == self._objects
                and sum(state.reconciles for state in states) >= reconciles
            )

        return self.wait(is_balanced, "balancing")

    def wait_reconciled(self, reconciles: int) -> list[State]:
        """Wait until there were so many reconciles."""
        return self.wait(
            lambda states: sum(state.reconciles for state in states) >= reconciles, "reconciling"
        )

    def wait_quiet(self) -> list[State]:
        """Wait until no replica has reconciled for QUIET seconds."""

        def is_quiet(states: list[State]) -> bool:
            return time.monotonic_ns() - max(state.reconciled_at for state in states) > QUIET * 1e9

        return self.wait(is_quiet, "reconciling")

    @contextmanager
    def watch_table(self) -> Iterator[dict[int, float]]:
        """Record the longest time that each slot has no owner in the Lease, in seconds, until the block is left."""
        longest = dict.fromkeys(range(SLOTS), 0.0)
        ended = threading.Event()

        def watch() -> None:
            free_since: dict[int, float] = {}
            while not ended.wait(TABLE_POLL):
                now, owned = time.monotonic(), self._owned()
                for slot in longest:
                    if slot in owned:
                        free_since.pop(slot, None)
                    else:
                        longest[slot] = max(longest[slot], now - free_since.setdefault(slot, now))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield longest
        finally:
            ended.set()
            thread.join()

    def _owned(self) -> set[int]:
        with urllib.request.urlopen(self._server.http + TABLE, timeout=PATIENCE) as response:
            return set(Table.of(json.load(response), SLOTS).owners)
