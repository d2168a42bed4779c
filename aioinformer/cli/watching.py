"""``aioinformer watch``: print a collection and its changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from random import SystemRandom
from typing import Any, NamedTuple

from .._core.tasks import run_until_first
from ..client import Client
from ..client.discovery import GROUP_TIMEOUT, find_resource
from ..deltas import DeletedFinalStateUnknown
from ..errors import ApiError, DecodeError, TransportError
from ..handlers import ResourceEventHandler
from ..informer import SharedIndexInformer
from ..listwatch import ListWatch
from ..objects.api_resources import APIResource
from ..objects.kube_object import KubeObject
from ..reflector import Backoff, Reflector
from ..reflector.retry import Retry, is_hopeless
from ..typed import Change, diff
from .output import JsonLines, OutputError, Printer, Table, convert_write_errors, last_state
from .progress import Progress

logger = logging.getLogger(__name__)


class Watching(NamedTuple):
    """The options of the command."""

    resource: str
    namespace: str | None
    all_namespaces: bool
    label_selector: str | None
    field_selector: str | None
    output: str
    full: bool
    diff: bool
    until_synced: bool
    timeout: float | None


async def watch_resource(client: Client, asked: Watching) -> None:
    """Print a collection and its changes until cancelled, or until synced with ``until_synced``.

    A cancellation after the list was printed with ``until_synced`` is no error.

    Raises:
        AioInformerError: Server unreachable, forbidden, no such resource, or timeout.
    """
    progress = Progress(asked.timeout)
    view: _View | None = None
    try:
        async with client:
            discovery = _Discovery(client, asked)
            resource = await progress.show_during(discovery.find(), lambda: discovery)
            if asked.namespace is not None and not resource.namespaced:
                logger.warning("%s are cluster-scoped: -n is ignored", resource.plural)
            everywhere = asked.all_namespaces or not resource.namespaced
            namespace = None if everywhere else asked.namespace or client.namespace
            printer: Printer = (
                JsonLines(asked.full)
                if asked.output == "jsonl"
                else Table(namespaced=resource.namespaced and everywhere, wide=asked.output == "wide")
            )
            informer = SharedIndexInformer(
                ListWatch.for_resource(
                    client,
                    resource.api_version,
                    resource.plural,
                    namespace,
                    asked.label_selector,
                    asked.field_selector,
                ),
                KubeObject,
            )
            view = _View(printer, informer, progress, diff=asked.diff)
            async with informer:
                await progress.show_during(
                    run_until_first(partial(view.registration.wait_synced, fail_fast=True), view.wait_ended),
                    lambda: informer.state,
                )
                view.announce_synced()
                if not (asked.until_synced and view.is_announced):
                    await view.wait_ended()
    except asyncio.CancelledError:
        if not (asked.until_synced and view is not None and view.is_announced):
            raise


class _Discovery:
    """Finds the resource by its name. It retries if there is a timeout or the server sends Retry-After."""

    def __init__(self, client: Client, asked: Watching) -> None:
        self._client = client
        self._asked = asked
        # A hanging group must leave time for the list; each retry waits longer for it.
        self._group_timeout = (
            GROUP_TIMEOUT if asked.timeout is None else min(GROUP_TIMEOUT, asked.timeout / 4)
        )
        self._last_error: Exception | None = None

    def __str__(self) -> str:
        text = f"waiting for {self._client.server} to list its resources"
        return text if self._last_error is None else f"{text}; last error: {self._last_error}"

    async def find(self) -> APIResource:
        retry = Retry(Backoff(SystemRandom()), self._client.health)
        while True:
            try:
                return await find_resource(self._client, self._asked.resource, self._group_timeout)
            except (ApiError, TransportError) as error:
                has_retry_after = isinstance(error, ApiError) and error.retry_after is not None
                if is_hopeless(error) or (self._asked.timeout is None and not has_retry_after):
                    raise
                self._last_error = error
                self._group_timeout = min(GROUP_TIMEOUT, 2 * self._group_timeout)
                if retry.record_failure(error):
                    logger.warning("%s; retrying", error)
            await retry.wait()


class _View(ResourceEventHandler[KubeObject]):
    """A handler that prints events."""

    def __init__(
        self,
        printer: Printer,
        informer: SharedIndexInformer[KubeObject],
        progress: Progress,
        *,
        diff: bool,
    ) -> None:
        self._diff = diff
        self._printer = printer
        self._informer = informer
        self._progress = progress
        self._synced = False
        self._initial = 0
        self._failure: Exception | None = None
        self._ended = asyncio.Event()
        self.registration = informer.add_event_handler(self)
        informer.set_watch_error_handler(self.on_error)

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._initial += is_in_initial_list
        self._print("ADDED", obj.key, obj, is_in_initial_list)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._print("MODIFIED", new.key, new, False, _changes(old, new) if self._diff else ())

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        key, last = last_state(obj)
        self._print("DELETED", key, last, False)

    def announce_synced(self) -> None:
        """Print, at most once, that the initial list is complete."""
        if not self._synced and not self._ended.is_set():
            self._synced = True
            self._try(self._printer.print_synced, self._initial, self._informer.last_sync_resource_version)

    def on_error(self, reflector: Reflector[Any], error: Exception) -> None:
        is_fatal = is_hopeless(error) and not self._synced
        if not is_fatal and not (isinstance(error, ApiError) and error.is_expired):
            logger.warning("%s; retrying", error)

    @property
    def is_announced(self) -> bool:
        """True if the initial list and the line about its end have been printed."""
        return self._synced and not self._ended.is_set()

    async def wait_ended(self) -> None:
        """Wait until the output fails, and raise its error."""
        await self._ended.wait()
        assert self._failure is not None
        raise self._failure

    def _print(
        self, kind: str, key: str, obj: KubeObject | None, initial: bool, changes: Sequence[Change] = ()
    ) -> None:
        if not initial and not self._synced and self.registration.has_synced():
            self.announce_synced()
        self._try(self._printer.event, kind, key, obj, initial, changes)

    def _try(self, write: Any, *arguments: object) -> None:
        self._progress.end()
        try:
            with convert_write_errors():
                write(*arguments)
        except OutputError as error:
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._ended.set()


def _changes(old: KubeObject, new: KubeObject) -> list[Change]:
    """Return what changed; nothing for objects that cannot be decoded, whose row says so."""
    try:
        return diff(old, new)
    except DecodeError:
        return []
