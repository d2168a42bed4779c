"""``aioinformer run``: an Operator or a Manager as a process, with probes, metrics and a debug page."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import finish, raise_failures
from ..client import Client
from ..errors import AioInformerError, ConfigError, said
from ..leaderelection import LeaderElector
from ..operator import Manager, Operator, WebhookServer
from ..operator.definitions import BeingDeletedError, differences, install, keep_installed, register
from ..operator.preflight import (
    Needed,
    in_words,
    missing_rights,
    read_by,
    require_collections,
    require_scopes,
    user_of,
)
from ..operator.rights import ELECT, LEASES, Right
from ..operator.serving import Debug, Serving
from ..operator.webhooks import Reached
from ..operator.webhooks.server import default_drain
from ..tracing import StageTimes
from .loading import Factory, failure

logger = logging.getLogger(__name__)

TRACES = 10_000
"""Newest events from which the latencies of stages are computed."""
LEFT_BEHIND = 1.0
"""Seconds that tasks which the manager left behind may take to end."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and how.

    Attributes:
        target: ``MODULE:OBJECT``.
        namespace: The namespace; None for all.
        leader_elect: Whether to elect a leader.
        lease_namespace: The Lease's namespace; None for the client's.
        metrics_port: As for Serving.
        probe_port: As for Serving.
        host: As for Serving.
        debug_hosts: As for Serving.
        grace_period: As for Manager; None for its default.
        trace: Whether to measure the latency by stage.
        webhook_port: The port of the operator's webhooks; 0 for none.
        tls_cert: The file of the webhooks' certificate.
        tls_key: The file of its private key.
        webhook_ca: The file of the authority of the webhooks' certificate, to register them at the API server by this
            machine's address; None to leave that to you.
        install_crds: Whether to create the operator's CustomResourceDefinitions, first and again when one is deleted.
        force_crds: Whether to replace newer ones, too.
    """

    target: str
    namespace: str | None = None
    leader_elect: bool = False
    lease_namespace: str | None = None
    metrics_port: int = 8080
    probe_port: int = 8080
    host: str | None = None
    debug_hosts: tuple[str, ...] = ()
    grace_period: float | None = None
    trace: bool = False
    webhook_port: int = 9443
    tls_cert: str | None = None
    tls_key: str | None = None
    webhook_ca: str | None = None
    install_crds: bool = False
    force_crds: bool = False


async def run(found: Operator | Factory, asked: Run, client: Client) -> None:
    """Run an operator until a signal arrives.

    Raises:
        AioInformerError: It cannot run.
    """
    drain = _Drain()
    await run_until_signal(
        lambda: _run(found, asked, client, drain),
        f"aioinformer run {asked.target}",
        STOP_SIGNALS,
        drain.begin,
    )
    await _end_the_rest()


class _Drain:
    """Keeps webhooks served for some seconds after the signal, in a pod: the API server learns of its end later."""

    def __init__(self) -> None:
        self._until: float | None = None

    def begin(self) -> None:
        """Record that the signal came."""
        self._until = asyncio.get_running_loop().time() + default_drain()

    async def wait(self) -> None:
        """Wait until the seconds are over, from the signal on. A second signal cuts that short."""
        if self._until is not None:
            await asyncio.sleep(self._until - asyncio.get_running_loop().time())


async def _run(found: Operator | Factory, asked: Run, client: Client, drain: _Drain) -> None:
    # Two programs that are called main must not compete for one Lease.
    name = found.name if isinstance(found, Operator) else asked.target.replace(":", ".")
    _require_certificate(found, asked)
    async with client:
        elector = None
        if asked.leader_elect:
            elector = LeaderElector(
                client, name.lower().replace("_", "-"), asked.lease_namespace or client.namespace
            )
        stages = StageTimes(TRACES) if asked.trace else None
        if isinstance(found, Operator):
            if asked.install_crds:
                await _install(client, found, asked)
            await found.discover(client)
        manager = await _manager(found, asked, client, elector, stages)
        debug = Debug(manager, name, elector=elector, stages=stages)
        serving = Serving(
            debug,
            metrics_port=asked.metrics_port,
            probe_port=asked.probe_port,
            host=asked.host,
            debug_hosts=asked.debug_hosts,
            webhooks=_serves_webhooks(found, asked),
        )
        # First the webhooks: a pod that is ready serves them.
        async with _webhooks(found, asked, manager) or nullcontext(), serving:
            if isinstance(found, Operator) and (reached := _reached(found, asked)):
                await register(client, found, **reached)
            await _check(found, asked, client, manager, elector)
            logger.info("%s runs on %s", name, client.server)
            if asked.host and asked.metrics_port:
                logger.info("the debug page: http://%s:%d/debug", asked.host, asked.metrics_port)
            try:
                async with _keeping_installed(found, asked, client):
                    await manager.run()
            finally:
                if _serves_webhooks(found, asked):
                    await drain.wait()


async def _install(client: Client, found: Operator, asked: Run) -> None:
    try:
        await install(client, found, force=asked.force_crds, **_reached(found, asked))
    except BeingDeletedError as error:
        logger.warning("%s. The operator starts, and installs it again when it is gone", said(error))


@asynccontextmanager
async def _keeping_installed(found: Operator | Factory, asked: Run, client: Client) -> AsyncIterator[None]:
    """Install the operator's CustomResourceDefinitions again when they are deleted, if they are to be installed."""
    if not isinstance(found, Operator) or not asked.install_crds:
        yield
        return
    task = asyncio.create_task(keep_installed(client, found, **_reached(found, asked)))
    try:
        yield
    finally:
        await finish(task)
        raise_failures("the CustomResourceDefinitions are not checked", task)


