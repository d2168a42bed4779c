"""The options of ``aioinformer migrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..client import Client
from ..errors import ConfigError
from .interruption import run_interruptible
from .messages import MIGRATION_UNFINISHED
from .options import ContextOption, Kubeconfig, ServerOption, Verbose, find_target, log_more
from .output import convert_write_errors, write
from .progress import Progress
from .reporting import report_errors

if TYPE_CHECKING:
    from ..operator.migration import Outcome


def migrate_command(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:OBJECT]", help="An Operator, for the definitions of all its classes."
        ),
    ] = None,
    definition: Annotated[
        list[str] | None,
        typer.Option(
            "--definition",
            metavar="NAME",
            help="A CustomResourceDefinition, such as websites.example.com; repeatable.",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, max=10_000.0, help="Objects per second, at most.")
    ] = 50.0,
    settle: Annotated[
        float,
        typer.Option(
            "--settle",
            min=0.0,
            max=3600.0,
            help="Seconds to wait first, until all API servers know the storage version.",
        ),
    ] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check whether the server would accept each object.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: ContextOption = None,
    server: ServerOption = None,
    verbose: Verbose = False,
) -> None:
    """Store all objects of custom resources in their storage version, and clean storedVersions."""
    log_more(verbose)
    if target is None and not definition:
        raise typer.BadParameter("pass MODULE:OBJECT or --definition")
    client = find_target(server, kubeconfig, context).client()
    with report_errors():
        names = [*dict.fromkeys([*(definition or ()), *(_names_of(target) if target else ())])]
    run_interruptible(
        _migrate(client, names, rate=rate, settle=settle, dry_run=dry_run), unfinished=MIGRATION_UNFINISHED
    )


def _names_of(target: str) -> list[str]:
    from ..operator import Operator
    from ..typed import crd
    from .loading import load

    operator = load(target)
    if not isinstance(operator, Operator):
        raise ConfigError(f"{target} is a function that returns a Manager: pass --definition instead")
    if not (kinds := operator.custom_resources()):
        raise ConfigError(
            f"{target} has no CustomResource classes of its own, so there is nothing to migrate: name a "
            "definition that others install by --definition, such as --definition websites.example.com"
        )
    return [str(crd(*versions)["metadata"]["name"]) for versions in kinds]


async def _migrate(client: Client, names: list[str], *, rate: float, settle: float, dry_run: bool) -> None:
    from ..operator.migration import Migration  # needs longer than other commands

    async with client:
        for name in names:
            migration = Migration(client, name, rate=rate, settle=settle, dry_run=dry_run)
            progress = Progress()
            try:
                outcome = await progress.show_during(migration.run(), lambda shown=migration: shown)  # type: ignore[misc]
            finally:
                progress.end()
            with convert_write_errors():
                write(f"{_render(outcome, dry_run=dry_run)}\n")


def _render(outcome: Outcome, *, dry_run: bool) -> str:
    name, storage, before = outcome.name, outcome.storage, ", ".join(outcome.before)
    if outcome.before == (storage,):
        return f"{name}: nothing to do: storedVersions is {storage} alone"
    if dry_run:
        return f"{name}: the server would accept all {outcome.objects:,} objects as {storage}; nothing was stored"
    return (
        f"{name}: all {outcome.objects:,} objects are stored as {storage}, {outcome.rewritten:,} of them rewritten "
        f"now; storedVersions: {before} -> {storage}"
    )
