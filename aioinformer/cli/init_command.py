"""The options of ``aioinformer init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .output import convert_write_errors, write
from .reporting import report_errors


def init_command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of the operator and its folder, such as websites."),
    ],
    group: Annotated[
        str, typer.Option("--group", help="The API group of its custom resource: your own domain.")
    ] = "example.com",
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="The kind of its custom resource. Default: from NAME, as Website from websites."
        ),
    ] = None,
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Declare admission webhooks, and test them.")
    ] = False,
    helm: Annotated[
        bool, typer.Option("--helm", help="Make a chart for helm, too, and publish it with each release.")
    ] = False,
    pydantic: Annotated[
        bool, typer.Option("--pydantic", help="Write spec and status as pydantic models. Default: Structs.")
    ] = False,
) -> None:
    """Write a new operator's project: code, tests, Containerfile, Makefile, and workflows for CI and releases."""
    from .new_project import NewProject, find_origin  # needs longer than other commands

    with report_errors(), convert_write_errors():
        project = NewProject(
            name=name, group=group, kind=kind or "", webhooks=webhooks, helm=helm, pydantic=pydantic
        )
        project.write(Path(name))
        source = find_origin()
        wheel = f"  pip wheel --no-deps -w wheels {shlex.quote(source)}   # unless your package index has aioinformer\n"
        write(
            f"{name}/ has an operator of the kind {project.kind} ({group}/v1). Next:\n"
            f"  cd {name}\n{wheel if source else ''}"
            "  make test   # on an embedded API server\n"
            "  make run    # the operator on an embedded API server; prints a kubeconfig for kubectl\n"
        )
