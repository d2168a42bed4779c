"""The options of ``aioinformer manifests``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._core.checks import require_namespace
from ..errors import ConfigError
from .output import convert_write_errors, print_error, write
from .reporting import report_errors


def manifests_command(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:OBJECT", help="An Operator. MODULE alone means MODULE:operator."),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write a kustomization into this folder. Default: print YAML.",
        ),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="The container's image. Default: NAME:latest.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name of the Deployment, roles and others. Default: the operator's."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help="Work in a single namespace, by a Role. Default: in all."),
    ] = None,
    install_namespace: Annotated[
        str | None,
        typer.Option(
            "--install-namespace", help="Where the operator's pods run. Default: --namespace, then NAME."
        ),
    ] = None,
    create_namespace: Annotated[
        bool | None,
        typer.Option(
            "--create-namespace/--no-create-namespace",
            help="Also print the Namespace of the pods. Default: if neither namespace is given.",
        ),
    ] = None,
    replicas: Annotated[
        int, typer.Option("--replicas", min=0, help="Number of pods. With several, one is elected.")
    ] = 1,
    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            "--ca-bundle",
            metavar="FILE",
            help="The authority of the webhooks' certificate, in PEM, if you create the Secret NAME-webhook. Default: "
            "cert-manager creates both.",
        ),
    ] = None,
) -> None:
    """Print what installs an operator: its CustomResourceDefinitions, its rights and its Deployment."""
    from ..operator import Operator  # these need longer than other commands
    from ..operator.manifests import Installation, manifests, to_yaml, write_kustomization
    from ..operator.settings import required_variables
    from .loading import DEFAULT_OBJECT, load

    with report_errors(), convert_write_errors():
        for option, value in (("--namespace", namespace), ("--install-namespace", install_namespace)):
            if value is not None:
                require_namespace(option, value)
        operator = load(target)
        if not isinstance(operator, Operator):
            raise ConfigError(
                f"{target} is a function that returns a Manager, which does not say what rights it needs: declare an "
                "Operator"
            )
        name = operator.name if name is None else name
        installation = Installation(
            target=target if ":" in target else f"{target}:{DEFAULT_OBJECT}",
            name=name,
            image=f"{name}:latest" if image is None else image,
            namespace=install_namespace or "",
            watched=namespace,
            replicas=replicas,
            create_namespace=create_namespace,
            ca_bundle=None if ca_bundle is None else _read(ca_bundle),
        )
        objects = manifests(operator, installation)
        if folder is None:
            write(to_yaml(objects))
        else:
            written = write_kustomization(objects, folder)
            print_error(f"wrote {len(written)} files; install them by: kubectl apply -k {folder}")
        if required := required_variables(operator.name, operator.settings):
            print_error(
                f"the Deployment needs values, in your overlay or by kubectl set env: {', '.join(required)}"
            )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--ca-bundle: {path}: {error.strerror}") from error
