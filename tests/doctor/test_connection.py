"""The way to the server: each broken set-up names its cause."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from aioinformer import Client
from aioinformer.doctor import Finding, Level, examine
from aioinformer.testing import APIServer
from aioinformer.testing.requests import Request

from .setups import answering, issue, jwt, kubeconfig, proxy, require, serving

FAULT, WARNING, OK, NOTE = Level.FAULT, Level.WARNING, Level.OK, Level.NOTE


async def test_a_healthy_server_has_no_faults(tmp_path: Path) -> None:
    async with APIServer(tls=True, token="secret") as server:
        report = await examine(Client.from_kubeconfig(path=_write(server, tmp_path)))
    assert (report.level, report.exit_code) == (OK, 0), report.findings
    assert report.server == server.url
    require(report, OK, "tls", "certificate expires in")
    require(report, OK, "credentials", "as embedded")


def _write(server: APIServer, folder: Path) -> Path:
    server.kubeconfig(folder / "config")
    return folder / "config"


async def test_no_server() -> None:
    async with APIServer() as server:
        url = server.url
    report = await examine(Client.from_url(url))
    require(report, FAULT, "server", url, "refuses connections")
    assert report.exit_code == 2


async def test_a_host_that_does_not_exist() -> None:
    report = await examine(Client.from_url("https://api.cluster.invalid:6443"))
    require(report, FAULT, "server", "api.cluster.invalid", "cannot be resolved")


async def test_a_server_that_hangs() -> None:
    async with APIServer() as server:
        server.pause()
        report = await examine(Client.from_url(server.url), timeout=2.0)
    require(report, FAULT, "server", "does not answer")


async def test_a_certificate_of_another_authority(tmp_path: Path) -> None:
    async with APIServer(tls=True, token="secret") as server:
        other = trustme.CA().cert_pem.bytes()
        report = await examine(kubeconfig(tmp_path, server.url, ca=other, user={"token": "secret"}))
    finding = require(report, FAULT, "tls", "CA that is not trusted")
    assert "certificate-authority" in finding.do


async def test_an_expired_server_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    expired = serving(issue(authority, expires=timedelta(hours=-3)))
    async with APIServer() as server, proxy(server.url, tls=expired) as url:
        report = await examine(kubeconfig(tmp_path, url, ca=authority.cert_pem.bytes()))
    require(report, FAULT, "tls", "certificate has expired")


async def test_a_server_certificate_that_expires_soon(tmp_path: Path) -> None:
    authority = trustme.CA()
    soon = serving(issue(authority, expires=timedelta(days=3, hours=1)))
    async with APIServer() as server, proxy(server.url, tls=soon) as url:
        report = await examine(kubeconfig(tmp_path, url, ca=authority.cert_pem.bytes()))
    require(report, WARNING, "tls", "expires in 3 days")
    assert report.exit_code == 1


async def test_a_certificate_for_another_host(tmp_path: Path) -> None:
    authority = trustme.CA()
    other = serving(issue(authority, "api.example.com"))
    async with APIServer() as server, proxy(server.url, tls=other) as url:
        report = await examine(kubeconfig(tmp_path, url, ca=authority.cert_pem.bytes()))
        right = kubeconfig(
            tmp_path, url, ca=authority.cert_pem.bytes(), more={"tls-server-name": "api.example.com"}
        )
        corrected = await examine(right)
    finding = require(report, FAULT, "tls", "not for this address")
    assert "tls-server-name" in finding.do
    require(corrected, OK, "tls", "certificate expires in")


async def test_a_certificate_that_is_not_verified(tmp_path: Path) -> None:
    async with APIServer(tls=True, token="secret") as server:
        client = kubeconfig(
            tmp_path, server.url, user={"token": "secret"}, more={"insecure-skip-tls-verify": True}
        )
        report = await examine(client)
    require(report, WARNING, "tls", "not verified")


async def test_https_for_a_server_without_tls(tmp_path: Path) -> None:
    async with APIServer() as server:
        report = await examine(kubeconfig(tmp_path, server.url.replace("http:", "https:")))
    require(report, FAULT, "tls", "does not speak TLS")


async def test_http_for_a_server_with_tls(tmp_path: Path) -> None:
    async with APIServer(tls=True, token="secret") as server:
        report = await examine(kubeconfig(tmp_path, server.url.replace("https:", "http:")))
    require(report, FAULT, "tls", "speaks TLS", "begins with http://")


async def test_another_program_at_the_port() -> None:
    async with answering(200, "<html>Welcome to nginx</html>") as url:
        report = await examine(Client.from_url(url))
    require(report, FAULT, "server", "no Kubernetes API server")


async def test_a_gateway_without_a_server() -> None:
    async with answering(503, "no back end") as url:
        report = await examine(Client.from_url(url))
    require(report, FAULT, "server", "answers 503")


async def test_a_clock_that_is_an_hour_ahead() -> None:
    async with APIServer() as server:
        report = await examine(Client.from_url(server.url), wall=lambda: time.time() + 3600)
    finding = require(report, FAULT, "clock", "ahead of", "60 min")
    assert "NTP" in finding.do


async def test_a_kubeconfig_that_is_missing(tmp_path: Path) -> None:
    report = await examine(Client.from_kubeconfig(path=tmp_path / "none"))
    require(report, FAULT, "configuration", str(tmp_path / "none"))
    assert (report.server, len(report.findings)) == ("", 1)


async def test_a_context_that_is_missing(tmp_path: Path) -> None:
    kubeconfig(tmp_path, "https://127.0.0.1:1")
    report = await examine(Client.from_kubeconfig("other", tmp_path / "kubeconfig"))
    require(report, FAULT, "configuration", "other")


async def test_an_expired_token(tmp_path: Path) -> None:
    async with APIServer(token="secret") as server:
        report = await examine(kubeconfig(tmp_path, server.url, user={"token": jwt(-7200 - 60)}))
    finding = require(report, FAULT, "credentials", "token expired 2 h ago")
    assert "kubectl create token" in finding.do
    require(report, FAULT, "credentials", "does not accept the credentials")
    require(report, NOTE, "others", "not checked")


@pytest.mark.parametrize(("in_file", "level"), [(False, WARNING), (True, OK)])
async def test_a_token_that_expires_soon(tmp_path: Path, in_file: bool, level: Level) -> None:
    token = jwt(3 * 3600)
    (tmp_path / "token").write_text(token)
    user = {"tokenFile": str(tmp_path / "token")} if in_file else {"token": token}
    async with APIServer(token=token) as server:
        report = await examine(kubeconfig(tmp_path, server.url, user=user))
    require(report, level, "credentials", "token expires in 3 h")


async def test_an_unknown_token() -> None:
    async with APIServer(token="secret") as server:
        report = await examine(Client.from_url(server.url, "other"))
    require(report, FAULT, "credentials", "does not accept the credentials", "Client.from_url")


async def test_an_expired_client_certificate(tmp_path: Path) -> None:
    certificate = issue(trustme.CA(), expires=timedelta(days=-2, hours=-1))
    (tmp_path / "crt").write_bytes(certificate.cert_chain_pems[0].bytes())
    (tmp_path / "key").write_bytes(certificate.private_key_pem.bytes())
    user = {"client-certificate": str(tmp_path / "crt"), "client-key": str(tmp_path / "key")}
    async with APIServer(tls=True) as server:
        assert server.ca_pem is not None
        report = await examine(kubeconfig(tmp_path, server.url, ca=server.ca_pem, user=user))
    require(report, FAULT, "credentials", "client certificate expired 2 days ago")


async def test_an_anonymous_user() -> None:
    async with APIServer() as server:
        report = await examine(Client.from_url(server.url))
    require(report, WARNING, "credentials", "anonymous")


async def test_a_server_that_is_not_ready() -> None:
    async with APIServer() as server:
        server.faults.fail(500, matching=lambda request: request.path == "/readyz")
        report = await examine(Client.from_url(server.url))
    require(report, FAULT, "ready", "not ready")


async def test_a_check_that_takes_too_long_does_not_delay_others() -> None:
    async with APIServer() as server:
        server.faults.freeze(matching=lambda request: request.path == "/readyz")
        report = await examine(Client.from_url(server.url), timeout=5.0)
    require(report, FAULT, "ready", "no result within 5 s")
    require(report, OK, "watches", "bookmarks come")


async def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(examination: object) -> list[object]:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("aioinformer.doctor.checks.CLUSTER", {"broken": broken})
    async with APIServer() as server:
        report = await examine(Client.from_url(server.url))
    require(report, WARNING, "broken", "ZeroDivisionError: division by zero")


async def test_a_cancelled_examination_leaves_no_tasks() -> None:
    arrived = asyncio.Event()

    def is_list(request: Request) -> bool:
        if request.verb == "list":
            arrived.set()
        return request.verb == "list"

    async with APIServer() as server:
        server.faults.freeze(matching=is_list)
        task = asyncio.create_task(examine(Client.from_url(server.url)))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@pytest.mark.parametrize("version", [["x"], "v1.36.0", "v1." + "9" * 5000, ""])
async def test_hostile_answers_are_findings(version: object) -> None:
    body = json.dumps({"gitVersion": version, "items": 7, "status": "no", "metadata": None, "spec": [1]})
    async with answering(200, body) as url:
        report = await examine(Client.from_url(url, jwt(-1)), timeout=2.0)
    assert report.exit_code == 2
    assert all(isinstance(finding, Finding) for finding in report.findings)
