"""Run an operator as a process: the one place where its client, definitions, webhooks, probes, leader election and
manager are put together.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from .._core.callables import callable_name
from .._core.garbage import freeze_garbage_collection
from .._core.lost_lines import LOST_LINES
from .._core.own_code import failure_text
from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import finish, raise_failures
from ..client import Client
from ..errors import AioInformerError, ConfigError, message_of
from ..leaderelection import LeaderElector
from ..metrics import Sample
from ..sharding import Sharding
from ..tracing import StageTimes
from .definitions import BeingDeletedError, digests_of, install, keep_installed
from .leases import election_lease_of, sharding_of
from .manager import Manager
from .operator import Operator
from .preflight import check
from .process_events import CERTIFICATE_INVALID, LOGS_LOST, Problems, recording_process_events
from .protocols import ManagerFactory
from .run_options import RunOptions
from .serving import Debug, ProcessState, Serving, Tokens
from .unfit import warn_of_unfit_objects
from .webhook_registration import keep_registered, register
from .webhooks import Reached, WebhookServer
from .webhooks.server import default_drain

logger = logging.getLogger(__name__)

TRACES = 10_000
"""Newest events from which the latencies of stages are computed."""


async def run(
    operator: Operator | ManagerFactory, client: Any = None, options: RunOptions | None = None
) -> None:
    """Run an operator until SIGTERM or Ctrl-C, or until cancelled, as ``aioinformer run`` does.

    It installs and checks the definitions, checks the rights, and serves probes, metrics and webhooks.

    Args:
        operator: An Operator; or a function of a Client that returns a Manager.
        client: As for Manager; None for the service account in a pod, elsewhere for the kubeconfig. It is closed at
            the end.
        options: See RunOptions.

    Cancellation: running reconciles may end within the grace period; a second one, or a second signal, cancels them.

    Raises:
        ConfigError: The operator cannot run, or this is not the main thread.
        BaseException: As ``Manager.run``.
    """
    client = Client.from_environment() if client is None else Client.of(client)
    process = _Process(operator, client, options or RunOptions())
    await run_until_signal(process.run, process, STOP_SIGNALS, process.begin_drain)


class _Process:
    """An operator, or a function that makes its manager, with what runs beside the manager."""

    def __init__(self, operator: Operator | ManagerFactory, client: Client, options: RunOptions) -> None:
        self._operator: Operator | None = None
        self._make: ManagerFactory | None = None
        if isinstance(operator, Operator):
            self._operator = operator
            target, self._name = options.target or "MODULE:OBJECT", operator.name
        else:
            self._make = operator
            target = options.target or f"{operator.__module__}:{callable_name(operator)}"
            self._name = target.replace(":", ".")  # two that are called main must not compete for one Lease
        self._client = client
        self._options = msgspec.structs.replace(options, target=target)
        self._host = options.host or (None if os.environ.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1")
        self._drains_until: float | None = None

    def __repr__(self) -> str:
        return f"<Run of {self._name}>"

    async def run(self) -> None:
        """Run the operator until cancelled."""
        client, operator, options = self._client, self._operator, self._options
        served = operator if operator is not None and operator.has_webhooks and options.webhook_port else None
        # Before anything changes at the server.
        if served and (options.tls_cert is None or options.tls_key is None):
            raise ConfigError(
                f"{self._name} has webhooks, which the API server calls by TLS: pass --tls-cert and --tls-key (--dev "
                "makes them), or --webhook-port 0 to run without webhooks"
            )
        reached: Reached = self._describe_webhook_address() if served else {}
        if served and options.webhook_service and options.webhook_ca is None:
            raise ConfigError(
                "--webhook-service registers the webhooks, for which the API server needs the authority of their "
                "certificate: pass --webhook-ca"
            )
        if served and reached:
            served.webhook_configurations(only=options.watched, **reached)  # raises all mistakes
        async with client:
            elector = None
            if options.leader_elect:
                home = options.lease_namespace or client.namespace
                elector = LeaderElector(client, election_lease_of(self._name, options), home)
            sharding = sharding_of(client, self._name, options)
            stages = StageTimes(TRACES) if options.trace else None
            if operator is not None:
                if options.installs:
                    await self._install(operator, reached)
                await operator.discover(client)
            manager = await self._manager(elector, sharding, stages)
            webhooks = self._webhook_server(served, manager) if served else None
            definitions = {} if operator is None else digests_of(operator)
            serving = Serving(
                Debug(
                    manager,
                    self._name,
                    elector=elector,
                    stages=stages,
                    process=lambda: _state_of_process(webhooks, definitions),
                ),
                metrics_port=options.metrics_port,
                probe_port=options.probe_port,
                host=self._host,
                debug_hosts=options.debug_hosts,
                webhooks=served is not None,
                tokens=Tokens(client) if options.metrics_auth else None,
            )
            manager.report(_log_samples)
            async with (
                webhooks or nullcontext(),
                serving,
            ):  # first the webhooks: a pod that is ready serves them
                if served and reached and not options.webhook_service:
                    await register(client, served, only=options.watched, **reached)
                await check(operator, options, manager)
                if operator is not None and options.force_crds:  # --dev: classes change under their objects
                    await warn_of_unfit_objects(client, operator)
                logger.info("%s runs on %s", self._name, client.server)
                if self._host and options.metrics_port:
                    logger.info("the debug page: http://%s:%d/debug", self._host, options.metrics_port)
                try:
                    async with (
                        self._keep_installed(reached),
                        self._keep_registered(served, elector),
                        self._record_events(manager, webhooks, elector),
                    ):
                        with freeze_garbage_collection():
                            await manager.run()
                finally:
                    if served:
                        await self._drain()

    def begin_drain(self) -> None:
        """Record that the signal came. In a pod, webhooks are served some seconds longer: the API server learns of
        its end later."""
        self._drains_until = asyncio.get_running_loop().time() + default_drain()

    async def _drain(self) -> None:
        """Wait until the seconds are over, from the signal on. A second signal cuts that short."""
        if self._drains_until is not None:
            await asyncio.sleep(self._drains_until - asyncio.get_running_loop().time())

    async def _install(self, operator: Operator, reached: Reached) -> None:
        try:
            await install(self._client, operator, force=self._options.force_crds, **reached)
        except BeingDeletedError as error:
            logger.warning(
                "%s. The operator starts, and installs it again when it is gone", message_of(error)
            )

    @asynccontextmanager
    async def _keep_installed(self, reached: Reached) -> AsyncIterator[None]:
        """Install the operator's CustomResourceDefinitions again when they are deleted, if they are to be installed."""
        if self._operator is None or not self._options.installs:
            yield
            return
        work = keep_installed(self._client, self._operator, **reached)
        async with _beside(work, "the CustomResourceDefinitions are not checked"):
            yield

    @asynccontextmanager
    async def _keep_registered(
        self, operator: Operator | None, elector: LeaderElector | None
    ) -> AsyncIterator[None]:
        """Register the webhooks while this process leads, if they have a Service."""
        options = self._options
        if operator is None or not options.webhook_service:
            yield
            return
        work = keep_registered(
            self._client,
            operator,
            self._describe_webhook_address,
            lambda: elector is None or elector.is_leader,
            delay=default_drain(),
            name=options.webhook_configuration or operator.name,
            only=options.watched,
        )
        async with _beside(work, "the webhooks are not registered"):
            yield

    @asynccontextmanager
    async def _record_events(
        self, manager: Manager, webhooks: WebhookServer | None, elector: LeaderElector | None
    ) -> AsyncIterator[None]:
        """Record Events about this process, if the operator records Events."""
        if self._operator is None or not self._operator.events:
            yield
            return
        problems: Problems = {
            "NotReady": lambda: "; ".join(manager.ready().reasons) if manager.accepting() else "",
            "NotElected": lambda: _election_problem(manager),
            CERTIFICATE_INVALID: lambda: webhooks.certificate_problem if webhooks else "",
            LOGS_LOST: _log_problem,
        }
        async with recording_process_events(self._client, self._name, problems, elector):
            yield

    def _webhook_server(self, operator: Operator, manager: Manager) -> WebhookServer:
        options = self._options
        server = WebhookServer(
            operator.webhook_app(manager),
            port=options.webhook_port,
            cert=options.tls_cert or "",
            key=options.tls_key or "",
            host=self._host,
            drain=0.0,  # the seconds count from the signal
        )
        manager.report(server.samples)
        return server

    def _describe_webhook_address(self) -> Reached:
        """Return how the API server reaches the webhooks, by their Service or on this machine; nothing by default.

        Raises:
            ConfigError: The authority cannot be read.
        """
        options = self._options
        if options.webhook_ca is None:
            return {}
        try:
            bundle = Path(options.webhook_ca).read_bytes()
        except OSError as error:
            raise ConfigError(f"--webhook-ca {options.webhook_ca}: {error.strerror}") from error
        if options.webhook_service:
            service, _, port = options.webhook_service.partition(":")
            if port and not port.isdecimal():
                raise ConfigError(
                    f"--webhook-service must be NAMESPACE/NAME or NAMESPACE/NAME:PORT, not {service}:{port}"
                )
            return {"service": service, "port": int(port or 443), "ca_bundle": bundle}
        host = "[::1]" if self._host == "::1" else "127.0.0.1"
        return {
            "url": f"https://{host}:{options.webhook_port}",
            "ca_bundle": bundle,
        }

    async def _manager(
        self, elector: LeaderElector | None, sharding: Sharding | None, stages: StageTimes | None
    ) -> Manager:
        options = {
            "namespace": self._options.namespace,
            "namespaces": self._options.namespaces or None,
            "leader_election": elector,
            "sharding": sharding,
            "grace_period": self._options.grace_period,
            "on_trace": stages,
            "settings": self._options.settings,
        }
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if self._operator is not None:
            return self._operator.manager(self._client, **given)
        assert self._make is not None
        return await call_factory(self._make, self._client, self._options.target, given)