def _serves_webhooks(found: Operator | Factory, asked: Run) -> TypeGuard[Operator]:
    """Return whether this is an operator with webhooks, and there is a port for them."""
    return isinstance(found, Operator) and found.has_webhooks and asked.webhook_port != 0


def _require_certificate(found: Operator | Factory, asked: Run) -> None:
    """Raise ConfigError, before anything is changed on the server, if webhooks lack a certificate."""
    if _serves_webhooks(found, asked) and (asked.tls_cert is None or asked.tls_key is None):
        raise ConfigError(
            f"{found.name} has webhooks, which the API server calls by TLS: pass --tls-cert and --tls-key (--dev makes "
            "them), or --webhook-port 0 to run without webhooks"
        )


def _webhooks(found: Operator | Factory, asked: Run, manager: Manager) -> WebhookServer | None:
    """Return the server of the operator's webhooks; None if it has none, or no port."""
    if not _serves_webhooks(found, asked):
        return None
    assert asked.tls_cert is not None
    assert asked.tls_key is not None
    return WebhookServer(
        found.webhook_app(manager),
        port=asked.webhook_port,
        cert=asked.tls_cert,
        key=asked.tls_key,
        host=asked.host,
        drain=0.0,  # the seconds count from the signal
    )


def _reached(found: Operator, asked: Run) -> Reached:
    """Return how an API server on this machine reaches the operator's webhooks; nothing if it is not to."""
    if asked.webhook_ca is None or not _serves_webhooks(found, asked):
        return {}
    host = "[::1]" if asked.host == "::1" else "127.0.0.1"
    return {"url": f"https://{host}:{asked.webhook_port}", "ca_bundle": Path(asked.webhook_ca).read_bytes()}


async def _manager(
    found: Operator | Factory,
    asked: Run,
    client: Client,
    elector: LeaderElector | None,
    stages: StageTimes | None,
) -> Manager:
    options = {
        "namespace": asked.namespace,
        "leader_election": elector,
        "grace_period": asked.grace_period,
        "on_trace": stages,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(found, Operator):
        return found.manager(client, **given)  # type: ignore[arg-type]
    try:
        accepted = inspect.signature(found).parameters
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in accepted.values()):
            for name in given:
                if name not in accepted:
                    raise ConfigError(
                        f"{asked.target} takes no {name}: add this parameter, or leave out the option that sets it"
                    )
        made: Any = found(client, **given)
        if inspect.isawaitable(made):
            made = await made
    except AioInformerError:
        raise
    except Exception as error:
        raise ConfigError(failure(f"{asked.target} made no Manager", error)) from error
    if not isinstance(made, Manager):
        raise ConfigError(f"{asked.target} returned a {type(made).__name__}, not a Manager")
    return made


async def _check(
    found: Operator | Factory, asked: Run, client: Client, manager: Manager, elector: LeaderElector | None
) -> None:
    """Check that the server has what the operator reads, and permits what it does.

    Raises:
        ConfigError: It does not.
    """
    try:
        advice = (
            f"Install it: pass --install-crds, or apply what aioinformer manifests {asked.target} prints; --dev "
            "needs no cluster"
            if isinstance(found, Operator)
            else "Install its CustomResourceDefinition"
        )
        await require_collections(client, manager, advice)
        if isinstance(found, Operator) and asked.namespace:
            require_scopes(client, found.resources)
        if isinstance(found, Operator) and not asked.install_crds:
            for difference in await differences(client, found):
                logger.warning(
                    "%s. If the class is newer, install its definition: aioinformer manifests %s prints it. If the "
                    "server's is newer, run the newer operator",
                    difference,
                    asked.target,
                )
        missing = await missing_rights(client, _needed(found, asked, client, manager, elector))
    except ConfigError:
        raise
    except AioInformerError as error:
        logger.warning("the rights were not checked, and the operator starts anyway: %s", said(error))
        return
    if not missing:
        return
    rights = f"{await user_of(client)} may not {in_words(missing)}"
    grant = (
        f"Grant it: aioinformer manifests {asked.target}{' --replicas 2' if elector else ''} prints the rules"
        if isinstance(found, Operator)
        else "Grant it by a Role or ClusterRole"
    )
    if any({"list", "watch"} & set(each.right.verbs) for each in missing):
        elsewhere = "" if asked.namespace else ", or pass --namespace to work in a single one"
        raise ConfigError(f"{rights}. {grant}{elsewhere}")
    logger.warning("%s; the operator starts anyway. %s", rights, grant)


def _needed(
    found: Operator | Factory, asked: Run, client: Client, manager: Manager, elector: LeaderElector | None
) -> Iterator[Needed]:
    if not isinstance(found, Operator):
        yield from read_by(manager)
        return
    for right in found.rights(leader_election=False):
        yield Needed(right, (asked.namespace or "") if right.namespaced else "")
    if elector is not None:
        yield Needed(Right.of(LEASES, ELECT), asked.lease_namespace or client.namespace, found.name)


async def _end_the_rest() -> None:
    """Cancel the tasks that still run, and end the process if some ignore it, which asyncio would wait for."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    await finish(*rest, grace=LEFT_BEHIND)
    if running := [task for task in rest if not task.done()]:
        names = ", ".join(sorted(task.get_name() for task in running))
        logger.error("the process ends, although these tasks ignore their cancellation: %s", names)
        os._exit(1)
