"""Servers, proxies and kubeconfigs that are broken, and an operator to examine there."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from aiohttp import web

from aioinformer import Client
from aioinformer.doctor import Finding, Level, Report
from aioinformer.operator import Context, CustomResource, Operator, Request, RunOptions
from aioinformer.testing import APIServer
from aioinformer.testing.users import User
from aioinformer.typed import CamelStruct, crd

ACCOUNT = "system:serviceaccount:websites:websites"
OPTIONS = RunOptions(target="websites:operator")
HOSTS = ("127.0.0.1", "localhost")


class Spec(CamelStruct):
    """What users ask for."""

    size: int = 1


class Website(CustomResource, group="example.com", version="v1"):
    """A website."""

    spec: Spec


operator = Operator("websites")


@operator.controller(Website, owns=["deployments"])
async def reconcile(request: Request[Website], context: Context) -> None:
    """Do nothing: doctor runs no reconciler."""


def install_definition(server: APIServer, **spec: Any) -> None:
    """Create the definition of Website, with some parts replaced."""
    definition = crd(Website)
    definition["spec"].update(spec)
    server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", definition)


def grant(server: APIServer, *rules: dict[str, Any], namespace: str = "") -> Client:
    """Give these rules to the operator's account, and return its client."""
    server.users["account"] = User(ACCOUNT, ("system:serviceaccounts", "system:authenticated"))
    api, prefix = "rbac.authorization.k8s.io/v1", "" if namespace else "cluster"
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": "websites", **({"namespace": namespace} if namespace else {})}
    server.create(api, f"{prefix}roles", {"metadata": metadata, "rules": [*rules]})
    server.create(
        api,
        f"{prefix}rolebindings",
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "websites"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": ACCOUNT}],
        },
    )
    return Client.from_url(server.url, "account")


def needed_rules() -> list[dict[str, Any]]:
    """Return the rules that the operator needs."""
    return [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": [*right.verbs]}
        for right in operator.rights(leader_election=False)
    ]


def kubeconfig(
    folder: Path,
    url: str,
    *,
    ca: bytes = b"",
    user: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Client:
    """Return a client of a kubeconfig for a server; ``more`` are fields of its cluster."""
    cluster = dict(more or {})
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "u", "user": dict(user or {})}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return Client.from_kubeconfig(path=path)


def jwt(seconds: float) -> str:
    """Return a token that expires so many seconds from now."""
    claims = json.dumps({"exp": int(time.time() + seconds)}).encode()
    parts = (b'{"alg":"none"}', claims, b"signature")
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def issue(authority: trustme.CA, *hosts: str, expires: timedelta = timedelta(days=365)) -> trustme.LeafCert:
    """Return a certificate that expires so long from now."""
    now = datetime.now(UTC)
    return authority.issue_cert(
        *(hosts or HOSTS), not_before=now - timedelta(days=400), not_after=now + expires
    )


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """Return the TLS settings of a server with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@asynccontextmanager
async def proxy(
    upstream: str,
    *,
    tls: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | None = None,
    buffers: bool = False,
    ends_watches: bool = False,
) -> AsyncIterator[str]:
    """A proxy before a server; yields its URL.

    Args:
        upstream: The server's URL.
        tls: For https.
        trusted: To trust the server.
        buffers: Whether it sends an answer once it has the whole of it.
        ends_watches: Whether it ends watches at once.
    """

    async def forward(request: web.BaseRequest) -> web.StreamResponse:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in ("Authorization", "Content-Type")
        }
        async with session.request(
            request.method,
            f"{upstream}{request.path_qs}",
            headers=headers,
            data=await request.read() or None,  # an empty one would get a Content-Type
            ssl=trusted or True,
        ) as answer:
            if buffers:
                return web.Response(body=await answer.read(), status=answer.status)
            response = web.StreamResponse(status=answer.status)
            await response.prepare(request)
            if not (ends_watches and "watch=true" in request.path_qs):
                with suppress(ConnectionResetError):  # the client has seen enough
                    async for chunk in answer.content.iter_any():
                        await response.write(chunk)
                    await response.write_eof()
            return response

    async with aiohttp.ClientSession() as session, listening(forward, tls) as url:
        yield url


@asynccontextmanager
async def answering(status: int, text: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that is no API server: it has one answer. Yields its URL."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    async with listening(answer, tls) as url:
        yield url


@asynccontextmanager
async def listening(handler: Any, tls: ssl.SSLContext | None) -> AsyncIterator[str]:
    """A server of a handler of aiohttp; yields its URL."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        _, port = runner.addresses[0][:2]
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def require(report: Report, level: Level, check: str, *words: str) -> Finding:
    """Return the finding of a check that has this level and these words.

    Raises:
        AssertionError: There is none; the message has all findings.
    """
    for finding in report.findings:
        if (finding.check, finding.level) == (check, level) and all(word in finding.what for word in words):
            if level in (Level.WARNING, Level.FAULT):
                assert finding.do, finding
            return finding
    raise AssertionError("\n".join(f"{one.level} {one.check}: {one.what}" for one in report.findings))