async def call_factory(
    make: ManagerFactory, client: Client, target: str, given: Mapping[str, Any]
) -> Manager:
    """Return the manager that a user's function makes.

    Args:
        make: The function.
        client: Its argument.
        target: How the command line names it, for messages.
        given: Its other arguments, by their names.

    Raises:
        ConfigError: It fails, lacks a parameter, or returns something else.
    """
    try:
        accepted = inspect.signature(make).parameters
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
            for name in given:
                if name not in accepted:
                    raise ConfigError(
                        f"{target} takes no {name}: add this parameter, or leave out the option that sets it"
                    )
        made: Any = make(client, **given)
        if inspect.isawaitable(made):
            made = await made
    except AioInformerError:
        raise
    except Exception as error:
        raise ConfigError(failure_text(f"{target} made no Manager", error)) from error
    if not isinstance(made, Manager):
        raise ConfigError(f"{target} returned a {type(made).__name__}, not a Manager")
    return made


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None], failure: str) -> AsyncIterator[None]:
    """Do work in a task of its own inside the block. Leaving the block raises its failure with this text."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await finish(task)
        raise_failures(failure, task)


def _state_of_process(webhooks: WebhookServer | None, definitions: Mapping[str, str]) -> ProcessState:
    """Return what this process knows of itself, beside its manager."""
    certificate_problem = "" if webhooks is None else webhooks.certificate_problem
    problems = {CERTIFICATE_INVALID: certificate_problem, LOGS_LOST: _log_problem()}
    return ProcessState(
        problems={reason: problem for reason, problem in problems.items() if problem},
        certificate_expires=None if webhooks is None else webhooks.certificate_expires,
        definitions=definitions,
    )


def _election_problem(manager: Manager) -> str:
    """Return why this process cannot compete for the Lease; ``""`` if it can."""
    error = manager.state.election_error
    return "" if error is None else f"the Lease cannot be acquired or renewed: {message_of(error)}"


def _log_problem() -> str:
    """Return why log lines are lost; ``""`` if they are not."""
    return f"log lines cannot be written and are lost: {LOST_LINES.reason}" if LOST_LINES.is_losing else ""


def _log_samples() -> Iterator[Sample]:
    yield Sample("aioinformer_log_lines_lost_total", "counter", {}, LOST_LINES.count)
