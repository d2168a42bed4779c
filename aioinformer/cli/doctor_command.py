"""The options of ``aioinformer doctor``."""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from .._core.checks import require_namespace
from .._core.texts import valid_text
from ..client.credentials import check_url
from ..errors import ConfigError
from .options import (
    ContextOption,
    Kubeconfig,
    LeaseName,
    LeaseNamespace,
    ServerOption,
    TokenFile,
    Verbose,
    find_target,
    log_more,
    read_token,
    require_lease,
    shards_option,
)
from .output import Screen, convert_write_errors, printable, write
from .reporting import fail, report_errors, usage

if TYPE_CHECKING:
    from ..doctor import Report

COLORS = {"ok": "green", "note": "cyan", "warning": "yellow", "fault": "bold red"}


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"


def doctor_command(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:OBJECT]",
            help="An Operator, or a function of a Client that returns a Manager. Default: check the server alone.",
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("-n", "--namespace", help="The operator works in this namespace alone; repeatable."),
    ] = None,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="The operator runs with --leader-elect.")
    ] = False,
    shards: Annotated[
        int,
        shards_option("The operator runs with --shards and this number."),
    ] = 0,
    lease_name: LeaseName = None,
    lease_namespace: LeaseNamespace = None,
    metrics_auth: Annotated[
        bool, typer.Option("--metrics-auth", help="The operator runs with --metrics-auth.")
    ] = False,
    webhook_configuration: Annotated[
        str | None,
        typer.Option(
            "--webhook-configuration",
            metavar="NAME",
            help="The webhook configurations. Default: the operator's name.",
        ),
    ] = None,
    process: Annotated[
        list[str] | None,
        typer.Option(
            "--process",
            metavar="URL",
            help="The metrics port of a running replica, such as http://127.0.0.1:8080; repeatable.",
        ),
    ] = None,
    token_file: TokenFile = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1.0, max=600.0, help="Seconds for each check.")
    ] = 15.0,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    server: ServerOption = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="The report's format.")] = Form.TABLE,
    verbose: Verbose = False,
) -> None:
    """Check the API server, the way to it, what an operator needs there, and its processes. It changes nothing.

    Exit code: 0 if all is well, 1 for warnings, 2 for faults.
    """
    log_more(verbose)
    if leader_elect and shards:
        raise typer.BadParameter("use either --leader-elect or --shards")
    with usage():
        for name in namespace or ():
            require_namespace("-n", name)
        require_lease(lease_name, lease_namespace)
        for url in process or ():
            check_url(url, "the URL of a metrics port for --process", "http://127.0.0.1:8080")
    api_server = find_target(server, kubeconfig, context)
    from ..doctor import examine
    from ..operator import RunOptions
    from .loading import load

    options = RunOptions(
        target=target or "",
        namespaces=tuple(namespace or ()),
        leader_elect=leader_elect,
        shards=shards,
        lease_name=lease_name or "",
        lease_namespace=lease_namespace,
        metrics_auth=metrics_auth,
        webhook_configuration=webhook_configuration or "",
    )
    with report_errors(), convert_write_errors():
        try:
            operator, token = None if target is None else load(target), read_token(token_file)
        except ConfigError as error:
            fail(str(error), 2)
        report = asyncio.run(
            examine(
                api_server.client(),
                operator,
                options,
                processes=process or (),
                token=token,
                timeout=timeout,
            )
        )
        if output is Form.JSON:
            _print_json(report)
        else:
            _print_table(report)
    raise typer.Exit(report.exit_code)


def _print_json(report: Report) -> None:
    fields = {"level": report.level, **msgspec.to_builtins(report)}
    write(valid_text(json.dumps(fields, ensure_ascii=False, separators=(",", ":"))) + "\n")


def _print_table(report: Report) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "", "finding and what to do", box=None, pad_edge=False, header_style="dim")
    for finding in report.findings:
        text = Text(printable(finding.what))
        if finding.do:
            text.append(f"\n→ {printable(finding.do)}", style="dim")
        table.add_row(finding.check, Text(finding.level, style=COLORS[finding.level]), text)
    screen = Screen()
    screen.print(
        f"{report.server or 'no server'}{f', as {report.user}' if report.user else ''}", highlight=False
    )
    screen.print(table)
