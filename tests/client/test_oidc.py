"""oidc.py and write_back.py: id-tokens are renewed and written back."""

from __future__ import annotations

import asyncio
import base64
import codecs
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from aioinformer import (
    Client,
    ConfigError,
)
from aioinformer.client.kubeconfig import KubeConfig
from aioinformer.client.oidc import LONGEST_ANSWER
from aioinformer.client.write_back import write_back

from ..listwatch.streams import json_of, serve
from ..steps import turns
from .clusters import Authority, jwt, on_clock, serve_guarded, wait_renewed, write_kubeconfig


def refreshable(issuer: str, authority: Authority) -> dict[str, Any]:
    """An OIDC user with only a refresh-token."""
    config = {
        "idp-issuer-url": issuer,
        "idp-certificate-authority-data": base64.b64encode(authority.pem).decode(),
        "client-id": "c",
        "refresh-token": "old",
    }
    return {"auth-provider": {"name": "oidc", "config": config}}


def endpoints_of(issuer: str) -> Any:
    """An identity provider's discovery document."""
    return json_of(json.dumps({"token_endpoint": f"{issuer}/token"}))


@pytest.mark.parametrize("in_header", [True, False])
async def test_oidc_renews_id_tokens(library: str, tmp_path: Path, in_header: bool) -> None:
    authority, wall, refreshes = Authority(), 1_000_000.0, 0

    async def identity_provider(request: Any) -> Any:
        nonlocal refreshes
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        form = await request.post()
        known = "Authorization" in request.headers if in_header else form.get("client_secret") == "s"
        if not known or form["refresh_token"] != f"refresh-{refreshes}":
            return json_of("{}", 400)
        refreshes += 1
        said = {"id_token": jwt(wall + 600), "refresh_token": f"refresh-{refreshes}"}
        return json_of(json.dumps(said))

    async with (
        serve_guarded(jwt(wall + 600)) as (server, guard),
        serve(identity_provider, authority.server_context()) as provider,
    ):
        config: dict[str, str] = {
            "idp-issuer-url": provider.url,
            "client-id": "c",
            "client-secret": "s",
            "refresh-token": "refresh-0",
            "id-token": jwt(wall - 1),
        }
        path = tmp_path / "config"
        user = {"auth-provider": {"name": "oidc", "config": config}}
        write_kubeconfig(path, server.url, user)
        with pytest.raises(ConfigError, match=r"gave no new id-token: .*CERTIFICATE_VERIFY_FAILED"):
            await Client.from_kubeconfig(path=path, library=library).open()
        config["idp-certificate-authority-data"] = base64.b64encode(authority.pem).decode()
        write_kubeconfig(path, server.url, user)
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            await client.get("/api")
            assert "refresh-1" in path.read_text()
            wall += 545
            await client.get("/api")
            await wait_renewed(client)
            assert "refresh-2" in path.read_text()
            guard.token = jwt(wall + 600)
            await client.get("/api")
    assert refreshes == 2
    assert len(server.requests) == 3
    del config["refresh-token"]
    write_kubeconfig(path, server.url, user)
    with pytest.raises(ConfigError, match=r"log in again"):
        await Client.from_kubeconfig(path=path, library=library).open()


@pytest.mark.parametrize("is_absolute", [True, False])
async def test_the_providers_authority_in_a_file(library: str, tmp_path: Path, is_absolute: bool) -> None:
    authority, file = Authority(), tmp_path / "provider.pem"
    file.write_bytes(authority.pem)

    async def identity_provider(request: Any) -> Any:
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        return json_of(json.dumps({"id_token": "new"}))

    async with (
        serve(identity_provider, authority.server_context()) as provider,
        serve_guarded("new") as (server, _),
    ):
        user = refreshable(provider.url, authority)
        config = user["auth-provider"]["config"]
        del config["idp-certificate-authority-data"]
        config["idp-certificate-authority"] = str(file) if is_absolute else file.name
        path = write_kubeconfig(tmp_path / "config", server.url, user)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            lambda: json_of(json.dumps({"id_token": "x" * LONGEST_ANSWER})),
            f"larger than {LONGEST_ANSWER} bytes",
        ),
        (
            lambda: web.Response(body=zlib.compress(b"0" * 9), headers={"Content-Encoding": "deflate"}),
            "encoded as",
        ),
        (lambda: web.Response(body=b"{\xff"), "is not JSON"),
    ],
    ids=["too large", "compressed", "not JSON"],
)
async def test_an_answer_of_the_provider_that_is_not_read(
    library: str, tmp_path: Path, path: str, answer: Callable[[], Any], why: str
) -> None:
    authority = Authority()

    async def identity_provider(request: Any) -> Any:
        return answer() if request.path == path else endpoints_of(provider.url)

    async with serve(identity_provider, authority.server_context()) as provider:
        user = refreshable(provider.url, authority)
        kubeconfig = write_kubeconfig(tmp_path / "config", "https://x:1", user)
        with pytest.raises(ConfigError, match=f"gave no new id-token: .*{path} .*{why}"):
            await Client.from_kubeconfig(path=kubeconfig, library=library).open()


