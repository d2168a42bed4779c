"""Factory: informers for code without an event loop."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from ..client import Client
from ..client.lookup import ResourceName
from ..controller import QueueName
from ..errors import ConfigError, StoppedError
from ..informer import Health, SharedIndexInformer, SharedInformerFactory
from ..informer.factory import InformerOptions
from ..objects.kube_object import KubeObject
from ..reflector import ReflectorOptions
from ..tracing import Trace
from .informer import Informer
from .loop_thread import LoopThread

T = TypeVar("T")


class Factory:
    """Creates informers that run on an event loop in a thread of their own, for code without one.

        with Factory(Client.from_kubeconfig()) as factory:
            pods = factory.for_resource("v1", "pods")
            pods.wait_synced(30)
            print(len(pods.lister.list()))

    A context manager, to be entered once. Entering starts the thread, opens the client, and starts the informers that
    were requested so far. Leaving stops all, closes the client and waits; where a program has no place to leave it, the
    interpreter's exit does. Until it is started, a factory has no thread and no connection, so a process with one
    may be forked.

    Any thread may call its methods and those of its informers. Code that runs on its event loop may not, and gets
    WrongEventLoopError: transforms, index functions and other functions that it calls, except handlers, which run in
    threads.

    In a process that was forked since the start nothing runs: ``ready()`` is false, reading and waiting raise
    ForkedError, and leaving does nothing.

    Args:
        client: A Client, which the factory opens and closes, so it is for this factory alone; or a kubernetes_asyncio
            ApiClient. None for ``Client.from_environment()``.
        namespace: As for SharedInformerFactory, and so are the other arguments.
        default_resync_period: Seconds between resyncs; 0 for none.
        use_uvloop: Whether the event loop is uvloop's.
        queue: "delta" or "real".
        stalled_after: Seconds without a byte after which a watch counts as stalled.
        detect_mutations: Whether each informer has a CacheMutationDetector.
        on_trace: Called on the event loop with the timing of each event.
        **options: See ReflectorOptions.

    Raises:
        ConfigError: An argument is not valid.
    """

    def __init__(
        self,
        client: Any = None,
        namespace: str | None = None,
        default_resync_period: float = 0.0,
        *,
        use_uvloop: bool = False,
        queue: QueueName = "delta",
        stalled_after: float | None = None,
        detect_mutations: bool = False,
        on_trace: Callable[[Trace], object] | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        self.client = Client.from_environment() if client is None else Client.of(client)
        """The client. Its requests run on the factory's event loop: see ``call``."""
        self._factory = SharedInformerFactory(
            self.client,
            namespace,
            default_resync_period,
            queue=queue,
            stalled_after=stalled_after,
            detect_mutations=detect_mutations,
            on_trace=on_trace,
            **options,
        )
        self._loop = LoopThread(self, use_uvloop=use_uvloop)
        self._informers: dict[SharedIndexInformer[Any], Informer[Any]] = {}
        self._ending = threading.Lock()

    def __repr__(self) -> str:
        return f"<blocking Factory of {', '.join(informer.name for informer in self._factory.informers) or 'nothing'}>"

    @property
    def informers(self) -> list[Informer[Any]]:
        """The informers that were requested so far."""
        return [self._of(informer) for informer in self._factory.informers]

    @overload
    def for_resource(
        self, api_version: ResourceName, plural: str = "", **options: Unpack[InformerOptions]
    ) -> Informer[KubeObject]: ...

    @overload
    def for_resource(
        self,
        api_version: ResourceName | type[T],
        plural: str | type[T] = "",
        object_type: type[T] | None = None,
        **options: Unpack[InformerOptions],
    ) -> Informer[T]: ...

    def for_resource(self, *args: Any, **options: Any) -> Informer[Any]:
        """Return the informer of a collection; see ``SharedInformerFactory.for_resource``.

        The informer of a running factory starts at once. Set transforms, and handlers that must see the first list
        arrive, before the factory starts.
        """
        return self._of(self._loop.call_if_running(partial(self._factory.for_resource, *args, **options)))

    def start(self) -> None:
        """Start the thread and the informers, as entering does; for code that cannot use ``with``, such as a hook.

        Raises:
            ConfigError: The client's configuration is unusable.
            AlreadyStartedError: It was started before.
            ForkedError: It was started before this process was forked.
        """
        self._loop.start()
        try:
            self._loop.call(self._begin)
        except BaseException:
            self._loop.stop()
            raise
        atexit.register(self.shutdown)

    def shutdown(self, *, grace: float | None = None) -> None:
        """Stop all informers, close the client, and end the thread, as leaving does. May be called again.

        It waits for handlers' running calls. In a process that was forked since the start it does nothing.

        Args:
            grace: Seconds for them to end; None waits without limit. What has not ended by then is left behind, with an
                ERROR.

        Raises:
            InformerError: Called from inside a handler, which would wait for itself.
            BaseException: An informer had failed with this error; of several, a BaseExceptionGroup.
        """
        if not self._loop.was_started or self._loop.was_forked:
            return
        with suppress(StoppedError):  # the event loop has just ended
            if self._loop.is_running():
                self._loop.call(self._require_outside_handlers)
        with self._ending:
            try:
                if self._loop.is_running():
                    self._loop.call(self._end, grace)
            except StoppedError:
                self._loop.stop(grace)
                if not self._loop.has_failed:  # then it is an informer's
                    raise
            finally:
                self._loop.stop(grace)
                atexit.unregister(self.shutdown)
                for informer in self._informers.values():
                    informer.end_threads()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def wait_for_cache_sync(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait until all informers have synced; see ``SharedInformerFactory.wait_for_cache_sync``."""
        return self._loop.call(partial(self._factory.wait_for_cache_sync, timeout, fail_fast=fail_fast))

    def remove(self, informer: Informer[Any]) -> None:
        """Stop an informer, wait for its end and forget it; see ``SharedInformerFactory.remove``."""
        if not isinstance(informer, Informer):
            raise ConfigError(f"{informer!r} is not an informer of {self!r}")
        self._loop.call(self._factory.remove, informer.informer)
        self._informers.pop(informer.informer, None)
        informer.end_threads()

    def healthy(self) -> Health:
        """Return whether it is alive, for a liveness probe; see ``SharedInformerFactory.healthy``."""
        return self._factory.healthy()

    def ready(self) -> Health:
        """Return whether it is ready, for a readiness probe: alive, and its caches are filled and current."""
        return self._factory.ready()

    def metrics(self) -> str:
        """Return the metrics of its informers in Prometheus' text format, for a ``/metrics`` route (``text/plain``)."""
        return self._factory.metrics()

    @overload
    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T: ...

    @overload
    def call(self, function: Callable[..., T], *args: Any) -> T: ...

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function, plain or async, on the factory's event loop, and return its result.

            deployments = Resource(factory.client, "deployments")
            web = factory.call(deployments.get, "default/web")

        For everything of aioinformer that this package does not wrap. KeyboardInterrupt cancels the call.

        Raises:
            InformerError: The factory was not started.
            StoppedError: It was shut down, before or meanwhile.
            ForkedError: It was started before this process was forked.
            WrongEventLoopError: Called on that event loop, which would wait for itself.
            BaseException: What the function raised.
        """
        return self._loop.call(function, *args)

    def _of(self, informer: SharedIndexInformer[Any]) -> Informer[Any]:
        return self._informers.setdefault(informer, Informer(informer, self._loop))

    async def _begin(self) -> None:
        await self.client.open()
        try:
            await self._factory.__aenter__()
        except BaseException:
            await self.client.close()
            raise

    def _require_outside_handlers(self) -> None:
        for informer in self._factory.running:
            informer.require_outside_handlers()

    async def _end(self, grace: float | None) -> None:
        try:
            await self._factory.shutdown(grace=grace)
        finally:
            await self.client.close()
