"""Commands and their options. What they do is in ``watching``, ``demo`` and ``bench``."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from .. import __version__
from .._core.checks import require_namespace
from ..client import health
from ..errors import AioInformerError, ConfigError
from . import NO_REPORT, UNFINISHED
from .discovery import check_name
from .output import LogLines, OutputError, interrupt_writes, print_anything, printing, tell
from .target import Target
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


Kubeconfig = Annotated[
    str | None, typer.Option("--kubeconfig", metavar="PATH", help="Default: $KUBECONFIG, ~/.kube/config.")
]
Context = Annotated[str | None, typer.Option("--context", help="Of the kubeconfig.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log what the informer does.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    verbose: Verbose = False,
) -> None:
    print_anything()
    with _failing(), printing():
        if version:
            print(__version__, flush=True)  # noqa: T201
            raise typer.Exit
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", handlers=[LogLines()]
    )
    # What it says at INFO is that the server is there again: the end of what a warning began.
    logging.getLogger(health.__name__).setLevel(logging.INFO)
    _log_more(verbose)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.getLogger("kubernetes_asyncio").setLevel(logging.ERROR)  # its warnings come again as our errors


def _log_more(verbose: bool) -> None:
    if verbose:  # before the command or after it
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger(health.__name__).setLevel(logging.NOTSET)


@app.command()
def watch(
    resource: Annotated[str, typer.Argument(help="pods, deploy, deployments.apps, caves.example.com …")],
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="The context's, else default.")
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces")] = False,
    label_selector: Annotated[
        str | None, typer.Option("-l", "--selector", help="Such as app=web,tier!=db.")
    ] = None,
    field_selector: Annotated[
        str | None, typer.Option("--field-selector", help="Such as status.phase=Running.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    server: Annotated[str | None, typer.Option("--server", help="A URL, without any configuration.")] = None,
    output: Annotated[Output, typer.Option("-o", "--output")] = Output.TABLE,
    full: Annotated[bool, typer.Option("--full", help="With -o jsonl: the object in each line.")] = False,
    until_synced: Annotated[
        bool, typer.Option("--until-synced", help="Exit once the whole list is printed.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.0, help="With --until-synced: seconds to wait for it.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Print a collection, then every change to it, until Ctrl-C."""
    _log_more(verbose)
    if namespace is not None and all_namespaces:
        raise typer.BadParameter("-n and -A exclude each other")
    if full and output is not Output.JSONL:
        raise typer.BadParameter("--full goes with -o jsonl")
    if timeout is not None and not until_synced:
        raise typer.BadParameter("--timeout goes with --until-synced")
    with _usage():
        check_name(resource)
        if namespace:
            require_namespace("-n", namespace)
    target = _target(server, kubeconfig, context)
    asked = Watching(
        resource=resource,
        namespace=namespace,
        all_namespaces=all_namespaces,
        label_selector=label_selector,
        field_selector=field_selector,
        output=output.value,
        full=full,
        until_synced=until_synced,
        timeout=timeout,
    )
    _run(watch_resource(target.client(), asked), unfinished=UNFINISHED if until_synced else "")


@app.command()
def demo(
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1.0, help="End by itself, with a summary.")
    ] = None,
    objects: Annotated[int, typer.Option("--objects", min=1, max=100_000, help="Pods to begin with.")] = 300,
    seed: Annotated[int, typer.Option("--seed", help="Of the workload and its troubles.")] = 0,
    verbose: Verbose = False,
) -> None:
    """Run an informer against an embedded API server that is full of life and trouble."""
    _log_more(verbose)
    try:
        from .demo import run_demo
    except ModuleNotFoundError as error:
        _fail(f"the demo needs {error.name}: pip install 'aioinformer[cli]'")
    _run(run_demo(seconds, objects, seed))


