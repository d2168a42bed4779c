"""The options of ``aioinformer run``."""

from __future__ import annotations

import asyncio
import logging
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._core.checks import require_namespace
from .._core.tasks import finish
from ..client import Client
from .logs import set_up
from .options import (
    ContextOption,
    Kubeconfig,
    LeaseName,
    LeaseNamespace,
    ServerOption,
    Verbose,
    find_target,
    require_lease,
    shards_option,
)
from .parent import OPTION as END_WITH_STDIN
from .parent import end_with_stdin
from .reporting import fail, report_errors, usage, uvloop_factory
from .sources import OPTION as REPORT_SOURCES
from .sources import report_sources

if TYPE_CHECKING:
    from ..operator import Operator, RunOptions
    from ..operator.protocols import ManagerFactory

logger = logging.getLogger(__name__)

LEFT_BEHIND = 1.0
"""Seconds that tasks which the manager left behind may take to end."""


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def run_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:OBJECT",
            help="An Operator, or a function of a Client that returns a Manager. MODULE alone means MODULE:operator.",
        ),
    ],
    namespace: Annotated[
        list[str] | None,
        typer.Option("-n", "--namespace", help="Work in this namespace alone; repeatable. Default: in all."),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Work in all namespaces, the default.")
    ] = False,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Of several replicas, only one reconciles.")
    ] = False,
    shards: Annotated[
        int,
        shards_option(
            "Replicas share the objects: the number of slots, the same for all, such as 64. See docs/replicas.md."
        ),
    ] = 0,
    lease_name: LeaseName = None,
    lease_namespace: LeaseNamespace = None,
    metrics_port: Annotated[
        int,
        typer.Option("--metrics-port", min=0, max=65535, help="For /metrics and /debug; 0 for none."),
    ] = 8080,
    metrics_auth: Annotated[
        bool,
        typer.Option(
            "--metrics-auth",
            help="Ask for a token whose user may get /metrics and /debug.json in the cluster.",
        ),
    ] = False,
    probe_port: Annotated[
        int,
        typer.Option("--probe-port", min=0, max=65535, help="For /healthz and /readyz; 0 for none."),
    ] = 8080,
    webhook_port: Annotated[
        int,
        typer.Option(
            "--webhook-port", min=0, max=65535, help="For the operator's webhooks, if it has any; 0 for none."
        ),
    ] = 9443,
    tls_cert: Annotated[
        str | None,
        typer.Option("--tls-cert", help="The webhooks' certificate in PEM; read again when it changes."),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", help="The certificate's private key in PEM.")
    ] = None,
    webhook_ca: Annotated[
        str | None,
        typer.Option(
            "--webhook-ca", help="The authority of that certificate in PEM, to register the webhooks."
        ),
    ] = None,
    webhook_service: Annotated[
        str | None,
        typer.Option(
            "--webhook-service",
            metavar="NAMESPACE/NAME[:PORT]",
            help="The webhooks' Service: the leader registers them there once it serves them. Needs --webhook-ca.",
        ),
    ] = None,
    webhook_configuration: Annotated[
        str | None,
        typer.Option(
            "--webhook-configuration",
            metavar="NAME",
            help="The existing webhook configurations in which to register them. Default: the operator's name.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="The address to listen on. Default: 127.0.0.1; in a pod, all addresses."),
    ] = None,
    debug_host: Annotated[
        list[str] | None,
        typer.Option(
            "--debug-host",
            help="A name at which /debug answers, beside IP addresses and localhost; repeatable.",
        ),
    ] = None,
    grace_period: Annotated[
        float | None,
        typer.Option("--grace-period", min=0.0, help="Seconds for running reconciles to end. Default: 20."),
    ] = None,
    uvloop: Annotated[bool, typer.Option("--uvloop", help="Use uvloop's event loop.")] = False,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="The format of the log.")
    ] = LogFormat.TEXT,
    trace: Annotated[bool, typer.Option("--trace", help="Measure the latency by stage, for /debug.")] = False,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    server: ServerOption = None,
    install_crds: Annotated[
        bool,
        typer.Option(
            "--install-crds",
            help="Create or update the CustomResourceDefinitions, unless the server's are newer.",
        ),
    ] = False,
    force_crds: Annotated[
        bool,
        typer.Option(
            "--force-crds", help="As --install-crds, and replace newer ones: their fields are lost."
        ),
    ] = False,
    dev: Annotated[
        bool,
        typer.Option("--dev", help="Run on an embedded API server, and restart when the source changes."),
    ] = False,
    verbose: Verbose = False,
    until_stdin_ends: Annotated[bool, typer.Option(END_WITH_STDIN, hidden=True)] = False,
    sources: Annotated[Path | None, typer.Option(REPORT_SOURCES, hidden=True)] = None,  # of --dev
) -> None:
    """Run an operator until SIGTERM or Ctrl-C; a second signal cancels running reconciles.

    In a pod it uses the service account, elsewhere the kubeconfig.
    """
    set_up(is_json=log_format is LogFormat.JSON, level=logging.DEBUG if verbose else logging.INFO)
    if until_stdin_ends:  # --dev: its operator also logs every reconcile
        end_with_stdin()
        logging.getLogger("aioinformer.operator.workers").setLevel(logging.DEBUG)
    if namespace and all_namespaces:
        raise typer.BadParameter("use either -n or -A")
    if leader_elect and shards:
        raise typer.BadParameter(
            "use either --leader-elect or --shards: all replicas of a sharding reconcile"
        )
    elsewhere = any(option is not None for option in (server, kubeconfig, context))
    if dev and elsewhere:
        raise typer.BadParameter(
            "--dev has a server of its own: leave out --server, --kubeconfig and --context"
        )
    if dev and (tls_cert or tls_key):
        raise typer.BadParameter("--dev makes a certificate of its own: leave out --tls-cert and --tls-key")
    with usage():
        for name in namespace or ():
            require_namespace("-n", name)
        require_lease(lease_name, lease_namespace)
    from ..operator import RunOptions  # this needs half as long again as the other commands

    options = RunOptions(
        target=target,
        namespace=namespace[0] if namespace and len(namespace) == 1 else None,
        namespaces=tuple(namespace) if namespace and len(namespace) > 1 else (),
        leader_elect=leader_elect,
        shards=shards,
        lease_name=lease_name or "",
        lease_namespace=lease_namespace,
        metrics_port=metrics_port,
        metrics_auth=metrics_auth,
        probe_port=probe_port,
        webhook_port=webhook_port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        webhook_ca=webhook_ca,
        webhook_service=webhook_service,
        webhook_configuration=webhook_configuration or "",
        host=host,
        debug_hosts=tuple(debug_host or ()),
        grace_period=grace_period,
        trace=trace,
        install_crds=install_crds,
        force_crds=force_crds,
    )
    loop_factory = uvloop_factory("--uvloop") if uvloop else None
    with report_errors():
        if dev:
            _run_dev(options, uvloop=uvloop, log_format=log_format, verbose=verbose)
            return
        client = find_target(server, kubeconfig, context).client() if elsewhere else Client.from_environment()
        loaded = _load(target, sources)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_run(loaded, client, options))