async def test_a_redirect_does_not_take_the_refresh_token_to_another_address(
    library: str, tmp_path: Path
) -> None:
    authority = Authority()

    async def identity_provider(request: Any) -> Any:
        if request.path == "/token":
            return web.Response(status=307, headers={"Location": f"{provider.url}/elsewhere"})
        return endpoints_of(provider.url)

    async with serve(identity_provider, authority.server_context()) as provider:
        user = refreshable(provider.url, authority)
        path = write_kubeconfig(tmp_path / "config", "https://x:1", user)
        with pytest.raises(ConfigError, match=r"/token redirects with status 307, which is not followed"):
            await Client.from_kubeconfig(path=path, library=library).open()
    assert [request.path for request in provider.requests] == ["/.well-known/openid-configuration", "/token"]


async def test_a_refusal_does_not_hold_the_clients_secret(library: str, tmp_path: Path) -> None:
    authority = Authority()

    async def identity_provider(request: Any) -> Any:
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        return json_of("{}", 400)

    async with serve(identity_provider, authority.server_context()) as provider:
        user = refreshable(provider.url, authority)
        path = write_kubeconfig(tmp_path / "config", "https://x:1", user)
        with pytest.raises(ConfigError, match=r"gave no new id-token: 400") as caught:
            await Client.from_kubeconfig(path=path, library=library).open()
    error: BaseException | None = caught.value
    while error is not None:
        assert not hasattr(error, "request_info")
        error = error.__cause__


async def test_a_refresh_token_that_was_used_is_not_lost_with_the_request(
    library: str, tmp_path: Path
) -> None:
    """The request is cancelled during the exchange; the new tokens are written all the same."""
    authority, asked, let_go = Authority(), asyncio.Event(), asyncio.Event()

    async def identity_provider(request: Any) -> Any:
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        asked.set()
        await let_go.wait()
        return json_of(json.dumps({"id_token": "new", "refresh_token": "used-once"}))

    async with serve(identity_provider, authority.server_context()) as provider:
        path = write_kubeconfig(tmp_path / "config", "https://x:1", refreshable(provider.url, authority))
        opening = asyncio.ensure_future(Client.from_kubeconfig(path=path, library=library).open())
        async with asyncio.timeout(30):
            await asked.wait()
            opening.cancel()
            await turns(5)
            assert not opening.done()
            let_go.set()
            with pytest.raises(asyncio.CancelledError):
                await opening
    assert "used-once" in path.read_text()


async def test_write_back_keeps_concurrent_changes(library: str, tmp_path: Path) -> None:
    """Another program changes the file during the exchange; the file is replaced and keeps its mode."""
    authority = Authority()

    async def identity_provider(request: Any) -> Any:
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        written = json.loads(file.read_text())
        written["current-context"] = "elsewhere"
        written["users"].append({"name": "new", "user": {"token": "precious"}})
        file.write_text(json.dumps(written))
        return json_of(json.dumps({"id_token": "new", "refresh_token": "used-once"}))

    async with serve(identity_provider, authority.server_context()) as provider:
        (tmp_path / "real").mkdir()
        user = refreshable(provider.url, authority)
        file = write_kubeconfig(tmp_path / "real" / "config", "https://x:1", user)
        file.chmod(0o640)
        path = tmp_path / "config"
        path.symlink_to(file)
        with file.open() as before:
            async with Client.from_kubeconfig(path=path, library=library):
                pass
            assert (
                "used-once" not in before.read()
            )  # a reader sees the old file or the new one, never half of it
    written = yaml.safe_load(file.read_text())
    assert written["current-context"] == "elsewhere"
    assert [user["name"] for user in written["users"]] == ["u", "new"]
    assert written["users"][0]["user"]["auth-provider"]["config"]["refresh-token"] == "used-once"
    assert path.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in file.parent.iterdir()] == ["config"]


BLOCK = """\
# mine: do not touch
apiVersion: v1
users:
- name: other
  user: {{username: 12:34:56, password: 0o17, token: yes}}   # odd, and theirs
- name: ü
  user:
    as: 2024-01-01
    auth-provider:
      name: oidc
      config:
        {tokens}
        client-id: 1e3
        idp-issuer-url: https://x   # ours

- {{name: third, user: {{auth-provider: {{name: oidc, config: {{refresh-token: old}}}}}}}}
current-context: on
"""

