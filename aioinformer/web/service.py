"""WebInformers: the informers of a web service, which start and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Generic, TypeVar, Unpack, overload

from .._core.checks import require_count
from ..client import Client
from ..errors import AlreadyStartedError, ConfigError, InformerError
from ..informer import Health, SharedIndexInformer, SharedInformerFactory
from ..informer.factory import InformerOptions
from ..metrics import Sample, render
from ..objects.api_resources import APIResource
from ..objects.kube_object import KubeObject
from ..store import Lister
from .asgi import Probes
from .feed import ChangeFeed
from .stopping import calling_at_stop

T = TypeVar("T")

TEXT = "text/plain; charset=utf-8"
NOT_STARTED = "has not started: pass lifespan=informers.lifespan to the application"


class WebInformer(Generic[T]):
    """A collection that a web service reads. ``WebInformers.for_resource`` returns one.

    It is declared where the application is, and has an informer while the application runs.
    """

    def __init__(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any], history: int) -> None:
        self.name = name
        self.arguments = arguments
        self.options = options
        self.history = history
        self.running: SharedIndexInformer[T] | None = None
        self.running_feed: ChangeFeed[T] | None = None

    def __repr__(self) -> str:
        return f"<WebInformer of {self.name}>"

    @property
    def informer(self) -> SharedIndexInformer[T]:
        """The informer.

        Raises:
            InformerError: The application does not run.
        """
        if self.running is None:
            raise InformerError(f"{self!r} {NOT_STARTED}")
        return self.running

    @property
    def lister(self) -> Lister[T]:
        """The reader of the cache. Raises InformerError if the application does not run."""
        return self.informer.lister

    @property
    def feed(self) -> ChangeFeed[T]:
        """The feed of changes.

        Raises:
            ConfigError: It was declared without ``history``.
            InformerError: The application does not run.
        """
        if not self.history:
            raise ConfigError(f"{self!r} has no feed: declare it with history=1000")
        if self.running_feed is None:
            raise InformerError(f"{self!r} {NOT_STARTED}")
        return self.running_feed

    async def __call__(self) -> Lister[T]:
        """Return the lister, as a dependency: ``Depends(pods)`` of FastAPI, ``Provide(pods)`` of Litestar."""
        return self.lister


class WebInformers:
    """The informers of a web service: declared with the application, started and ended by its lifespan.

        informers = WebInformers(Client.from_environment)
        pods = informers.for_resource("v1", "pods", history=1000)
        app = FastAPI(lifespan=informers.lifespan)
        app.mount("/kube", informers.probes)

    Args:
        client: Returns the client: it is called at each start of the application, and the client is closed at its end.
            Or a Client or ApiClient, which stays open.
        **options: As for SharedInformerFactory.

    Raises:
        ConfigError: ``client`` is neither.

    Attributes:
        probes: An ASGI application with ``/readyz``, ``/livez`` and ``/metrics``.
    """

    def __init__(self, client: Callable[[], Client] | Client | Any, **options: Any) -> None:
        self._client: Any = client
        self._options = options
        self._resources: list[WebInformer[Any]] = []
        self._factory: SharedInformerFactory | None = None
        self.probes = Probes(self)

    def __repr__(self) -> str:
        return f"<WebInformers of {', '.join(resource.name for resource in self._resources) or 'nothing'}>"

    @overload
    def for_resource(
        self, api_version: str, plural: str, *, history: int = 0, **options: Unpack[InformerOptions]
    ) -> WebInformer[KubeObject]: ...

    @overload
    def for_resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[T],
        *,
        history: int = 0,
        **options: Unpack[InformerOptions],
    ) -> WebInformer[T]: ...

    @overload
    def for_resource(
        self, resource: str | APIResource, /, *, history: int = 0, **options: Unpack[InformerOptions]
    ) -> WebInformer[KubeObject]: ...

    @overload
    def for_resource(
        self, resource: type[T], /, *, history: int = 0, **options: Unpack[InformerOptions]
    ) -> WebInformer[T]: ...

    @overload
    def for_resource(
        self,
        resource: str | APIResource,
        object_type: type[T],
        /,
        *,
        history: int = 0,
        **options: Unpack[InformerOptions],
    ) -> WebInformer[T]: ...

    def for_resource(self, *arguments: Any, history: int = 0, **options: Any) -> WebInformer[Any]:
        """Declare a collection.

        Args:
            *arguments: The collection and the object type, as for ``SharedInformerFactory.for_resource``, which checks
                them at the start.
            history: Changes that its feed keeps; 0 for no feed.
            **options: Selectors, namespaces and so on.

        Raises:
            ConfigError: ``history`` is not a number.
            AlreadyStartedError: The application runs already.
        """
        require_count("history", history)
        if self._factory is not None:
            raise AlreadyStartedError(
                f"{self!r} run already: declare collections before the application starts"
            )
        name = " ".join(getattr(argument, "__name__", str(argument)) for argument in arguments[:2])
        resource: WebInformer[Any] = WebInformer(name, arguments, options, history)
        self._resources.append(resource)
        return resource

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Run the informers while the application runs. It does not wait for the sync: see ``/readyz``.

        Pass it as ``lifespan=`` of Starlette and FastAPI, in the list ``lifespan=[...]`` of Litestar, or append it to
        ``cleanup_ctx`` of an aiohttp application. At SIGINT and SIGTERM it ends the streams of the feeds, for which
        servers would wait for ever.

        Args:
            app: The application, which is not used.

        Raises:
            AlreadyStartedError: Another application runs these informers.
            ConfigError: The client or a collection is not valid.
            BaseException: At the end: an informer had failed with this error.
        """
        if self._factory is not None:
            raise AlreadyStartedError(f"{self!r} run already, for another application")
        async with AsyncExitStack() as stack:
            client: Any = self._client
            if callable(client):
                made: Any = client()
                stack.push_async_callback(made.close)
                client = made
            self._factory = factory = SharedInformerFactory(client, **self._options)
            stack.callback(self._forget)
            for resource in self._resources:
                resource.running = factory.for_resource(*resource.arguments, **resource.options)
                if resource.history:
                    feed = ChangeFeed(resource.running, resource.history)
                    resource.running_feed = await stack.enter_async_context(feed)
            await stack.enter_async_context(factory)
            stack.enter_context(calling_at_stop(self.end_streams))
            yield

    @property
    def factory(self) -> SharedInformerFactory:
        """The factory of the informers.

        Raises:
            InformerError: The application does not run.
        """
        if self._factory is None:
            raise InformerError(f"{self!r} {NOT_STARTED}")
        return self._factory

    def end_streams(self) -> None:
        """End the streams of the feeds, so that a server can stop. Browsers connect to the next one."""
        for resource in self._resources:
            if resource.running_feed is not None:
                resource.running_feed.end()

    def ready(self) -> Health:
        """Return whether the service is ready: every informer has synced, and none is out of date."""
        return Health(False, (f"{self!r} {NOT_STARTED}",)) if self._factory is None else self._factory.ready()

    def healthy(self) -> Health:
        """Return whether the service is alive: no watch is stalled, and no informer has ended."""
        return (
            Health(False, (f"{self!r} {NOT_STARTED}",)) if self._factory is None else self._factory.healthy()
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of informers and feeds."""
        if self._factory is not None:
            yield from self._factory.samples()
        for resource in self._resources:
            if resource.running_feed is not None:
                yield from resource.running_feed.samples()

    def answer(self, name: str) -> tuple[int, str]:
        """Return status and text for a probe: ``"readyz"``, ``"livez"`` or ``"metrics"``."""
        status, body, _ = self.respond(name)
        return status, body.decode()

    def respond(self, name: str, accept: str = "") -> tuple[int, bytes, str]:
        """Return status, body and Content-Type for a probe.

        Args:
            name: ``"readyz"``, ``"livez"`` or ``"metrics"``.
            accept: The request's Accept header, by which Prometheus chooses a format.
        """
        if name == "metrics":
            try:
                return 200, *render(self.samples(), accept=accept)
            except ConfigError as error:  # prometheus-client is not installed
                return 501, str(error).encode(), TEXT
        if name not in ("readyz", "livez"):
            return 404, b"there are readyz, livez and metrics", TEXT
        health = self.ready() if name == "readyz" else self.healthy()
        return 200 if health else 503, str(health).encode(), TEXT

    def _forget(self) -> None:
        self._factory = None
        for resource in self._resources:
            resource.running = resource.running_feed = None
