"""Operator: controllers and rights as declarations, from which each run makes its own Manager."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack, cast, overload

from .._core.callables import require_arguments
from .._core.checks import require_object_name
from ..client import Client
from ..client.lookup import resource_of_class
from ..errors import ConfigError
from ..events import EventRecorder
from ..objects.kube_object import KubeObject
from ..sharding import Sharding
from ..typed import CustomResource
from .context import Context, Lifespan
from .declarations import (
    DeclaredOptions,
    Outcome,
    TaskOptions,
    TimerOptions,
    Uses,
    require_declared,
    require_items,
    unique,
)
from .declared_controller import DeclaredController
from .declared_tasks import DeclaredTask, DeclaredTimer
from .kinds import (
    CacheKey,
    Kind,
    ResourceReference,
    base_of,
    custom_class,
    is_discovered,
    is_optional,
    key_of,
    require_distinct,
)
from .manager import Manager, ManagerOptions
from .mistakes import Mistakes
from .own_metrics import OwnMetrics
from .protocols import LeaderElection
from .requests import Request
from .rights import ELECT, EVENTS, LEASES, SHARE, Right, merge
from .settings import UNREAD, require_settings_class, settings_from
from .webhooks import Reviewed, UserInfo, WebhookApp
from .webhooks.declaring import DeclaresWebhooks
from .webhooks.review import Operation
from .webhooks.trying import try_review

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T")
R = TypeVar("R", bound=Outcome)

Opens = Callable[[Context], AsyncIterator[T]]
"""An async generator function that opens a dependency, yields it once, and closes it."""

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class _Registers(Protocol[T]):
    """A decorator that registers a reconciler and returns it unchanged."""

    @overload
    def __call__(self, reconcile: Callable[[Request[T]], R], /) -> Callable[[Request[T]], R]: ...

    @overload
    def __call__(
        self, reconcile: Callable[[Request[T], Context], R], /
    ) -> Callable[[Request[T], Context], R]: ...


class Operator(DeclaresWebhooks):
    """Declares controllers and webhooks, and what they may do. It has no event loop, client or cache.

    ::

        operator = Operator("websites")

        @operator.controller(Website, owns=["deployments"])
        async def reconcile(request: Request[Website], context: Context) -> None: ...

    ``aioinformer run MODULE:operator`` runs it. In your own program, ``manager`` makes a Manager for one run.

    Args:
        name: The operator's name: of its Lease, in logs and Events, and the field manager of its writes.
        uses: Resources that it uses without being triggered by them.
        events: Whether it records Events, which needs the right to write them.
        failure_events: Whether it records an Event about each object whose reconcile fails, and one when it succeeds
            again. Not without ``events``.
        conditions: Whether it keeps the condition ``Ready`` of the objects of its CustomResource classes: True after a
            success, False with the error after a failure. A controller's ``conditions`` wins.
        settings: A msgspec.Struct; ``context.get`` returns one for each run. A field ``recheck`` of the operator
            ``storage`` is the environment variable ``STORAGE_RECHECK``.

    Raises:
        ConfigError: An argument is invalid; the message has all mistakes.
    """

    def __init__(
        self,
        name: str,
        *,
        uses: Iterable[Uses] = (),
        events: bool = True,
        failure_events: bool = True,
        conditions: bool = False,
        settings: type[Any] | None = None,
    ) -> None:
        mistakes = Mistakes(f"Operator({name!r})")
        mistakes.of(require_object_name, "name", name)
        self.uses = mistakes.of(require_items, "uses", uses, Uses) or ()
        for use in self.uses:
            mistakes.of(attrgetter("right"), use)
        if settings is not None:
            mistakes.of(require_settings_class, settings)
        mistakes.of(require_distinct, (use.named for use in self.uses))
        mistakes.raise_if_any()
        super().__init__()
        self.name = name
        self.events = events
        self.failure_events = events and failure_events
        self.conditions = conditions
        self.settings = settings
        self._declared: list[DeclaredController] = []
        self._lifespans: list[Lifespan] = []
        self._leading_lifespans: list[Lifespan] = []
        self._own_metrics = OwnMetrics()

    def __repr__(self) -> str:
        return f"<Operator {self.name}>"

    # -- declaring -----------------------------------------------------------------------------------------

    @overload
    def controller(
        self, resource: str, **options: Unpack[DeclaredOptions[KubeObject]]
    ) -> _Registers[KubeObject]: ...

    @overload
    def controller(
        self, resource: type[T] | Kind[T], **options: Unpack[DeclaredOptions[T]]
    ) -> _Registers[T]: ...

    def controller(
        self, resource: ResourceReference, **options: Unpack[DeclaredOptions[Any]]
    ) -> _Registers[Any]:
        """Register a reconciler, as a decorator of ``reconcile(request)`` or ``reconcile(request, context)``.

        Args:
            resource: The resource to reconcile: a class, a name, or a Kind.
            **options: See DeclaredOptions.

        Raises:
            ConfigError: The declaration is invalid; the message has all mistakes. It is raised by the decorator.
        """
        require_declared(self.name, "controller", resource, options, DeclaredOptions)

        def register(reconcile: Any) -> Any:
            is_own = custom_class(resource) is not None  # Ready of a kind that is only named may be another's
            keeps_conditions = options.get("conditions", self.conditions and is_own)
            self._declare(DeclaredController(resource, reconcile, options, keeps_conditions=keeps_conditions))
            return reconcile

        return register

    def _declare(self, declared: DeclaredController) -> None:
        used = [use.named for use in self.uses]
        declared.check(self.name, self._declared, [*used, *self._webhook_classes])
        self._declared.append(declared)

    @overload
    def task(self, resource: str, **options: Unpack[TaskOptions[KubeObject]]) -> _Registers[KubeObject]: ...

    @overload
    def task(self, resource: type[T] | Kind[T], **options: Unpack[TaskOptions[T]]) -> _Registers[T]: ...

    def task(self, resource: ResourceReference, **options: Unpack[TaskOptions[Any]]) -> _Registers[Any]:
        """Register a coroutine function that runs for each object, as a decorator.

        ::

            @operator.task(Database, when=lambda database: database.spec.monitored)
            async def watch_health(request: Request[Database], context: Context) -> None:
                while True:
                    ...

        It runs while the object exists, matches and is not marked for deletion, and while this process leads. Then it
        is cancelled, and before it has ended, the object has no other run. ``request.object`` is the object when it
        started; ``context.resource`` has the newest. If it returns, it is not called again for this object in this
        process. An error starts it again after a back-off, and a run of a minute makes up for earlier errors.

        Args:
            resource: The resource: a class, a name, or a Kind.
            **options: See TaskOptions.

        Raises:
            ConfigError: The declaration is invalid; the message has all mistakes. It is raised by the decorator.
        """
        require_declared(self.name, "task", resource, options, TaskOptions)
        when = options.pop("when", None)

        def register(function: Any) -> Any:
            self._declare(DeclaredTask(resource, function, cast(Any, options), when))
            return function

        return register

    @overload
    def timer(
        self, resource: str, *, every: float, **options: Unpack[TimerOptions[KubeObject]]
    ) -> _Registers[KubeObject]: ...

    @overload
    def timer(
        self, resource: type[T] | Kind[T], *, every: float, **options: Unpack[TimerOptions[T]]
    ) -> _Registers[T]: ...

    def timer(
        self, resource: ResourceReference, *, every: float, **options: Unpack[TimerOptions[Any]]
    ) -> _Registers[Any]:
        """Register a function that is called for each object every so many seconds, as a decorator.

        The first call is due when the object is created, and the others count from there, so a restart changes no
        times. A call that fails is repeated after a back-off. Calls that are due while another runs are left out.

        Args:
            resource: The resource: a class, a name, or a Kind.
            every: Seconds between calls for one object.
            **options: See TimerOptions.

        Raises:
            ConfigError: The declaration is invalid; the message has all mistakes. It is raised by the decorator.
        """
        require_declared(self.name, "timer", resource, options, TimerOptions)
        when = options.pop("when", None)

        def register(function: Any) -> Any:
            self._declare(DeclaredTimer(resource, function, cast(Any, options), when, every))
            return function

        return register

    @overload
    def lifespan(self, function: Opens[T], /) -> Opens[T]: ...

    @overload
    def lifespan(self, *, leading: bool) -> Callable[[Opens[T]], Opens[T]]: ...

    def lifespan(self, function: Any = None, *, leading: bool = False) -> Any:
        """Register a dependency, as a decorator of an async generator that opens it, yields it and closes it.

        ::

            @operator.lifespan
            async def store(context: Context) -> AsyncIterator[Store]:
                async with Store(context.get(Settings).url) as store:
                    yield store

        ``context.get(Store)`` returns it. It is open once in each run, from before the caches are filled until all
        reconciles have ended, also on standby. Several are opened in the order of registration.

        Args:
            function: The async generator function.
            leading: Whether it is open only while this process leads: from before the first reconcile until all have
                ended, each time. Webhooks and other lifespans must not use it.

        Raises:
            ConfigError: It is not an async generator function of a context.
        """
        if function is None:
            return partial(self.lifespan, leading=leading)
        require_arguments("lifespan", function, ("context",))
        if not inspect.isasyncgenfunction(function):
            raise ConfigError(
                f"{self.name}: lifespan takes an async function that yields once, not {function!r}"
            )
        (self._leading_lifespans if leading else self._lifespans).append(function)
        return function

    @property
    def registry(self) -> CollectorRegistry:
        """A registry of prometheus-client for metrics of your own, which ``/metrics`` serves with the others.

        ::

            SITES = Counter("websites_published", "Published websites.", registry=operator.registry)

        Raises:
            ConfigError: prometheus-client is not installed.
        """
        return self._own_metrics.registry

    @property
    def resources(self) -> list[ResourceReference]:
        """The resources that it reconciles, owns, watches or uses, as they were declared."""
        return unique([*self._triggers, *(use.named for use in self._uses)])

    @property
    def reconciled(self) -> list[ResourceReference]:
        """The resources that it reconciles."""
        return unique(controller.resource for controller in self._declared)

    @property
    def _triggers(self) -> list[ResourceReference]:
        return [named for controller in self._declared for named in controller.triggers]

    @property
    def _uses(self) -> list[Uses]:
        return [*self.uses, *(use for controller in self._declared for use in controller.uses)]

    def custom_resources(self) -> list[tuple[type[CustomResource], ...]]:
        """Return the CustomResource classes that it names; classes that are versions of one kind together.

        Those that are optional are not among them: others install their definitions. The versions of a kind are in the
        order of Kubernetes: alpha, beta, then stable ones.
        """
        versions: dict[tuple[str, str], list[type[CustomResource]]] = {}
        for declared in dict.fromkeys([*self.resources, *self._webhook_classes]):
            if (kind := custom_class(declared)) is not None and not is_optional(declared):
                resource = resource_of_class(kind)
                versions.setdefault((resource.group, resource.plural), []).append(kind)
        return [tuple(sorted(dict.fromkeys(kinds), key=_age)) for kinds in versions.values()]

    def rights(self, *, leader_election: bool = True, sharding: bool = False) -> list[Right]:
        """Return what the operator's service account has to be permitted.

        Args:
            leader_election: Whether it elects a leader, for which it writes Leases.
            sharding: Whether its replicas share the objects, for which they list and delete Leases, too.
        """
        rights = [right for controller in self._declared for right in controller.rights()]
        rights += [use.right for use in self.uses]
        if self.events:
            rights.append(Right.of(EVENTS, ("create", "patch")))
        if leader_election:
            rights.append(Right.of(LEASES, ELECT))
        if sharding:
            rights.append(Right.of(LEASES, SHARE))
        return merge(rights)

    # -- running -------------------------------------------------------------------------------------------

    def manager(
        self,
        client: Any,
        *,
        namespace: str | None = None,
        leader_election: LeaderElection | None = None,
        sharding: Sharding | None = None,
        grace_period: float = 20.0,
        settings: object = None,
        **options: Unpack[ManagerOptions],
    ) -> Manager:
        """Return a new Manager with all controllers, for one run.

        If it names custom resources by their plural and group, ``await operator.discover(client)`` first.

        Args:
            client: As for Manager.
            namespace: The namespace to work in; None for all.
            leader_election: As for Manager.
            sharding: As for Manager. Each declared resource is read as its role needs it.
            grace_period: As for Manager.
            settings: Its settings; None reads them from environment variables.
            **options: As for Manager.

        Raises:
            ConfigError: An argument is invalid.
        """
        manager, context = self._make_reading_manager(
            client,
            settings,
            namespace=namespace,
            leader_election=leader_election,
            sharding=sharding,
            grace_period=grace_period,
            **options,
        )
        for controller in self._declared:
            manager.add(controller.controller(context, context.events if self.failure_events else None))
        return manager

    def _settings(self, given: object) -> object:
        if given is UNREAD:
            return None
        if self.settings is None:
            if given is not None:
                raise ConfigError(
                    f"{self.name} has no settings: pass settings={type(given).__name__} to its Operator"
                )
            return None
        if given is None:
            return settings_from(self.name, self.settings)
        if not isinstance(given, self.settings):
            raise ConfigError(f"{self.name}: settings must be a {self.settings.__name__}, not {given!r}")
        return given

    def _make_reading_manager(
        self, client: Any, settings: object, *, namespace: str | None = None, **options: Any
    ) -> tuple[Manager, Context]:
        """Return a manager without controllers, which reads the declared resources, and its context."""
        settings = self._settings(settings)
        recorder = EventRecorder(client, self.name) if self.events else None
        options["registry"] = self._own_metrics
        manager = _OperatorManager(
            client, recorder, self._lifespans, self._leading_lifespans, namespace=namespace, **options
        )
        cached = [*self._triggers, *(use.named for use in self._uses if use.is_cached)]
        keys = {key_of(declared) for declared in cached}
        direct = [use.named for use in self._uses if key_of(use.named) not in keys]
        context = manager.context = Context(
            self.name,
            manager,
            namespace=namespace,
            namespaces=options.get("namespaces"),
            cached=cached,
            direct=direct,
            recorder=recorder,
            settings=settings,
            shard_by=self._roles(),
        )
        return manager, context

    def _roles(self) -> dict[CacheKey, Literal["uid", "owner", ""]]:
        """Return what decides about the share of each cache. Controllers refuse a cache of another role."""
        roles: dict[CacheKey, Literal["uid", "owner", ""]] = {}
        for controller in self._declared:
            roles.setdefault(key_of(controller.resource), "uid")
            for owned in controller.owned:
                roles.setdefault(key_of(owned.resource), "owner")
            for watched in controller.watches:
                roles.setdefault(key_of(watched.resource), "")
        return roles

    def webhook_app(self, manager: Manager | None = None) -> WebhookApp:
        """Return its webhooks as an ASGI application.

        Args:
            manager: What ``manager`` returned, for functions that take a context; None if there are none. Its metrics
                and its state have the webhooks.

        Raises:
            ConfigError: A function takes a context and there is no manager, or a conversion is missing.
        """
        app = self._webhook_app(manager.context if isinstance(manager, _OperatorManager) else None)
        if manager is not None:
            manager.report_webhooks(app.counts)
        return app

    async def review(
        self,
        obj: T,
        *,
        old: T | None = None,
        operation: Operation | None = None,
        user: UserInfo | None = None,
        dry_run: bool = False,
        subresource: str = "",
        client: Any = None,
        settings: object = None,
    ) -> Reviewed[T]:
        """Call the webhooks for an object, without a server: for unit tests.

        First those that mutate, in turn, then those that validate. They get what the API server would send. Selectors,
        ``match_conditions`` and the schema of the kind are not applied.

        Args:
            obj: The object as it would be stored, or that would be deleted: a Struct, a KubeObject or a dict.
            old: The object before an update.
            operation: UPDATE if there is an ``old`` object, else CREATE.
            user: The user who makes the request.
            dry_run: Whether the request stores nothing.
            subresource: The subresource, such as ``"status"``.
            client: As for Manager, for functions that take a context. The informers of declared resources run during
                the call; controllers do not.
            settings: As for ``manager``, with a client.

        Raises:
            ConfigError: No webhook is called for this object and operation, or a function takes a context and there is
                no client.
            Exception: A webhook failed: this is its error.
        """
        operation = operation or ("CREATE" if old is None else "UPDATE")
        asked = (obj, old, operation, user or UserInfo(), dry_run, subresource)
        if client is None:
            return await try_review(self._admissions, None, *asked)
        client = Client.of(client)
        await self.discover(client)
        manager, context = self._make_reading_manager(client, settings)
        async with manager:
            return await try_review(self._admissions, context, *asked)

    async def discover(self, client: Client) -> None:
        """Find the custom resources that the operator names by plural and group, at the server.

        Raises:
            ConfigError: The server does not have one.
            AioInformerError: The server does not answer.
        """
        for resource in self.resources:
            name = base_of(resource)
            if isinstance(name, str) and is_discovered(name):
                await client.discovery.find(name)

    @asynccontextmanager
    async def running(
        self,
        client: Any,
        *,
        namespace: str | None = None,
        sharding: Sharding | None = None,
        grace_period: float = 20.0,
        settings: object = None,
        **options: Unpack[ManagerOptions],
    ) -> AsyncIterator[Manager]:
        """Run the operator inside a block, for tests and programs that do other things too.

        Args:
            client: As for Manager.
            namespace: The namespace to work in; None for all.
            sharding: As for ``manager``.
            grace_period: As for Manager.
            settings: As for ``manager``.
            **options: As for Manager.
        """
        client = Client.of(client)
        await self.discover(client)
        async with self.manager(
            client,
            namespace=namespace,
            sharding=sharding,
            grace_period=grace_period,
            settings=settings,
            **options,
        ) as manager:
            yield manager


class _OperatorManager(Manager):
    """A Manager that also runs the recorder of its operator's Events, and its lifespans."""

    def __init__(
        self,
        client: Any,
        recorder: EventRecorder | None,
        lifespans: Iterable[Lifespan],
        leading_lifespans: Iterable[Lifespan],
        **options: Any,
    ) -> None:
        super().__init__(Client.of(client), **options)
        self._recorder = recorder
        self._lifespans = tuple(lifespans)
        self._leading_lifespans = tuple(leading_lifespans)
        self.context: Context | None = None

    async def run(self) -> None:
        assert self.context is not None
        async with (
            self._recorder or nullcontext(),  # leaving sends the last Events
            self.context.provide(self._lifespans),
        ):
            await super().run()

    async def _work(self) -> None:
        assert self.context is not None
        async with self.context.provide(self._leading_lifespans):
            await super()._work()


def _age(kind: type[CustomResource]) -> tuple[int, int, int, str]:
    """Return what orders versions as Kubernetes does: v1alpha1, v1beta1, v1, v2; others come first."""
    version = resource_of_class(kind).version
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0, version)
    return ({"alpha": 1, "beta": 2}.get(match[2], 3), int(match[1]), int(match[3] or 0), version)
