"""Settings of histories, drawn from their seeds."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

NAMESPACES = ("blue", "green", "grey")
NAMES = ("a", "b", "c", "d", "e")
QUEUES = ["delta", "real"]


@dataclass(frozen=True)
class Setting:
    """The setting of a history.

    Attributes:
        queue: Which queue the informer has.
        resync: Seconds between its resyncs, or 0.
        options: Its other options.
        server: The server's arguments.
        namespaces: Which it reads; none for all.
        handlers: The arguments of the witnesses that are there from the beginning.
        objects: How many writes there are before it starts.
        storm: Seconds of trouble.
        trouble_every: Seconds between two troubles, on average.
        write_every: Seconds between writes.
        cancelled: Seconds after which the informer is cancelled, or None.
        by_run: Whether `run()` is awaited rather than the informer entered.
        sockets: Whether its client speaks HTTP by sockets.
        unfit: The share of writes that do not fit the object type.
    """

    queue: str
    resync: float
    options: dict[str, Any]
    server: dict[str, Any]
    namespaces: tuple[str, ...]
    handlers: list[dict[str, Any]]
    objects: int
    storm: float
    trouble_every: float
    write_every: float
    cancelled: float | None
    by_run: bool
    sockets: bool
    unfit: float


def setting(seed: int) -> Setting:
    """Draw a setting."""
    random = Random(f"{seed} setting")
    storm = random.choice((5.0, 5.0, 20.0, 60.0))
    resync = random.choice((0.0, 0.0, 3.0, 8.0))
    return Setting(
        queue=random.choice(QUEUES),
        resync=resync,
        options={
            "use_watch_list": random.choice((None, True, False)),
            "page_size": random.choice((0, 0, 1, 3)),
            "min_watch_timeout": random.choice((5.0, 20.0, 60.0)),
            "max_internal_error_retry_duration": random.choice((0.0, 20.0)),
        },
        server={
            "history": random.choice((0, 2, 5, 1000)),
            "bookmark_interval": random.choice((3.0, 20.0, 60.0)),
            "watch_list": random.random() < 0.8,
        },
        namespaces=random.choice(((), (), NAMESPACES[:1], NAMESPACES[:2])),
        handlers=[handler(random, resync) for _ in range(random.choice((1, 1, 2, 3)))],
        objects=random.randint(0, 8),
        storm=storm,
        trouble_every=storm / random.choice((1, 4, 8)),
        write_every=storm / random.choice((3, 10, 20)),
        cancelled=random.uniform(0, storm) if random.random() < 0.15 else None,
        by_run=random.random() < 0.3,
        sockets=random.random() < 0.01,
        unfit=random.choice((0.0, 0.1, 0.5)),
    )


def handler(random: Random, resync: float) -> dict[str, Any]:
    """Draw a witness."""
    return {
        "raises": random.choice((0.0, 0.0, 0.3)),
        "slow": random.choice((0.0, 0.0, 0.01, 2.0)),
        "resyncs": resync > 0 and random.random() < 0.7,
        "backlog": random.choice(("unbounded", "unbounded", "block", "coalesce")),
        "backlog_limit": random.choice((1, 3)),
        "is_aware": random.random() < 0.7,
    }
