"""Read and check matrix.toml, which lists the clients of each scenario."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

MATRIX = Path(__file__).parents[1] / "matrix.toml"

Tier = Literal["quick", "bench", "full"]


class Client(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A column of the report.

    Attributes:
        name: The client's name in the report.
        run: A program of the builds, or the name of a client of ``benchmarks.clients``.
        program: Whether it is a program of the builds.
        slow: Whether it runs only the small versions of scenarios.
    """

    name: str
    run: str
    program: bool = False
    encoding: Literal["json", "protobuf"] = "json"
    form: str = "kubeobject"
    loop: Literal["asyncio", "uvloop"] = "asyncio"
    slow: bool = False


class Phase(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A phase after the sync.

    Attributes:
        name: The prefix of its figures: ``"name.cpu_us"``. Names with a leading underscore are not reported.
        events: Changes that the server sends.
        rate: Changes per second; 0 for as fast as the client reads them.
        stamped: Whether latency is measured.
        relist: Whether the watches end with 410 Gone first.
        reads: Whether the client reads its cache meanwhile.
        failures: How many reconciles fail until the phase ends, in an operator whose reconciles all fail from then on;
            0 for none. ``events`` may be 0 in such a phase.
    """

    name: str
    events: int = 1
    rate: float = 0.0
    stamped: bool = False
    relist: bool = False
    reads: bool = False
    failures: int = 0


class Scenario(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A scenario: a sync, then phases.

    Attributes:
        name: The name of its figures.
        title: The scenario's title in the report.
        tiers: The tiers that include it.
        clients: Its clients, in the order of the report.
        objects: The initial number of pods.
        slow_objects: The same for slow clients; 0 leaves them out.
        slow_events: The maximum number of changes in a phase, for slow clients.
        failures: What an operator does when a reconcile fails, in phases of failures: it logs it as its users' do, and
            with ``events`` also records an Event.
        one_core: Whether the client has one core and the server the other; otherwise the client may use both.
        rounds: The maximum number of rounds; 0 for the run's number.
        group: Adjacent scenarios of one group also run in turn.
    """

    name: str
    title: str
    tiers: list[Tier]
    clients: list[str]
    objects: int
    slow_objects: int = 1_000
    slow_events: int = 1_000
    initial: Literal["list", "watchlist"] = "list"
    handler: Literal["metadata", "field", "whole"] = "metadata"
    handlers: int = 1
    informers: int = 1
    probe: bool = False
    tls: bool = False
    failures: Literal["none", "logged", "events"] = "none"
    one_core: bool = True
    rounds: int = 0
    group: str = ""
    phases: list[Phase] = []

    def of(self, client: Client) -> Scenario:
        """Return the scenario as a client runs it."""
        if not client.slow:
            return self
        phases = [
            msgspec.structs.replace(phase, events=min(phase.events, self.slow_events))
            for phase in self.phases
        ]
        return msgspec.structs.replace(self, objects=min(self.objects, self.slow_objects), phases=phases)


class Matrix(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """matrix.toml."""

    clients: list[Client]
    scenarios: list[Scenario]

    def client(self, name: str) -> Client:
        return next(client for client in self.clients if client.name == name)


def load(path: Path = MATRIX) -> Matrix:
    """Return the matrix.

    Raises:
        msgspec.ValidationError: The file is invalid.
        ValueError: A scenario names an unknown client, or a name is used twice.
    """
    fields: dict[str, Any] = tomllib.loads(path.read_text())
    matrix = msgspec.convert(fields, Matrix)
    clients = [client.name for client in matrix.clients]
    for names in (clients, [scenario.name for scenario in matrix.scenarios]):
        if len(set(names)) != len(names):
            raise ValueError(f"a name is used twice: {sorted(names)}")
    for scenario in matrix.scenarios:
        if unknown := set(scenario.clients) - set(clients):
            raise ValueError(f"scenario {scenario.name} names unknown clients: {sorted(unknown)}")
    return matrix
