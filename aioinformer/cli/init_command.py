"""The options of ``aioinformer init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .output import printing, write
from .reporting import reporting_errors


def init_command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The operator's name, such as websites; the new folder's, too."),
    ],
    group: Annotated[
        str, typer.Option("--group", help="The API group of its custom resource: a domain of yours.")
    ] = "example.com",
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="The kind of its custom resource. Default: of NAME, Website of websites."
        ),
    ] = None,
) -> None:
    """Write a new operator's project: code, tests, image and manifests that work at once."""
    from .new_project import NewProject, installed_from  # needs longer than other commands

    with reporting_errors(), printing():
        project = NewProject(name=name, group=group, kind=kind or "")
        project.write(Path(name))
        source = installed_from()
        wheel = f"  pip wheel --no-deps -w wheels {shlex.quote(source)}   # unless your package index has aioinformer\n"
        write(
            f"{name}/ has an operator of the kind {project.kind} ({group}/v1). Next:\n"
            f"  cd {name}\n{wheel if source else ''}"
            "  make test   # on an embedded API server\n"
            "  make run    # on another one, with a kubeconfig for kubectl\n"
        )
