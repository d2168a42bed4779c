"""The options of ``aioinformer top``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .options import ContextOption, Kubeconfig, ServerOption, TokenFile, find_target, read_token
from .output import convert_write_errors, printable, write
from .reporting import report_errors

if TYPE_CHECKING:
    from ..operator.debug_page import Read

LOCAL = "http://127.0.0.1:8080"
"""The metrics port of ``aioinformer run`` on this machine."""


def top_command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL | RESOURCE...]",
            help=f"The metrics port of a running operator, or resources to start informers of. Default: {LOCAL}.",
        ),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="Of the informers. Default: all namespaces.")
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two looks.")] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print the tables once, after two looks, as text.")
    ] = False,
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    server: ServerOption = None,
) -> None:
    """Show what an operator, or informers started here, are doing: rates, backlogs, slow handlers, failing keys."""
    from ..operator.debug_page import reading_debug_page
    from .top.informer_source import informer_source

    named = targets or [LOCAL]
    is_url = named[0].startswith(("http://", "https://"))
    if is_url and len(named) > 1:
        raise typer.BadParameter("pass one URL, or resources")
    with report_errors(), convert_write_errors():
        source: AbstractAsyncContextManager[Read]
        if is_url:
            source = reading_debug_page(named[0], read_token(token_file))
        else:
            client = find_target(server, kubeconfig, context).client()
            source = informer_source(client, named, namespace)
        if once or not sys.stdout.isatty():
            write(asyncio.run(_look_twice(source, every)) + "\n")
        else:
            asyncio.run(_show(source, every))


async def _look_twice(source: AbstractAsyncContextManager[Read], every: float) -> str:
    from .top.table import text_of
    from .top.tables import Reading, show

    async with source as read:
        now = asyncio.get_running_loop().time
        before = Reading(now(), await read())
        await asyncio.sleep(every)
        after = Reading(now(), await read())
    headline, tables = show(before, after)
    return f"{printable(headline)}\n\n{text_of(tables)}"


async def _show(source: AbstractAsyncContextManager[Read], every: float) -> None:
    try:
        from .top.screen import Top
    except ModuleNotFoundError as error:
        raise ConfigError(
            "the live screen needs textual: pip install 'aioinformer[top]', or pass --once"
        ) from error
    async with source as read:
        await Top(read, every).run_async()
