"""Servers that want credentials, and kubeconfigs for them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web

from aioinformer import Client
from aioinformer.client.credentials import ConfigSource
from aioinformer.client.libraries import library_named
from aioinformer.client.library_transport import LibraryTransport

from ..listwatch.streams import (
    EVENT,
    POD_LIST,
    FakeServer,
    begin,
    json_of,
    serve,
)

UNAUTHORIZED = '{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}'


class Guard:
    """A handler that answers requests with the right token, and others with 401."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return json_of(UNAUTHORIZED, 401)
        if "watch" not in request.query:
            return json_of(POD_LIST)
        answer = await begin(request)
        await answer.write(EVENT)
        return answer


@asynccontextmanager
async def serve_guarded(
    token: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[FakeServer, Guard]]:
    """A server that wants a bearer token."""
    guard = Guard(token)
    async with serve(guard, tls) as server:
        yield server, guard


class Plugin:
    """An exec plugin that prints the content of a file and records its runs."""

    def __init__(self, folder: Path) -> None:
        self._status = folder / "status.json"
        self._runs = folder / "runs"
        self._hangs = folder / "hangs"
        self._script = folder / "plugin"
        os.mkfifo(self._hangs)
        self._script.write_text(
            f"#!{sys.executable}\n"
            "import os, pathlib, sys, time\n"
            f"with open({str(self._runs)!r}, 'a') as runs: runs.write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"status = pathlib.Path({str(self._status)!r}).read_text()\n"
            "if status == 'fail': sys.exit('no login\\n' + 'x' * 100_000 + '\\nsorry')\n"
            "if status == 'hang':\n"
            "    import subprocess; child = subprocess.Popen(['sleep', '600'])\n"
            f"    pathlib.Path({str(self._hangs)!r}).write_text(str(os.getpid()))\n"
            "    child.wait()\n"
            "if status == 'wait':\n"
            f"    pathlib.Path({str(self._hangs)!r}).write_text(str(os.getpid()))\n"
            "    while not status.endswith('}'):\n"
            f"        time.sleep(0.01); status = pathlib.Path({str(self._status)!r}).read_text()\n"
            "sys.stderr.write('y' * 100_000)\n"
            "print(status)\n"
        )
        self._script.chmod(self._script.stat().st_mode | stat.S_IXUSR)

    @property
    def runs(self) -> list[Any]:
        """The ``$KUBERNETES_EXEC_INFO`` of each run."""
        return (
            [json.loads(line) for line in self._runs.read_text().splitlines()] if self._runs.exists() else []
        )

    def gives(self, **status: Any) -> None:
        """Return this status from now on."""
        credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
        self._status.write_text(json.dumps({**credential, "status": status}))

    def says(self, text: str) -> None:
        """Print this from now on. ``fail`` fails, ``hang`` hangs, and ``wait`` waits until there is a status."""
        self._status.write_text(text)

    async def hangs(self, asking: asyncio.Future[Any]) -> int:
        """Wait until the run caused by this request hangs or waits. Return its process id."""
        pipe = os.open(self._hangs, os.O_RDWR | os.O_NONBLOCK)
        loop, said = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(pipe, said.set)
        waiting = asyncio.ensure_future(said.wait())
        try:
            await asyncio.wait([waiting, asking], return_when=asyncio.FIRST_COMPLETED)
            assert not asking.done(), asking
            return int(os.read(pipe, 100))
        finally:
            waiting.cancel()
            loop.remove_reader(pipe)
            os.close(pipe)

    def user(self, **more: Any) -> dict[str, Any]:
        """The user's section of a kubeconfig."""
        section = {"apiVersion": "client.authentication.k8s.io/v1", "command": f"./{self._script.name}"}
        return {"exec": {**section, **more}}


def on_clock(source: ConfigSource, library: str, wall: Callable[[], float]) -> Client:
    """Return a client with the test's wall clock."""
    return Client(LibraryTransport(source, library_named(library), wall=wall))


async def wait_renewed(client: Client) -> None:
    """Wait for the end of the running renewal of credentials."""
    loading = client.transport._loading  # type: ignore[attr-defined]
    await asyncio.wait((loading,))


def write_kubeconfig(
    path: Path, server: str, user: dict[str, Any] | None, *, ca: bytes | None = None, **cluster: Any
) -> Path:
    """Write a kubeconfig with one context, ``main``, in the namespace ``team-a``."""
    section: dict[str, Any] = {"server": server, **cluster}
    if ca is not None:
        section["certificate-authority-data"] = base64.b64encode(ca).decode()
    context: dict[str, Any] = {"cluster": "c", "namespace": "team-a"}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": section}],
        "contexts": [{"name": "main", "context": context}],
        "users": [],
    }
    if user is not None:
        context["user"] = "u"
        config["users"].append({"name": "u", "user": user})
    path.write_text(json.dumps(config))
    return path


class Authority:
    """A certificate authority, its server's TLS and its clients' certificates."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self.pem = self._authority.cert_pem.bytes()

    def server_context(self, *names: str, wants_client: bool = False) -> ssl.SSLContext:
        """The TLS of a server of these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certify(context, *names)
        if wants_client:
            self._authority.configure_trust(context)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def certify(self, context: ssl.SSLContext, *names: str) -> None:
        """Have a server show a certificate of this authority from now on."""
        self._authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)

    def client(self, name: str) -> tuple[bytes, bytes]:
        """A client's certificate and key."""
        issued = self._authority.issue_cert(common_name=name)
        return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()


def client_name(request: web.BaseRequest) -> str:
    """Return the common name in a request's client certificate; ``""`` for none."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = {key: value for parts in certificate.get("subject", ()) for key, value in parts}
    return str(names.get("commonName", ""))


def jwt(expires: float) -> str:
    """Return a JWT that expires at this time, in seconds since 1970."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"