@app.command()
def bench(
    server: Annotated[
        str | None,
        typer.Option("--server", help="A URL, such as kubectl proxy's. ConfigMaps are made there."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="An embedded API server, as without any of the above.")
    ] = False,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Where.")] = "default",
    objects: Annotated[int, typer.Option("--objects", min=1, max=100_000, help="How many.")] = 1000,
    rate: Annotated[float, typer.Option("--rate", min=1.0, max=100_000.0, help="Changes a second.")] = 300.0,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="For how long.")] = 10.0,
    loop: Annotated[Loop, typer.Option("--loop", help="What the informer runs on.")] = Loop.ASYNCIO,
    protobuf: Annotated[
        bool, typer.Option("--protobuf", help="Read protobuf, as informers may of built-in kinds.")
    ] = False,
    output: Annotated[Form, typer.Option("-o", "--output")] = Form.TABLE,
    verbose: Verbose = False,
) -> None:
    """Measure how long changes take to reach a handler, and where on their way they are."""
    _log_more(verbose)
    elsewhere = any(each is not None for each in (server, kubeconfig, context))
    if elsewhere and embedded:
        raise typer.BadParameter("--embedded goes without --server, --kubeconfig and --context")
    with _usage():
        require_namespace("-n", namespace)
    target = _target(server, kubeconfig, context) if elsewhere else None
    try:
        from .bench import Benchmark, run_benchmark
    except ModuleNotFoundError as error:
        _fail(f"the benchmark needs {error.name}: pip install 'aioinformer[cli]'")
    loop_factory = _loop_factory(loop)
    benchmark = Benchmark(
        target, namespace, objects, rate, seconds, loop.value, protobuf, output is Form.JSON
    )
    _run(run_benchmark(benchmark), loop_factory, unfinished=NO_REPORT)


def _target(server: str | None, kubeconfig: str | None, context: str | None) -> Target:
    if server is not None and (kubeconfig is not None or context is not None):
        raise typer.BadParameter("--server goes without --kubeconfig and --context")
    with _usage():
        return Target(server, kubeconfig or None, context or None)  # empty as for kubectl


@contextmanager
def _usage() -> Iterator[None]:
    """Around what looks at arguments: those that cannot work are bad usage."""
    try:
        yield
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


def _loop_factory(loop: Loop) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if loop is Loop.ASYNCIO:
        return None
    try:
        import uvloop
    except ModuleNotFoundError:
        _fail("there is no uvloop here")
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _run(
    work: Coroutine[Any, Any, None],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    unfinished: str = "",
) -> None:
    """Run to the end, or to Ctrl-C or SIGTERM, which are ordinary ends. A second one ends at once what is held.

    Args:
        work: What runs.
        loop_factory: Makes the event loop.
        unfinished: What to say of these where they are no ordinary ends.
    """
    told: int | None = None
    told_at = 0.0
    is_done = is_held = False

    async def until_told() -> None:
        nonlocal is_done
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int, frame: FrameType | None) -> None:
            nonlocal told, told_at, is_held
            if not is_held and not task.done():
                told, told_at, is_held = number, time.monotonic(), True
                loop.call_soon_threadsafe(heed)
                interrupt_writes()
            elif not is_done and time.monotonic() - told_at >= 1.0:  # sooner it is the same interruption
                os._exit(128 + number)  # a full pipe, or a thread, would hold an orderly end, too

        def heed() -> None:
            nonlocal is_held
            is_held = False
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, end)  # a loop's own handler would wait for what blocks the loop
        await work
        is_done = True

    with _failing(), closing(work):
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(until_told())
        except (asyncio.CancelledError, OutputError):
            if told is None:
                raise
            if unfinished:
                _fail(unfinished, 128 + told)


@contextmanager
def _failing() -> Iterator[None]:
    """Around what ends with a line on why it cannot go on."""
    try:
        yield
    except AioInformerError as error:
        if not (isinstance(error, OutputError) and error.is_closed):
            _fail(str(error))


def _fail(reason: str, code: int = 1) -> NoReturn:
    line = " ".join(reason.split())
    tell(f"aioinformer: {line}")
    raise typer.Exit(code)
