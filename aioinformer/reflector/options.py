"""What can be set of a Reflector (client-go ``ReflectorOptions``)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypedDict

from .._core.checks import (
    require_count,
    require_flag,
    require_methods,
    require_seconds,
    require_text,
)
from ..handlers import require_callback

WatchErrorHandler = Callable[[Any, Exception], object]
"""``handler(reflector, error)``, plain or async; the first argument is the Reflector.

It is called for every failed list or watch, also when an open stream fails. It is not called when the server refuses a
list's version or a WatchList, because the reflector then tries another request at once.
"""

MIN_WATCH_TIMEOUT = 300.0
"""Seconds: ``min_watch_timeout`` where nobody says."""

ANSWER_TIMEOUT = 60.0
"""Seconds: ``list_timeout`` where nobody says."""


class ReflectorOptions(TypedDict, total=False):
    """What can be set of a Reflector, also through an informer or a factory.

    What is None is the default; so are 0 seconds, as upstream, where nothing else is said.

    Attributes:
        use_watch_list: Read the initial state as a stream (WatchList); None, the default, does so where the
            ListerWatcher knows how, and a server that cannot is remembered for a while.
        page_size: Objects a page; 0, the default, follows upstream's rules: 500, but lists that the server's
            watch cache can answer are not paged.
        min_watch_timeout: Seconds; each watch asks the server to end it after one to two times this, and lists that
            make up for what could not be read are as far apart. 300.
        max_internal_error_retry_duration: Seconds for which a server's internal errors in a stream are ridden
            out by watching again instead of listing. 0.
        list_timeout: Seconds without any answer to a list, or to the opening of a watch, after which it is given
            up. 60, which is also when a Client gives up.
        max_silence: Seconds without any event or bookmark after which a watch is opened again, from the last version:
            its connection may be lost. 0, the default, is 75 to 80, since API servers send a bookmark about every
            minute; it is 60 at least where no bookmarks come.
        initial_events_timeout: Seconds without any initial event after which a WatchList is given up. 10.
        watch_error_handler: Told of every failed list or watch in place of the log; None logs. What is dropped, and
            outages, are logged all the same.
        drop_managed_fields: Take objects without metadata.managedFields, which are a third of many. False.
        name: What logs call it.
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
    name: str
    random: Random


def watch_timeout(least: float, random: Random) -> int:
    """Seconds after which the server is to end a watch: one to two times the least, for not all to end at once."""
    return max(1, int(least * (1.0 + random.random())))


def _require_random(name: str, value: object) -> None:
    require_methods(name, value, ("random",), "random.Random(0)")


def require_watch_error_handler(name: str, value: object) -> None:
    """See that a WatchErrorHandler is one.

    Raises:
        ConfigError: It cannot be called as one is.
    """
    require_callback(name, value, ("reflector", "error"))


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
    "name": require_text,
    "random": _require_random,
}


def check_options(options: ReflectorOptions) -> None:
    """Find a mistyped option, or a value that cannot work, where it was written. None is the default of each.

    Raises:
        TypeError: There is no such option, as for any function's arguments.
        ConfigError: The value of one cannot work.
    """
    if unknown := sorted(options.keys() - _CHECKS.keys()):
        raise TypeError(f"no option named {', '.join(unknown)}; there are: {', '.join(_CHECKS)}")
    for name, value in options.items():
        if value is not None:
            _CHECKS[name](name, value)
