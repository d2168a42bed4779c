"""The commands and their options. ``watching``, ``demo`` and ``bench`` implement them."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from .._core.checks import require_namespace
from ..client import health
from ..client.discovery import check_name
from .doctor_command import doctor_command
from .init_command import init_command
from .interruption import run_interruptible
from .manifests_command import manifests_command
from .messages import LIST_UNFINISHED, NO_REPORT
from .migrate_command import migrate_command
from .options import ContextOption, Kubeconfig, ServerOption, Verbose, find_target, log_more
from .output import LogLines, convert_write_errors, replace_unencodable
from .reporting import report_errors, usage, uvloop_factory
from .run_command import run_command
from .top_command import top_command
from .watching import Watching, watch_resource

app = typer.Typer(
    help="Kubernetes informers for asyncio.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSONL = "jsonl"


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"


class Loop(StrEnum):
    ASYNCIO = "asyncio"
    UVLOOP = "uvloop"


app.command("init")(init_command)
app.command("run")(run_command)
app.command("manifests")(manifests_command)
app.command("doctor")(doctor_command)
app.command("migrate")(migrate_command)
app.command("top")(top_command)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    verbose: Verbose = False,
) -> None:
    replace_unencodable()
    with report_errors(), convert_write_errors():
        if version:
            print(__version__, flush=True)  # noqa: T201
            raise typer.Exit
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", handlers=[LogLines()]
    )
    # Its INFO line says that the server is reachable again, after a warning that it was not.
    logging.getLogger(health.__name__).setLevel(logging.INFO)
    log_more(verbose)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.getLogger("kubernetes_asyncio").setLevel(
        logging.ERROR
    )  # we report its warnings as errors ourselves


@app.command()
def watch(
    resource: Annotated[
        str, typer.Argument(help="For example pods, deploy, deployments.apps, caves.example.com.")
    ],
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help="Default: the context's namespace, then 'default'."),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Watch all namespaces.")
    ] = False,
    label_selector: Annotated[
        str | None, typer.Option("-l", "--selector", help="A label selector, such as app=web,tier!=db.")
    ] = None,
    field_selector: Annotated[
        str | None, typer.Option("--field-selector", help="A field selector, such as status.phase=Running.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    server: ServerOption = None,
    output: Annotated[
        Output, typer.Option("-o", "--output", help="The format of the events.")
    ] = Output.TABLE,
    full: Annotated[bool, typer.Option("--full", help="With -o jsonl: add the object to each line.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print which fields a change changed, with -o jsonl in each line.")
    ] = False,
    until_synced: Annotated[
        bool, typer.Option("--until-synced", help="Exit when the whole list is printed.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.0,
            help="With --until-synced: seconds to wait, also for the server.",
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Print all objects of a resource, then every change, until Ctrl-C."""
    log_more(verbose)
    if namespace is not None and all_namespaces:
        raise typer.BadParameter("use either -n or -A")
    if full and output is not Output.JSONL:
        raise typer.BadParameter("--full needs -o jsonl")
    if timeout is not None and not until_synced:
        raise typer.BadParameter("--timeout needs --until-synced")
    with usage():
        check_name(resource)
        if namespace:
            require_namespace("-n", namespace)
    target = find_target(server, kubeconfig, context)
    asked = Watching(
        resource=resource,
        namespace=namespace,
        all_namespaces=all_namespaces,
        label_selector=label_selector,
        field_selector=field_selector,
        output=output.value,
        full=full,
        diff=diff,
        until_synced=until_synced,
        timeout=timeout,
    )
    run_interruptible(
        watch_resource(target.client(), asked), unfinished=LIST_UNFINISHED if until_synced else ""
    )


