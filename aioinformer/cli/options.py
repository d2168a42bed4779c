"""Options that several commands have."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from .._core.checks import require_namespace, require_object_name
from ..client import health
from ..errors import ConfigError
from .reporting import usage
from .target import Target

Kubeconfig = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="PATH", help="Default: $KUBECONFIG, then ~/.kube/config."),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", help="The kubeconfig's context. Default: the current one.")
]
ServerOption = Annotated[
    str | None, typer.Option("--server", help="The server's URL; no kubeconfig is read.")
]
LeaseName = Annotated[
    str | None,
    typer.Option(
        "--lease-name", metavar="NAME", help="The name of its Lease or Leases. Default: the operator's."
    ),
]
LeaseNamespace = Annotated[
    str | None,
    typer.Option("--lease-namespace", help="The Lease's namespace. Default: the pod's, or the context's."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A token for an operator with --metrics-auth."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log debug messages.")]


def shards_option(text: str) -> Any:
    """Return the option for the number of slots that replicas share, with this help."""
    return typer.Option("--shards", min=0, max=1024, help=text)


def require_lease(name: str | None, namespace: str | None) -> None:
    """Check what ``--lease-name`` and ``--lease-namespace`` say, if they are given.

    Raises:
        ConfigError: No Lease can have this name, or no namespace.
    """
    if name is not None:
        require_object_name("--lease-name", name)
    if namespace is not None:
        require_namespace("--lease-namespace", namespace)


def find_target(server: str | None, kubeconfig: str | None, context: str | None) -> Target:
    """Return the server that options name."""
    if server is not None and (kubeconfig is not None or context is not None):
        raise typer.BadParameter("use either --server or --kubeconfig and --context")
    with usage():
        return Target(
            server, kubeconfig or None, context or None
        )  # an empty one counts as missing, as for kubectl


def read_token(path: Path | None) -> str:
    """Return the token in a file; ``""`` without a file.

    Raises:
        ConfigError: The file cannot be read, or has no token.
    """
    if path is None:
        return ""
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--token-file {path} cannot be read: {error}") from error
    if not token or not (token.isascii() and token.isprintable()):
        what = "has characters that no token has, such as a line break" if token else "is empty"
        raise ConfigError(f"--token-file {path} {what}: write the token alone into it")
    return token


def log_more(verbose: bool) -> None:
    """Log debug messages if the option says so, which may come before or after the command."""
    if verbose:
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger(health.__name__).setLevel(logging.NOTSET)
