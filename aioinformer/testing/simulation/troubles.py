"""Troubles between an API server and its clients, by name; each draws its details from a seed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.simulation.network import Network
    from aioinformer.testing.simulation.server import SimulatedAPIServer


class Targets:
    """The server and the network that troubles act on, and how to end the troubles.

    Args:
        server: The server.
        network: Its network.
    """

    def __init__(self, server: SimulatedAPIServer, network: Network) -> None:
        self.server = server
        self.network = network
        self._usual = network.latency, network.slow
        self._ends: list[tuple[asyncio.TimerHandle, Callable[[], object]]] = []

    def speed_up(self) -> None:
        """Restore the network's original speed."""
        self.network.latency, self.network.slow = self._usual

    def later(self, seconds: float, end: Callable[[], object]) -> None:
        """Call `end` after a while, and again when all trouble ends."""
        self._ends.append((asyncio.get_running_loop().call_later(seconds, end), end))

    def end(self) -> None:
        """End all trouble."""
        for timer, end in self._ends:
            timer.cancel()
            end()
        self.server.faults.clear()
        self.network.clear()
        self.network.accept()


Trouble = Callable[[Targets, Random], object]
"""A function that causes a trouble."""


def _watches_end(targets: Targets, random: Random) -> None:
    targets.server.faults.drop_watches(mid_line=random.random() < 0.5)


def _connections_cut(targets: Targets, random: Random) -> None:
    targets.network.cut()


def _connections_silent(targets: Targets, random: Random) -> None:
    part = random.choice((0.3, 1.0))
    targets.network.silence(lambda _: random.random() < part)


def _network_stalls(targets: Targets, random: Random) -> None:
    targets.network.stall(random.uniform(0.1, 30.0))


def _network_slow(targets: Targets, random: Random) -> None:
    targets.network.latency, targets.network.slow = (0.1, random.choice((0.5, 5.0))), 0.7
    targets.later(random.uniform(1.0, 60.0), targets.speed_up)


def _server_away(targets: Targets, random: Random) -> None:
    targets.server.faults.refuse(cut=random.random() < 0.8)
    targets.later(random.uniform(0.1, 60.0), targets.network.accept)


def _server_restarted(targets: Targets, random: Random) -> None:
    targets.server.faults.refuse(cut=True)
    targets.server.faults.expire_history(step=False)
    targets.later(random.uniform(0.1, 5.0), targets.network.accept)


def _server_frozen(targets: Targets, random: Random) -> None:
    fault = targets.server.faults.freeze(verb=random.choice((None, "list", "watch")))
    targets.later(random.uniform(0.1, 90.0), fault.remove)


def _history_expired(targets: Targets, random: Random) -> None:
    faults = targets.server.faults
    faults.expired_as_status = random.random() < 0.5
    faults.expire_history()
    if random.random() < 0.7:
        faults.drop_watches()


def _error_in_the_stream(targets: Targets, random: Random) -> None:
    code = random.choice((410, 410, 429, 500, 504))
    retry_after = random.randint(1, 20) if code == 429 and random.random() < 0.5 else None
    targets.server.faults.watch_error(code=code, retry_after=retry_after, end=random.random() < 0.7)


def _requests_fail(targets: Targets, random: Random) -> None:
    code = random.choice((401, 403, 410, 429, 500, 503, 504))
    targets.server.faults.fail(
        code,
        times=random.randint(1, 4),
        retry_after=random.randint(1, 20) if code in (429, 503) and random.random() < 0.5 else None,
        verb=random.choice((None, "list", "watch")),
        in_stream=random.random() < 0.3,
    )
    _maybe_end_watches(targets, random)


def _tokens_expired(targets: Targets, random: Random) -> None:
    targets.server.faults.fail(410, verb="list", matching=lambda request: request.is_continue)
    _force_relist(targets)


def _lists_break_off(targets: Targets, random: Random) -> None:
    targets.server.faults.truncate(times=random.randint(1, 3), fraction=random.random())
    _force_relist(targets)


def _lists_lag(targets: Targets, random: Random) -> None:
    targets.server.faults.lag(random.randint(1, 30), times=random.randint(1, 3))
    _maybe_end_watches(targets, random)


def _answers_late(targets: Targets, random: Random) -> None:
    targets.server.faults.delay(
        random.uniform(0.1, 70.0), times=random.randint(1, 3), verb=random.choice((None, "list", "watch"))
    )
    _maybe_end_watches(targets, random)


def _bookmarks_lost(targets: Targets, random: Random) -> None:
    fault = targets.server.faults.lose_bookmarks()
    targets.later(random.uniform(1.0, 300.0), fault.remove)


def _closing_bookmark_lost(targets: Targets, random: Random) -> None:
    targets.server.faults.lose_closing_bookmark(times=random.randint(1, 2))
    _force_relist(targets)


def _closing_bookmark_late(targets: Targets, random: Random) -> None:
    targets.network.late_closing = random.uniform(0.1, 15.0)
    _force_relist(targets)


def _changes_twice(targets: Targets, random: Random) -> None:
    targets.network.duplicates = random.randint(1, 5)


def _garbage(targets: Targets, random: Random) -> None:
    line = random.choice((b"{no JSON\n", b"\n", b'{"type":"ADDED","object":{"kind":"ConfigMap"}}\n'))
    targets.server.faults.send_raw(line)


def _maybe_end_watches(targets: Targets, random: Random) -> None:
    if random.random() < 0.5:
        targets.server.faults.drop_watches()


def _force_relist(targets: Targets) -> None:
    """Make clients relist, so that the trouble has lists to act on."""
    targets.server.faults.expire_history()
    targets.server.faults.drop_watches()


TROUBLES: dict[str, Trouble] = {
    "watches end": _watches_end,
    "connections cut": _connections_cut,
    "connections silent": _connections_silent,
    "network stalls": _network_stalls,
    "network slow": _network_slow,
    "server away": _server_away,
    "server restarted": _server_restarted,
    "server frozen": _server_frozen,
    "history expired": _history_expired,
    "error in the stream": _error_in_the_stream,
    "requests fail": _requests_fail,
    "continue tokens expired": _tokens_expired,
    "lists break off": _lists_break_off,
    "lists lag": _lists_lag,
    "answers late": _answers_late,
    "bookmarks lost": _bookmarks_lost,
    "closing bookmark lost": _closing_bookmark_lost,
    "closing bookmark late": _closing_bookmark_late,
    "changes twice": _changes_twice,
    "garbage": _garbage,
}
"""Every trouble of a storm, by name."""