@app.command()
def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            min=1.0,
            help="Stop after this time and print a summary.",
        ),
    ] = None,
    objects: Annotated[
        int, typer.Option("--objects", min=1, max=100_000, help="How many pods to start with.")
    ] = 300,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the workload and its faults.")] = 0,
    verbose: Verbose = False,
) -> None:
    """Run an informer against a busy embedded API server that injects faults."""
    log_more(verbose)
    from .demo import run_demo

    run_interruptible(run_demo(seconds, objects, seed))


@app.command()
def bench(
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            help="The server's URL, such as kubectl proxy's. Creates ConfigMaps there.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    embedded: Annotated[
        bool,
        typer.Option(
            "--embedded", help="Use an embedded API server. Default without any of the options above."
        ),
    ] = False,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="The ConfigMaps' namespace.")
    ] = "default",
    objects: Annotated[
        int, typer.Option("--objects", min=1, max=100_000, help="How many ConfigMaps.")
    ] = 1000,
    rate: Annotated[
        float, typer.Option("--rate", min=1.0, max=100_000.0, help="Changes per second.")
    ] = 300.0,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="Duration of the measurement.")] = 10.0,
    loop: Annotated[Loop, typer.Option("--loop", help="The event loop of the informer.")] = Loop.ASYNCIO,
    protobuf: Annotated[bool, typer.Option("--protobuf", help="Read protobuf instead of JSON.")] = False,
    output: Annotated[Form, typer.Option("-o", "--output", help="The report's format.")] = Form.TABLE,
    verbose: Verbose = False,
) -> None:
    """Measure how long changes take to reach a handler, and how long each stage takes."""
    log_more(verbose)
    elsewhere = any(option is not None for option in (server, kubeconfig, context))
    if elsewhere and embedded:
        raise typer.BadParameter("use either --embedded or --server, --kubeconfig and --context")
    with usage():
        require_namespace("-n", namespace)
    target = find_target(server, kubeconfig, context) if elsewhere else None
    from .bench import Benchmark, run_benchmark

    loop_factory = uvloop_factory("--loop uvloop") if loop is Loop.UVLOOP else None
    benchmark = Benchmark(
        target, namespace, objects, rate, seconds, loop.value, protobuf, output is Form.JSON
    )
    run_interruptible(run_benchmark(benchmark), loop_factory, unfinished=NO_REPORT)


@app.command()
def serve(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="Run this with $KUBECONFIG, and end with it."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port on 127.0.0.1; 0 for a free one.")
    ] = 0,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="PATH", help="Where to write it. Default: a path that stays the same."
        ),
    ] = None,
    load: Annotated[
        list[Path] | None,
        typer.Option(
            "--load", metavar="PATH", help="Apply the manifests of a file or folder, or load a saved state."
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Save the state when the server ends.")
    ] = None,
    workloads: Annotated[
        bool, typer.Option("--workloads", help="Deployments make pods, and pods become ready.")
    ] = False,
    rbac: Annotated[bool, typer.Option("--rbac", help="Enforce Roles and ClusterRoles.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Serve https.")] = False,
    webhooks: Annotated[
        bool,
        typer.Option("--webhooks/--no-webhooks", help="Call the admission webhooks that objects configure."),
    ] = True,
    token: Annotated[
        str | None,
        typer.Option("--token", help="The administrator's. Default: none; random with --tls or --rbac."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="FAULT",
            help="Inject a fault, such as '500?times=3&verb=list' or 'delay?seconds=1'. "
            "While the server runs: POST /faults/FAULT.",
        ),
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option("--audit", metavar="FILE", help="Write each request as a line of JSON; - for here."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Serve an embedded API server for tests in any language, until Ctrl-C."""
    log_more(verbose)
    from .serve import ServeOptions, run_serve

    options = ServeOptions(
        port=port,
        kubeconfig=kubeconfig,
        load=load or (),
        save=save,
        faults=fault or (),
        audit=audit,
        token=token,
        tls=tls,
        rbac=rbac,
        workloads=workloads,
        webhooks=webhooks,
        command=command or (),
    )
    run_interruptible(run_serve(options))