FLOW = """\
{{
\t"users": [
\t\t{{"name": "other", "user": {{"password": "12:34:56\\u00e9\\/", "n": 1.50}}}},
\t\t{{"name": "ü", "user": {{"auth-provider": {{"config": {{{tokens}}}}}}}}}
\t],
\t"when": "2024-01-01"
}}"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("form", "before", "after"),
    [
        (BLOCK, "refresh-token: old", 'id-token: "I"\n        refresh-token: "R"'),
        (
            BLOCK,
            "refresh-token: 'old'  # x\n        id-token:",
            'refresh-token: "R"  # x\n        id-token: "I"',
        ),
        (
            BLOCK,
            'id-token: "a\\\n          b" # c\n        refresh-token: old',
            'id-token: "I" # c\n        refresh-token: "R"',
        ),
        (
            BLOCK,
            "id-token: >-\n          abc\n        refresh-token: old",
            'id-token: "I"\n        refresh-token: "R"',
        ),
        (FLOW, '"refresh-token": "old"', '"id-token": "I", "refresh-token": "R"'),
        (FLOW, '"id-token":"x",\t"refresh-token":\t"old"', '"id-token":"I",\t"refresh-token":\t"R"'),
        (FLOW, '"id-token": null, "refresh-token": "old"', '"id-token": "I", "refresh-token": "R"'),
    ],
)
def test_the_write_back_changes_its_two_values_only(
    tmp_path: Path, form: str, before: str, after: str, newline: str, encoding: str
) -> None:
    path, mark = tmp_path / "config", {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}

    def written(tokens: str) -> bytes:
        text = form.format(tokens=tokens).replace("\n", newline)
        return mark.get(encoding, b"") + text.encode(encoding)

    path.write_bytes(written(before))
    write_back(yaml, str(path), "ü", "old", {"id-token": "I", "refresh-token": "R"})
    assert path.read_bytes().decode("latin-1") == written(after).decode("latin-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "users: [{name: a, user: {auth-provider: &p {config: {refresh-token: old}}}},"
            " {name: b, user: {auth-provider: *p}}]",
            "cannot be changed without changing other values",
        ),
        (
            "x: &c {refresh-token: old}\nusers: [{name: a, user: {auth-provider: {config: *c}}}]",
            "cannot be changed without changing other values",
        ),
        (
            "users: [{name: a, user: {auth-provider: {config: {refresh-token: newer}}}}]",
            "logged in or out in the meantime",
        ),
        ("users: [{name: a, user: {token: t}}]", "logged in or out in the meantime"),
        ("users: []", "logged in or out in the meantime"),
        ("", "logged in or out in the meantime"),
        ("just text", "logged in or out in the meantime"),
        ("users: {{", "its format is not supported"),
    ],
)
def test_failed_write_back_leaves_the_file_unchanged(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        write_back(yaml, str(path), "a", "old", {"id-token": "I", "refresh-token": "R"})
    assert path.read_text() == text


@pytest.mark.parametrize("is_gone", [True, False])
async def test_tokens_that_cannot_be_written_back_are_kept(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_gone: bool
) -> None:
    """A refresh-token works once: the client keeps the new tokens in memory, and logs that once."""
    authority, wall, given = Authority(), 1_000_000.0, 0

    async def identity_provider(request: Any) -> Any:
        nonlocal given
        if request.path == "/.well-known/openid-configuration":
            return endpoints_of(provider.url)
        if (await request.post())["refresh_token"] != (f"refresh-{given}" if given else "old"):
            return json_of("{}", 400)
        given += 1
        guard.token = jwt(wall + 600)
        return json_of(json.dumps({"id_token": guard.token, "refresh_token": f"refresh-{given}"}))

    async with (
        serve_guarded("none") as (server, guard),
        serve(identity_provider, authority.server_context()) as provider,
    ):
        path = write_kubeconfig(tmp_path / "config", server.url, refreshable(provider.url, authority))
        shared = json.loads(path.read_text())
        shared["others"] = shared["users"][0]["user"]["auth-provider"]["config"]
        shared["users"][0]["user"]["auth-provider"]["config"] = "ANCHOR"
        text = yaml.safe_dump(shared).replace("others:", "others: &c").replace("config: ANCHOR", "config: *c")
        path.write_text(text)
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            if is_gone:
                path.unlink()
            for _ in range(4):
                await client.get("/api")
                wall += 601
    assert given == 4
    messages = [record.getMessage() for record in caplog.records if "OIDC" in record.getMessage()]
    assert len(messages) == 1
    assert "This client uses them" in messages[0]
