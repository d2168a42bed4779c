"""ReflectorOptions: the options of a Reflector (client-go ``ReflectorOptions``)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypedDict

from .._core.callables import require_callback
from .._core.checks import (
    require_count,
    require_flag,
    require_methods,
    require_options,
    require_seconds,
    require_text,
)

WatchErrorHandler = Callable[[Any, Exception], object]
"""``handler(reflector, error)``, plain or async; the first argument is the Reflector.

It is called for every failed list or watch, also when an open stream fails. It is not called when the server refuses a
list's version or a WatchList, because the reflector then tries another request at once.
"""

MIN_WATCH_TIMEOUT = 300.0
"""Seconds: the default of ``min_watch_timeout``."""

ANSWER_TIMEOUT = 60.0
"""Seconds: the default of ``list_timeout``."""


class ReflectorOptions(TypedDict, total=False):
    """Options of a Reflector. Informers and factories take them, too.

    None, and 0 for seconds, mean the default, as upstream, unless stated otherwise.

    Attributes:
        use_watch_list: Read the initial state as a stream (WatchList). None, the default, does so if the ListerWatcher
            supports it. If the server does not, the reflector lists, and tries a stream again after a while.
        page_size: Objects per page. 0, the default, follows upstream's rules: 500, but no pages for lists that the
            server's watch cache can answer.
        min_watch_timeout: Seconds. Each watch asks the server to end it after one to two times this. Relists for
            events that could not be read are at least this far apart. 300.
        max_internal_error_retry_duration: Seconds during which an internal error of the server in a stream leads to
            another watch instead of a list. 0.
        list_timeout: Seconds to wait for any answer to a list, or to the opening of a watch. 60, as in Client.
        max_silence: Seconds without an event or bookmark after which the watch is reopened from the last version: its
            connection may be lost. 0, the default, is 75 to 80, because API servers send a bookmark about every
            minute. Without bookmarks it is at least 60.
        initial_events_timeout: Seconds without an initial event after which a WatchList fails. 10.
        watch_error_handler: Called for every failed list or watch instead of logging it; None logs. Dropped objects
            and outages are logged anyway.
        drop_managed_fields: Read objects without metadata.managedFields, often a third of an object. False.
        optional: Whether the server may lack the collection, such as a custom resource before its definition comes.
            It counts as empty then, and is tried again within 30 s. False.
        name: The reflector's name in logs.
        random: Source of jitter and watch timeouts.
    """

    use_watch_list: bool | None
    page_size: int
    min_watch_timeout: float
    max_internal_error_retry_duration: float
    list_timeout: float
    max_silence: float
    initial_events_timeout: float
    watch_error_handler: WatchErrorHandler | None
    drop_managed_fields: bool
    optional: bool
    name: str
    random: Random


def watch_timeout(least: float, random: Random) -> int:
    """Return the seconds after which the server ends a watch: one to two times the least, to spread the ends."""
    return max(1, int(least * (1.0 + random.random())))


def require_watch_error_handler(name: str, value: object) -> None:
    """Check the signature of a WatchErrorHandler.

    Raises:
        ConfigError: It cannot be called with (reflector, error).
    """
    require_callback(name, value, ("reflector", "error"))


def _require_random(name: str, value: object) -> None:
    require_methods(name, value, ("random",), "Random(7)")


_CHECKS: dict[str, Callable[[str, object], None]] = {
    "use_watch_list": require_flag,
    "page_size": require_count,
    "min_watch_timeout": require_seconds,
    "max_internal_error_retry_duration": require_seconds,
    "list_timeout": require_seconds,
    "max_silence": require_seconds,
    "initial_events_timeout": require_seconds,
    "watch_error_handler": require_watch_error_handler,
    "drop_managed_fields": require_flag,
    "optional": require_flag,
    "name": require_text,
    "random": _require_random,
}


def check_options(options: ReflectorOptions, taker: Callable[..., object]) -> None:
    """Check the names and values of options where they are given. None is the default of each.

    Args:
        options: The options that the caller does not name in its signature.
        taker: The function or class that takes them.

    Raises:
        TypeError: There is no such option.
        ConfigError: A value cannot work.
    """
    require_options(options, _CHECKS, taker)
    for name, value in options.items():
        if value is not None:
            _CHECKS[name](name, value)