async def _run(loaded: Operator | ManagerFactory, client: Client, options: RunOptions) -> None:
    from ..operator import run

    await run(loaded, client, options)
    await _end_the_rest()


async def _end_the_rest() -> None:
    """Cancel the tasks that still run, and end the process if some ignore it, which asyncio would wait for."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    await finish(*rest, grace=LEFT_BEHIND)
    if running := [task for task in rest if not task.done()]:
        names = ", ".join(sorted(task.get_name() for task in running))
        logger.error("the process ends, although these tasks ignore their cancellation: %s", names)
        os._exit(1)


def _load(target: str, sources: Path | None) -> Operator | ManagerFactory:
    """Load the operator; for ``--dev``, report the project's files, also if that fails."""
    from .loading import load

    is_loaded = False
    try:
        loaded = load(target)
        is_loaded = True
    finally:
        if sources is not None:
            report_sources(sources, is_loaded=is_loaded)
    return loaded


def _run_dev(options: RunOptions, *, uvloop: bool, log_format: LogFormat, verbose: bool) -> None:
    try:
        from .dev import run_dev
    except ModuleNotFoundError as error:
        fail(f"--dev needs {error.name}: pip install 'aioinformer[testing]'")
    arguments = [
        f"--metrics-port={options.metrics_port}",
        f"--probe-port={options.probe_port}",
        f"--webhook-port={options.webhook_port}",
        f"--log-format={log_format.value}",
        *(f"--namespace={name}" for name in options.watched),
        *([f"--lease-name={options.lease_name}"] if options.lease_name else []),
        *([f"--lease-namespace={options.lease_namespace}"] if options.lease_namespace else []),
        *([f"--host={options.host}"] if options.host else []),
        *(f"--debug-host={name}" for name in options.debug_hosts),
        *([f"--grace-period={options.grace_period}"] if options.grace_period is not None else []),
        *(["--leader-elect"] if options.leader_elect else []),
        *(["--metrics-auth"] if options.metrics_auth else []),
        *([f"--shards={options.shards}"] if options.shards else []),
        *(["--trace"] if options.trace else []),
        *(["--uvloop"] if uvloop else []),
        *(["--verbose"] if verbose else []),
    ]
    asyncio.run(run_dev(options.target, arguments))
