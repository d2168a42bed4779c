"""``aioinformer serve``: the embedded API server for tests in any language."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import anyio
import typer

from .._core.files import replace_file
from ..client import Client
from ..errors import ConfigError
from ..testing import APIServer
from ..testing.control import parse_fault
from ..testing.errors import TestingError
from ..testing.requests import Request
from ..testing.state import is_state
from .kubeconfig_path import kubeconfig_of
from .manifest_files import Manifest, apply_manifests, read_manifests
from .output import convert_write_errors, write

FIELD_MANAGER = "aioinformer-serve"


@dataclass(frozen=True)
class ServeOptions:
    """What to serve.

    Attributes:
        port: The port; 0 for a free one.
        kubeconfig: Where to write the kubeconfig; None for a path of this folder, which is the same at each start.
        load: Files and folders of objects, or files of saved states, in this order.
        save: Where to save the state at the end, if anywhere.
        faults: Faults to inject when the server is ready, such as ``500?times=3``.
        audit: The file to write a line to for each request; ``-`` for standard output.
        token: The administrator's token; None for none, or with TLS or RBAC for a random one.
        command: A command to run with ``$KUBECONFIG``; the server ends with it.
    """

    port: int = 0
    kubeconfig: Path | None = None
    load: Sequence[Path] = ()
    save: Path | None = None
    faults: Sequence[str] = ()
    audit: str | None = None
    token: str | None = None
    tls: bool = False
    rbac: bool = False
    workloads: bool = False
    webhooks: bool = True
    command: Sequence[str] = ()


async def run_serve(options: ServeOptions) -> None:
    """Serve until cancelled, or until the command has ended.

    Raises:
        ConfigError: The port is in use, a file cannot be read or does not apply, or a fault is unknown.
        typer.Exit: The command has ended, with its exit code.
    """
    started = time.monotonic()
    try:
        faults = [parse_fault(text) for text in options.faults]
    except TestingError as error:
        raise ConfigError(f"--fault: {error}") from error
    states, manifests = _read_all(options.load)
    token = options.token or (secrets.token_urlsafe(16) if options.tls or options.rbac else None)
    with ExitStack() as stack:
        server = APIServer(
            port=options.port,
            tls=options.tls,
            token=token,
            rbac=options.rbac,
            workloads=options.workloads,
            webhooks=options.webhooks,
            control=True,
            on_answer=stack.enter_context(_audit(options.audit)),
        )
        for path, state in states:
            _restore(server, path, state)
        try:
            await server.start()
        except OSError as error:
            raise ConfigError(
                f"port {options.port}: {error.strerror or error}: choose another --port"
            ) from error
        try:
            kubeconfig = stack.enter_context(_kubeconfig(options.kubeconfig))
            if manifests:
                await _apply(server, manifests)
            for inject in faults:
                inject(server.faults)
            server.kubeconfig(kubeconfig)
            with convert_write_errors():
                write(
                    f"an API server at {server.url}, ready after {time.monotonic() - started:.2f} s with "
                    f"{len(manifests)} objects applied; for kubectl: export KUBECONFIG={kubeconfig}\n"
                )
            if not options.command:
                await asyncio.get_running_loop().create_future()
            raise typer.Exit(await _run(options.command, kubeconfig))
        finally:
            await server.stop()
            if options.save is not None:
                _save(options.save, server.save_state())


def _read_all(paths: Iterable[Path]) -> tuple[list[tuple[Path, bytes]], list[Manifest]]:
    """Return the saved states, and the objects of all other files."""
    states: list[tuple[Path, bytes]] = []
    manifests: list[Manifest] = []
    for path in paths:
        try:
            data = b"" if path.is_dir() else path.read_bytes()
        except OSError as error:
            raise ConfigError(f"--load {path}: {error.strerror or error}") from error
        if is_state(data):
            states.append((path, data))
        else:
            manifests += read_manifests(path)
    return states, manifests


def _restore(server: APIServer, path: Path, state: bytes) -> None:
    try:
        server.restore_state(state)
    except TestingError as error:
        raise ConfigError(f"--load {path}: {error}") from error


async def _apply(server: APIServer, manifests: Sequence[Manifest]) -> None:
    with TemporaryDirectory(prefix="aioinformer-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        server.kubeconfig(kubeconfig)
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            await apply_manifests(client, manifests, FIELD_MANAGER)


@contextmanager
def _kubeconfig(path: Path | None) -> Iterator[Path]:
    """Return the path of the kubeconfig, which is removed at the end."""
    if path is None:
        with TemporaryDirectory(prefix="aioinformer-") as folder, kubeconfig_of("serve", Path(folder)) as own:
            yield own
        return
    if not path.parent.is_dir():
        raise ConfigError(f"--kubeconfig {path}: there is no folder {path.parent}")
    try:
        yield path.absolute()
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _audit(to: str | None) -> Iterator[Callable[[Request], None] | None]:
    """Return what writes a line of JSON for each request."""
    if to is None:
        yield None
    elif to == "-":
        yield _to_standard_output
    else:
        try:
            file = open(to, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed below
        except OSError as error:
            raise ConfigError(f"--audit {to}: {error.strerror or error}") from error
        with file:
            yield lambda request: _write_line(file, request)


def _to_standard_output(request: Request) -> None:
    with convert_write_errors():
        write(_line(request))


def _write_line(file: IO[str], request: Request) -> None:
    file.write(_line(request))


def _line(request: Request) -> str:
    """Return a request as a line of JSON. Its time is that of the arrival, its seconds include those of a watch."""
    query = "&".join(f"{name}={value}" for name, value in request.query.items())
    fields = {
        "time": round(request.time, 3),
        "seconds": round(time.time() - request.time, 3),
        "status": request.status,
        "verb": request.verb,
        "path": request.path + (f"?{query}" if query else ""),
        "resource": f"{request.resource}.{request.group}" if request.group else request.resource,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user,
    }
    return json.dumps({name: value for name, value in fields.items() if value != ""}) + "\n"


async def _run(command: Sequence[str], kubeconfig: Path) -> int:
    """Run a command with ``$KUBECONFIG``, and end it if this is cancelled."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}
        )
    except OSError as error:
        raise ConfigError(f"{command[0]}: {error.strerror or error}") from error
    try:
        return await child.wait()
    finally:
        if child.returncode is None:
            child.terminate()
            with anyio.CancelScope(shield=True):
                await child.wait()


def _save(path: Path, state: bytes) -> None:
    try:
        replace_file(path, state)
    except OSError as error:
        raise ConfigError(f"--save {path}: {error.strerror or error}") from error
