"""What can go wrong between an API server and its clients: by name, each drawing its details from a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.simulation.storm import Storm

Trouble = Callable[["Storm", Random], object]
"""Strikes a storm's world."""


def _watches_end(storm: Storm, random: Random) -> None:
    storm.server.faults.drop_watches(mid_line=random.random() < 0.5)


def _connections_cut(storm: Storm, random: Random) -> None:
    storm.network.cut()


def _connections_silent(storm: Storm, random: Random) -> None:
    part = random.choice((0.3, 1.0))
    storm.network.silence(lambda _: random.random() < part)


def _network_stalls(storm: Storm, random: Random) -> None:
    storm.network.stall(random.uniform(0.1, 30.0))


def _network_slow(storm: Storm, random: Random) -> None:
    storm.network.latency, storm.network.slow = (0.1, random.choice((0.5, 5.0))), 0.7
    storm.later(random.uniform(1.0, 60.0), storm.speed_up)


def _server_away(storm: Storm, random: Random) -> None:
    storm.server.faults.refuse(cut=random.random() < 0.8)
    storm.later(random.uniform(0.1, 60.0), storm.network.accept)


def _server_restarted(storm: Storm, random: Random) -> None:
    storm.server.faults.refuse(cut=True)
    storm.server.faults.expire_history(step=False)
    storm.later(random.uniform(0.1, 5.0), storm.network.accept)


def _server_frozen(storm: Storm, random: Random) -> None:
    fault = storm.server.faults.freeze(verb=random.choice((None, "list", "watch")))
    storm.later(random.uniform(0.1, 90.0), fault.remove)


def _history_expired(storm: Storm, random: Random) -> None:
    faults = storm.server.faults
    faults.expired_as_status = random.random() < 0.5
    faults.expire_history()
    if random.random() < 0.7:
        faults.drop_watches()


def _error_in_the_stream(storm: Storm, random: Random) -> None:
    code = random.choice((410, 410, 429, 500, 504))
    retry_after = random.randint(1, 20) if code == 429 and random.random() < 0.5 else None
    storm.server.faults.watch_error(code=code, retry_after=retry_after, end=random.random() < 0.7)


def _requests_fail(storm: Storm, random: Random) -> None:
    code = random.choice((401, 403, 410, 429, 500, 503, 504))
    storm.server.faults.fail(
        code,
        times=random.randint(1, 4),
        retry_after=random.randint(1, 20) if code in (429, 503) and random.random() < 0.5 else None,
        verb=random.choice((None, "list", "watch")),
        in_stream=random.random() < 0.3,
    )
    _end_watches_perhaps(storm, random)


def _tokens_expired(storm: Storm, random: Random) -> None:
    storm.server.faults.fail(410, verb="list", matching=lambda request: request.is_continue)
    _list_again(storm)


def _lists_break_off(storm: Storm, random: Random) -> None:
    storm.server.faults.truncate(times=random.randint(1, 3), fraction=random.random())
    _list_again(storm)


def _lists_lag(storm: Storm, random: Random) -> None:
    storm.server.faults.lag(random.randint(1, 30), times=random.randint(1, 3))
    _end_watches_perhaps(storm, random)


def _answers_late(storm: Storm, random: Random) -> None:
    storm.server.faults.delay(
        random.uniform(0.1, 70.0), times=random.randint(1, 3), verb=random.choice((None, "list", "watch"))
    )
    _end_watches_perhaps(storm, random)


def _bookmarks_lost(storm: Storm, random: Random) -> None:
    fault = storm.server.faults.lose_bookmarks()
    storm.later(random.uniform(1.0, 300.0), fault.remove)


def _closing_bookmark_lost(storm: Storm, random: Random) -> None:
    storm.server.faults.lose_closing_bookmark(times=random.randint(1, 2))
    _list_again(storm)


def _closing_bookmark_late(storm: Storm, random: Random) -> None:
    storm.network.late_closing = random.uniform(0.1, 15.0)
    _list_again(storm)


def _changes_twice(storm: Storm, random: Random) -> None:
    storm.network.duplicates = random.randint(1, 5)


def _garbage(storm: Storm, random: Random) -> None:
    line = random.choice((b"{no JSON\n", b"\n", b'{"type":"ADDED","object":{"kind":"ConfigMap"}}\n'))
    storm.server.faults.send_raw(line)


def _end_watches_perhaps(storm: Storm, random: Random) -> None:
    if random.random() < 0.5:
        storm.server.faults.drop_watches()


def _list_again(storm: Storm) -> None:
    """See to it that there are lists to go wrong."""
    storm.server.faults.expire_history()
    storm.server.faults.drop_watches()


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
"""Everything that a storm may do, by name."""
