from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from aioinformer import Client, ConfigError, TransportError
from aioinformer.client.credentials import InCluster

from ..listwatch.streams import (
    EVENT,
    FakeServer,
    begin,
    serve,
)
from .clusters import Authority, on_clock, serve_guarded, wait_renewed, write_kubeconfig


@pytest.fixture
def account(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account's folder, as in a pod."""
    module = importlib.import_module(f"{library}.config.incluster_config")
    monkeypatch.setattr(module, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(module, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    return tmp_path


def service_at(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a pod's environment name this server."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(urlsplit(server.url).port))


async def test_the_service_account_of_a_pod(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    (account / "ca.crt").write_bytes(authority.pem)
    (account / "token").write_text("one\n")
    (account / "namespace").write_text("team-b")
    wall = 1_000_000.0
    async with serve_guarded("one", authority.server_context()) as (server, guard):
        service_at(server, monkeypatch)
        async with on_clock(InCluster(), library, lambda: wall) as client:
            assert (client.server, client.namespace) == (server.url, "team-b")
            await client.get("/api")
            (account / "token").write_text("two\n")
            await client.get("/api")  # not read before the minute is over
            guard.token = "two"
            await client.get("/api")  # unless the server says so
            (account / "token").write_text("three\n")
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            guard.token = "three"
            await client.get("/api")
    assert server.tokens == [f"Bearer {token}" for token in ("one", "one", "one", "two", "two", "three")]


async def test_an_authority_that_was_replaced(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ca.crt is read again after an unverifiable certificate, and every minute (``ca_rotation.go``)."""
    old, new = Authority(), Authority()
    wall = 1_000_000.0
    (account / "ca.crt").write_bytes(old.pem)
    (account / "token").write_text("one")
    tls = old.server_context()
    async with serve_guarded("one", tls) as (server, _):
        service_at(server, monkeypatch)
        async with on_clock(InCluster(), library, lambda: wall) as client:
            new.certify(tls)
            with pytest.raises(TransportError, match=r"certificate cannot be verified"):
                await client.get("/api")
            (account / "ca.crt").unlink()
            for _ in range(2):
                with pytest.raises(TransportError, match=r"certificate cannot be verified"):
                    await client.get("/api")
            assert caplog.text.count(f"ca.crt {account}/ca.crt cannot be used any more") == 1
            assert not server.requests
            (account / "ca.crt").write_bytes(new.pem)
            await client.get("/api")
            (account / "ca.crt").write_bytes(old.pem)
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            with pytest.raises(TransportError, match=r"certificate cannot be verified"):
                await client.get("/api")
            old.certify(tls)
            await client.get("/api")
            assert len(server.requests) == 3


async def test_closing_ends_what_began_before_the_authority_was_replaced(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, over, wall = Authority(), asyncio.Event(), 1_000_000.0
    (account / "ca.crt").write_bytes(authority.pem)
    (account / "token").write_text("one")

    async def answer(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await answer.write(EVENT)
        if request.path == "/watch":
            await over.wait()
        return answer

    async with serve(answer, authority.server_context()) as server:
        service_at(server, monkeypatch)
        async with on_clock(InCluster(), library, lambda: wall) as client:
            stream: Any = await client.stream("/watch")
            assert await anext(stream) == EVENT
            (account / "ca.crt").write_bytes(authority.pem + Authority().pem)
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            transport: Any = client.transport
            assert transport._opened.sessions is not stream._sessions
        try:
            with pytest.raises(TransportError, match="broke off"):
                async with asyncio.timeout(5):
                    await anext(stream)
        finally:
            await stream.aclose()
            over.set()


async def test_a_namespace_that_cannot_be_read(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (account / "ca.crt").write_bytes(Authority().pem)
    (account / "token").write_text("one")
    (account / "namespace").write_bytes(b"\xff")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(ConfigError, match=r"in-cluster configuration cannot be used: .*decode"):
        await Client.in_cluster(library=library).open()


async def test_outside_of_a_cluster(library: str, account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = r"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
    with pytest.raises(ConfigError, match=rf"in-cluster configuration cannot be used: {variables}"):
        await Client.in_cluster(library=library).open()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(ConfigError, match=variables):
        await Client.in_cluster(library=library).open()
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(ConfigError, match=rf"in-cluster .*: token file {account}/token cannot be read"):
        await Client.in_cluster(library=library).open()


async def test_a_pod_without_an_authority(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The system's authorities are trusted, as in client-go; ``$POD_NAMESPACE`` sets the namespace."""
    (account / "token").write_text("one")
    (account / "namespace").write_text("team-b")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setenv("POD_NAMESPACE", "team-c")
    async with Client.in_cluster(library=library) as client:
        assert (client.server, client.namespace) == ("https://[fd00::1]:1", "team-c")
    assert f"{account}/ca.crt does not exist" in caplog.text


async def test_missing_authority_is_logged_once(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (account / "token").write_text("one")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    wall = 1_000_000.0
    async with on_clock(InCluster(), library, lambda: wall) as client:
        for _ in range(3):
            wall += 61
            with pytest.raises(TransportError, match="cannot connect"):
                await client.get("/api")
            await wait_renewed(client)
    assert caplog.text.count("ca.crt does not exist") == 1


async def test_a_service_account_that_is_gone_keeps_its_last_content(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority, wall = Authority(), 1_000_000.0
    for file, content in (("ca.crt", authority.pem), ("token", b"one"), ("namespace", b"team-b")):
        (account / file).write_bytes(content)
    async with serve_guarded("one", authority.server_context()) as (server, _):
        service_at(server, monkeypatch)
        async with on_clock(InCluster(), library, lambda: wall) as client:
            for file in ("ca.crt", "token", "namespace"):
                (account / file).unlink()
            for _ in range(5):
                wall += 61
                await client.get("/api")
                await wait_renewed(client)
            assert client.namespace == "team-b"
    assert sorted(record.getMessage().partition(" ")[0] for record in caplog.records) == [
        "ca.crt",
        "namespace",
        "token",
    ]


async def test_client_from_environment_is_the_service_account_in_a_pod_and_the_kubeconfig_elsewhere(
    library: str, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    (account / "ca.crt").write_bytes(authority.pem)
    (account / "token").write_text("of the pod")
    async with serve_guarded("of the pod", authority.server_context()) as (server, guard):
        user = {"token": "of the user"}
        path = write_kubeconfig(account / "config", server.url, user, ca=authority.pem)
        monkeypatch.setenv("KUBECONFIG", str(path))
        guard.token = "of the user"
        async with Client.from_environment(library=library) as client:
            await client.get("/api")
        service_at(server, monkeypatch)
        guard.token = "of the pod"
        async with Client.from_environment(library=library) as client:
            await client.get("/api")
