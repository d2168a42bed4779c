"""Waiting for many informers at once (client-go ``cache.WaitFor``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

import anyio

from .._core.cancellation import maybe_await
from .._core.checks import require_methods, require_timeout
from .._core.tasks import gather
from .._core.timers import call_every
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
    for informer in informers:
        require_methods(
            "what is waited for", informer, ("has_synced", "wait_synced"), "SharedIndexInformer(...)"
        )
    loop = asyncio.get_running_loop()
    started = loop.time()

    def log_progress() -> None:
        missing = "; ".join(map(_describe, _missing(informers)))
        logger.info("waiting for caches to sync for %.0f s: %s", loop.time() - started, missing)

    with anyio.move_on_after(timeout) as scope, call_every(PROGRESS_PERIOD, log_progress):
        await gather(*[_wait(informer, fail_fast=fail_fast) for informer in _missing(informers)])
    if scope.cancelled_caught and (missing := _missing(informers)):
        only = getattr(informers[0], "name", None) if len(informers) == 1 else None
        raise SyncTimeout(
            f"not synced after {timeout:g} s: {'; '.join(map(_describe, missing))}", informer=only
        )
    return True


async def _wait(informer: Syncing, *, fail_fast: bool) -> None:
    wait: Callable[..., Coroutine[Any, Any, object]] = informer.wait_synced
    try:
        waiting = wait(fail_fast=True) if fail_fast else wait()
    except TypeError as error:
        if not fail_fast or (error.__traceback__ is not None and error.__traceback__.tb_next is not None):
            raise  # raised inside wait_synced
        raise ConfigError(
            f"fail_fast=True needs a wait_synced(*, fail_fast), not that of {informer!r}"
        ) from error
    await maybe_await(waiting)


def _missing(informers: Iterable[Syncing]) -> list[Syncing]:
    return [informer for informer in informers if not informer.has_synced()]


def _name(informer: Syncing) -> str:
    return getattr(informer, "name", "") or repr(informer)


def _describe(informer: Syncing) -> str:
    """Return its name and, if it has a state, what it is doing."""
    what_is_done = getattr(informer, "what_is_done", None)  # a registration's
    doing = getattr(informer, "state", None) if what_is_done is None else what_is_done()
    return _name(informer) if doing is None else f"{_name(informer)}: {doing}"
