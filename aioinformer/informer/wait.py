"""Waiting for many informers at once (client-go ``cache.WaitFor``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

import anyio

from .._core.checks import require_methods, require_timeout
from .._core.tasks import finish
from ..errors import ConfigError, SyncTimeout

logger = logging.getLogger(__name__)

PROGRESS_PERIOD = 10.0
"""Seconds between log lines about informers that have not synced."""


class Syncing(Protocol):
    """An informer, a registration, or a controller; it may have a ``name`` and a ``state``, for messages."""

    def has_synced(self) -> bool: ...

    def wait_synced(self) -> Coroutine[Any, Any, object]: ...


async def wait_for_cache_sync(
    *informers: Syncing, timeout: float | None = None, fail_fast: bool = False
) -> bool:
    """Wait until all informers (or handlers' registrations) have synced.

    It waits for all of them at once, also for informers that are not started yet. Every ten seconds it logs, at INFO,
    which ones have not synced and what they are doing.

    Args:
        *informers: What to wait for.
        timeout: Seconds for all together; None waits without limit.
        fail_fast: Whether to raise if a first list fails with an error that a retry cannot fix: 400 (such as a bad
            selector), 401, 403, 404 or 405.

    Returns:
        True, as upstream's.

    Raises:
        ConfigError: An argument cannot sync; with ``fail_fast``, its ``wait_synced`` has no such argument; or
            ``timeout`` is not a duration.
        SyncTimeout: The timeout passed; the message names each that has not synced and what it is doing.
        StoppedError: One stopped first; the message names it. Raised at once.
        ApiError, ConfigError: With ``fail_fast``, a first list was refused.
    """
    require_timeout(timeout)
    for each in informers:
        require_methods("what is waited for", each, ("has_synced", "wait_synced"), "SharedIndexInformer(...)")
    waiting: list[asyncio.Task[object]] = []
    try:
        for each in informers:
            if not each.has_synced():
                name = f"waiting for {_name(each)}"
                waiting.append(asyncio.create_task(_wait(each, fail_fast=fail_fast), name=name))
        with anyio.move_on_after(timeout) as scope:
            await _all(waiting, informers)
        if scope.cancelled_caught and (missing := _missing(informers)):
            only = getattr(informers[0], "name", None) if len(informers) == 1 else None
            raise SyncTimeout(
                f"not synced after {timeout:g} s: {'; '.join(map(_doing, missing))}", informer=only
            )
    finally:
        await finish(*waiting)
        for task in waiting:
            if not task.cancelled():
                task.exception()  # of several that stopped at once one is raised
    return True


def _wait(each: Syncing, *, fail_fast: bool) -> Coroutine[Any, Any, object]:
    if not fail_fast:
        return each.wait_synced()
    wait: Callable[..., Coroutine[Any, Any, object]] = each.wait_synced
    try:
        return wait(fail_fast=True)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # raised inside wait_synced
        raise ConfigError(
            f"fail_fast=True needs a wait_synced(*, fail_fast), not that of {each!r}"
        ) from error


async def _all(tasks: Iterable[asyncio.Task[object]], informers: Sequence[Syncing]) -> None:
    """Wait for all tasks, and raise the first error."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(
            waiting, timeout=PROGRESS_PERIOD, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            task.result()
        if waiting:
            missing = "; ".join(map(_doing, _missing(informers)))
            logger.info("waiting for caches to sync for %.0f s: %s", loop.time() - started, missing)


def _missing(informers: Iterable[Syncing]) -> list[Syncing]:
    return [each for each in informers if not each.has_synced()]


def _name(each: Syncing) -> str:
    return getattr(each, "name", "") or repr(each)


def _doing(each: Syncing) -> str:
    """Return its name and, if it has a state, what it is doing."""
    what_is_done = getattr(each, "what_is_done", None)  # a registration's
    doing = getattr(each, "state", None) if what_is_done is None else what_is_done()
    return _name(each) if doing is None else f"{_name(each)}: {doing}"
