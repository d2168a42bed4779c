"""tls.py: accepts the servers that Go accepts, and leaves no certificate files behind."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trustme

from aioinformer import Client, ConfigError, TransportError
from aioinformer.client.tls import TLS, Pem

from ..listwatch.streams import json_of, serve
from .clusters import Authority, Plugin, client_name, serve_guarded, write_kubeconfig


async def test_any_certificate_that_is_given_is_an_anchor(library: str, tmp_path: Path) -> None:
    """An intermediate certificate, or the server's own."""
    between = trustme.CA().create_child_ca()
    issued = between.issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    async with serve_guarded("t", context) as (server, _):
        for anchor in (between.cert_pem, issued.cert_chain_pems[0]):
            path = write_kubeconfig(tmp_path / "config", server.url, {"token": "t"}, ca=anchor.bytes())
            async with Client.from_kubeconfig(path=path, library=library) as client:
                await client.get("/api")


def test_key_identifiers_are_not_asked_for() -> None:
    """Python 3.13 requires them; many clusters' certificates have none."""
    assert not TLS().context().verify_flags & ssl.VERIFY_X509_STRICT


async def test_certificates_leave_no_file_behind(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal needs no file that a cleanup may have deleted."""
    authority, plugin = Authority(), Plugin(tmp_path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    certificate, key = authority.client("ada")
    inline = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    plugin.gives(clientCertificateData=certificate.decode(), clientKeyData=key.decode())
    async with serve(name, authority.server_context(wants_client=True)) as server:
        for user in (inline, plugin.user()):
            path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                assert not list((tmp_path / "tmp").iterdir())
                assert await client.get_json("/whoami") == "ada"


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="certificates are kept in memory on Linux only")
async def test_certificates_need_no_directory_that_can_be_written(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example in a container with a read-only root file system."""
    authority = Authority()
    certificate, key = authority.client("ada")
    user = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    context = authority.server_context(wants_client=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    before = len(os.listdir("/proc/self/fd"))
    TLS(certificate=Pem("certificate", data=certificate), key=Pem("key", data=key)).context()
    assert len(os.listdir("/proc/self/fd")) == before

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    async with serve(name, context) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            assert await client.get_json("/whoami") == "ada"


async def test_error_names_the_unusable_certificate(library: str, tmp_path: Path) -> None:
    authority = Authority()
    (certificate, key), (_, other) = authority.client("ada"), authority.client("grace")
    for file, content in (("ada.crt", certificate), ("ada.key", key), ("other.key", other)):
        (tmp_path / file).write_bytes(content)
    (tmp_path / "empty").touch()
    user = {"client-certificate": "ada.crt", "client-key": "ada.key"}
    inline = {"client-certificate": "ada.crt", "client-key-data": base64.b64encode(b"none").decode()}
    cluster: Any
    for cluster, shown, message in (
        (
            {"certificate-authority-data": "eA=="},
            {},
            "certificate-authority-data contains no usable certificates",
        ),
        ({"certificate-authority": "empty"}, {}, f"certificate-authority {tmp_path}/empty is empty"),
        (
            {"certificate-authority": "ada.key"},
            {},
            f"certificate-authority {tmp_path}/ada.key contains no usable certificates",
        ),
        (
            {},
            user | {"client-key": "other.key"},
            f"client-certificate {tmp_path}/ada.crt and client-key {tmp_path}/other.key cannot be used: .*mismatch",
        ),
        ({}, inline, f"client-certificate {tmp_path}/ada.crt and client-key-data cannot be used"),
    ):
        path = write_kubeconfig(tmp_path / "config", "https://x", shown, **cluster)
        with pytest.raises(ConfigError, match=f"^kubeconfig {path}, current context: {message}"):
            await Client.from_kubeconfig(path=path, library=library).open()


async def test_key_with_a_password_does_not_prompt(library: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    certificate, key = Authority().client("ada")
    private = serialization.load_pem_private_key(key, None)
    secret = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    (tmp_path / "ada.crt").write_bytes(certificate)
    (tmp_path / "ada.key").write_bytes(secret)
    user = {"client-certificate": "ada.crt", "client-key": "ada.key"}
    path = write_kubeconfig(tmp_path / "config", "https://x", user)
    with pytest.raises(ConfigError, match=r"ada\.key cannot be used"):
        await Client.from_kubeconfig(path=path, library=library).open()


async def test_a_common_name_names_no_server(library: str, tmp_path: Path) -> None:
    """As in Go: only subject alternative names count."""
    issuer, named = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert(common_name="localhost").configure_cert(named)
    proper = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert("localhost").configure_cert(proper)
    for context, is_refused in ((named, True), (proper, False)):
        async with serve_guarded("t", context) as (server, _):
            url, token = server.url.replace("127.0.0.1", "localhost"), {"token": "t"}
            path = write_kubeconfig(tmp_path / "config", url, token, ca=issuer.cert_pem.bytes())
            async with Client.from_kubeconfig(path=path, library=library) as client:
                if is_refused:
                    with pytest.raises(
                        TransportError, match=r"certificate cannot be verified: .*not valid for"
                    ):
                        await client.get("/api")
                else:
                    await client.get("/api")


def test_an_authority_without_certificates_does_not_become_the_systems(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("\u00e9\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"ca\.crt is empty"):
        TLS(Pem("certificate-authority", str(tmp_path / "ca.crt"))).context()
