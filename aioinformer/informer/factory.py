"""SharedInformerFactory: one informer for each collection (client-go ``informers/factory.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar, Unpack, overload

from ..errors import AlreadyStartedError, ConfigError
from ..listwatch import Client, ListWatch
from ..objects import KubeObject
from ..reflector import Phase, ReflectorOptions
from ..reflector.reflector import check_options
from ..store import NAMESPACE_INDEX, meta_namespace_index_func
from ..tasks import finish
from .shared_informer import SharedIndexInformer
from .wait import wait_for_cache_sync

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SharedInformerFactory:
    """Makes informers and shares them: asking twice for the same collection gives the same one.

    An async context manager: entering starts the informers asked for so far, leaving stops all and waits. Ask for
    more at any time, and call ``start`` again.

    Args:
        client: A Client, or a kubernetes_asyncio ApiClient.
        namespace: The namespace of informers that do not name one; None for all namespaces.
        default_resync_period: Seconds between resyncs; 0 for none.
        **options: See ReflectorOptions; they hold for every informer.
    """

    def __init__(
        self,
        client: Any,
        namespace: str | None = None,
        default_resync_period: float = 0.0,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        self._client = Client.of(client)
        self._owns_client = self._client is not client
        self._namespace = namespace
        self._default_resync_period = default_resync_period
        check_options(options)
        self._options = options
        self._informers: dict[tuple[object, ...], SharedIndexInformer[Any]] = {}
        self._tasks: dict[SharedIndexInformer[Any], asyncio.Task[None]] = {}
        self._shut_down = False
        self._failed = asyncio.Event()

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers asked for so far."""
        return list(self._informers.values())

    @overload
    def for_resource(
        self,
        api_version: str,
        plural: str,
        *,
        namespace: str | None = None,
        namespaces: Sequence[str] | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> SharedIndexInformer[KubeObject]: ...

    @overload
    def for_resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[T],
        *,
        namespace: str | None = None,
        namespaces: Sequence[str] | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> SharedIndexInformer[T]: ...

    def for_resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[Any] = KubeObject,
        *,
        namespace: str | None = None,
        namespaces: Sequence[str] | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> SharedIndexInformer[Any]:
        """The informer of a collection, with an index named ``"namespace"``.

        Args:
            api_version: ``"v1"``, ``"apps/v1"``.
            plural: ``"pods"``.
            object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
            namespace: One namespace; None for the factory's.
            namespaces: Several, each listed and watched by itself (so that rights to each suffice).
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.

        Raises:
            ConfigError: The arguments cannot name a collection.
        """
        if isinstance(namespaces, str):
            raise ConfigError(f"namespaces is a list of names, not {namespaces!r}; one alone is namespace=")
        if namespace is not None and namespaces is not None:
            raise ConfigError("namespace and namespaces exclude each other")
        chosen = (
            tuple(dict.fromkeys(namespaces)) if namespaces is not None else (namespace or self._namespace,)
        )
        asked = (api_version, plural, object_type, chosen, label_selector, field_selector)
        informer = self._informers.get(asked)
        if informer is None:
            list_watches = {
                each or "": ListWatch.for_resource(
                    self._client, api_version, plural, each, label_selector, field_selector
                )
                for each in chosen
            }
            informer = self._informers[asked] = SharedIndexInformer(
                list_watches,
                object_type,
                self._default_resync_period,
                {NAMESPACE_INDEX: meta_namespace_index_func},
                **self._options,
            )
        return informer

    def start(self) -> None:
        """Start the informers that are not running yet. After ``shutdown`` it does nothing.

        One that somebody runs by hand stays theirs.
        """
        for informer in self._informers.values():
            if informer not in self._tasks and not self._shut_down:
                with suppress(AlreadyStartedError):
                    task = self._tasks[informer] = informer.begin()
                    task.add_done_callback(self._note_end)

    async def wait_for_cache_sync(self, timeout: float | None = None) -> None:
        """Wait until all started informers have synced. Raises as the function of this name.

        Those that were never started are not waited for, as upstream; a warning names them.
        """
        for informer in self._informers.values():
            if informer not in self._tasks and informer.state.phase is Phase.NEW:
                logger.warning("not waiting for %s, which was never started: call start()", informer.name)
        await wait_for_cache_sync(*self._tasks, timeout=timeout)

    async def shutdown(self) -> None:
        """Stop all informers and wait for their end. May be called again.

        Raises:
            BaseExceptionGroup: Informers had failed, with their errors.
        """
        for informer in self._tasks:
            informer.require_outside_handlers()
        self._shut_down = True
        tasks = list(self._tasks.values())
        try:
            await finish(*tasks)
        finally:
            if self._owns_client:
                await self._client.close()
        failures = [task.exception() for task in tasks if not task.cancelled()]
        errors = [failure for failure in failures if failure is not None]
        if errors:
            raise BaseExceptionGroup("informers failed", errors)

    async def run(self) -> None:
        """Start the informers, and stop them when cancelled or when one has failed.

        Raises:
            BaseExceptionGroup: Informers failed, with their errors.
        """
        async with self:
            await self._failed.wait()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.shutdown()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failed.set()
