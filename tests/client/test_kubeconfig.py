from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from aioinformer import (
    ApiError,
    Client,
    ConfigError,
    ListWatch,
    TransportError,
)
from aioinformer.client.kept_files import LARGEST_FILE
from aioinformer.client.kubeconfig import KubeConfig

from ..listwatch.streams import POD_LIST, json_of, serve
from .clusters import Authority, Plugin, client_name, on_clock, serve_guarded, wait_renewed, write_kubeconfig


async def test_a_context_with_a_token(library: str, tmp_path: Path) -> None:
    async with serve_guarded("secret") as (server, _):
        path = write_kubeconfig(tmp_path / "config", server.url, {"token": "secret"})
        async with Client.from_kubeconfig(path=path, library=library) as client:
            assert (client.server, client.namespace) == (server.url, "team-a")
            assert await client.get("/api/v1/pods") == POD_LIST.encode()


async def test_contexts_and_files_of_the_environment(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write_kubeconfig(tmp_path / "one", "http://one:1", {"token": "1"})
    other = json.loads(
        write_kubeconfig(tmp_path / "two", "http://two:2", {"token": "2"})
        .read_text()
        .replace('"main"', '"dev"')
    )
    other["clusters"][0]["name"] = other["contexts"][0]["context"]["cluster"] = "c2"
    (tmp_path / "two").write_text(json.dumps(other))
    monkeypatch.setenv(
        "KUBECONFIG", os.pathsep.join([str(one), str(tmp_path / "two"), str(tmp_path / "none")])
    )
    async with Client.from_kubeconfig("dev", library=library) as client:
        assert client.server == "http://two:2"
    async with Client.from_kubeconfig("main", library=library) as client:
        assert client.server == "http://one:1"
    with pytest.raises(ConfigError, match=r"context prod.*prod"):
        await Client.from_kubeconfig("prod", library=library).open()


async def test_a_path_that_is_given_is_one_whatever_is_in_it(library: str, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / f"12{os.pathsep}30", "http://x:1", {"token": "t"})
    async with Client.from_kubeconfig(path=path, library=library) as client:
        assert client.server == "http://x:1"


async def test_a_client_stays_with_the_context_that_it_began_with(library: str, tmp_path: Path) -> None:
    """A change of the current context, or of the context's server, does not redirect a running client."""
    path, plugin = tmp_path / "config", Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard), serve_guarded("other") as (other, _):

        def write(current: str, main: str, url: str = server.url) -> None:
            config = json.loads(write_kubeconfig(path, url, plugin.user()).read_text())
            config["contexts"][0]["name"], config["current-context"] = main, current
            config["clusters"].append({"name": "o", "cluster": {"server": other.url}})
            config["users"].append({"name": "o", "user": {"token": "other"}})
            config["contexts"].append({"name": "other", "context": {"cluster": "o", "user": "o"}})
            path.write_text(json.dumps(config))

        write("main", "main")
        async with Client.from_kubeconfig(path=path, library=library) as client:
            write("other", "main")
            guard.token = "two"
            plugin.gives(token="two")
            await client.get("/api")
            assert client.server == server.url
            guard.token = "three"
            for main, url, complaint in (
                ("renamed", server.url, "context main: among its contexts there is no 'main'"),
                ("main", other.url, f"the context.s server changed from {server.url} to {other.url}"),
            ):
                write("other", main, url)
                with pytest.raises(ApiError, match=rf"401 .*could not be renewed: .*{complaint}"):
                    await client.get("/api")
            assert len(plugin.runs) == 2
            guard.token = "two"
            await client.get("/api")  # what there is goes on
    assert not other.requests


async def test_client_with_credentials_does_not_become_anonymous(library: str, tmp_path: Path) -> None:
    """For example after a logout: an anonymous request gets 403, and 403 does not reload the kubeconfig."""
    path = tmp_path / "config"
    async with serve_guarded("one") as (server, guard):
        write_kubeconfig(path, server.url, {"token": "one"})
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
            guard.token = "two"
            write_kubeconfig(path, server.url, {})
            with pytest.raises(
                ApiError, match=r"401 .*could not be renewed: .*the user has no credentials any more"
            ):
                await client.get("/api")
            write_kubeconfig(path, server.url, {"token": "two"})
            await client.get("/api")
    assert server.tokens == ["Bearer one", "Bearer one", "Bearer one", "Bearer two"]


async def test_the_first_current_context_that_is_not_empty_counts(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in kubectl: an empty file has no sections."""
    for name in ("none", "first", "second"):
        config = json.loads(write_kubeconfig(tmp_path / name, f"http://{name}", {"token": name}).read_text())
        for section, key in (("clusters", "cluster"), ("users", "user")):
            config[section][0]["name"] = config["contexts"][0]["context"][key] = name
        config["contexts"][0]["name"] = name
        config["current-context"] = "" if name == "none" else name
        (tmp_path / name).write_text(json.dumps(config))
    (tmp_path / "empty").write_text("# nothing yet\n")
    for names in (("empty", "none", "first", "second"), ("first", "none", "empty")):
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(tmp_path / name) for name in names))
        async with Client.from_kubeconfig(library=library) as client:
            assert client.server == "http://first"
        async with Client.from_kubeconfig("none", library=library) as client:
            assert client.server == "http://none"
    (tmp_path / "empty").write_text("just text")
    with pytest.raises(ConfigError, match=r"empty: the file is not a kubeconfig"):
        await Client.from_kubeconfig(library=library).open()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config: the file is empty"),
        ("{", "config: it is not YAML: line 1: "),
        ("just text", "config: the file is not a kubeconfig"),
        ("[1, 2]", "config: the file is not a kubeconfig"),
        ('{"current-context": "main"}', "contexts"),
        ('{"current-context": "", "contexts": []}', "no context is given"),
    ],
)
async def test_a_file_that_is_no_kubeconfig(library: str, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        await Client.from_kubeconfig(path=path, library=library).open()
    assert str(path) in str(caught.value)


async def test_files_that_are_not_there(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client.from_kubeconfig(path=tmp_path / "none", library=library)
    with pytest.raises(
        ConfigError, match=r"none: no such file; set \$KUBECONFIG, or name the server by its URL$"
    ):
        await client.open()
    assert not caplog.records
    write_kubeconfig(tmp_path / "none", "http://x", {"token": "t"})
    await client.open()  # a failure is not for ever
    await client.close()
    for user in ({"tokenFile": "none.token"}, {"client-certificate": "none.crt", "client-key": "none.key"}):
        path = write_kubeconfig(tmp_path / "config", "https://x", user)
        with pytest.raises(ConfigError, match=r"(token file|client-certificate:) .*none\."):
            await Client.from_kubeconfig(path=path, library=library).open()
    authority: dict[str, Any] = {"server": "https://x", "certificate-authority": "none.crt"}
    path = write_kubeconfig(tmp_path / "config", user={"token": "t"}, **authority)
    with pytest.raises(ConfigError, match=r"current context: certificate-authority: .*none\.crt"):
        await Client.from_kubeconfig(path=path, library=library).open()


@pytest.mark.parametrize("field", ["tokenFile", "client-certificate", "the kubeconfig"])
async def test_a_file_that_is_too_large_is_not_read_whole(library: str, tmp_path: Path, field: str) -> None:
    path = tmp_path / "config"
    large = path if field == "the kubeconfig" else tmp_path / "large"
    user = (
        {"client-certificate": "large", "client-key": "large"}
        if field == "client-certificate"
        else {field: "large"}
    )
    write_kubeconfig(path, "https://x", user)
    with large.open("ab") as file:
        file.truncate(1 << 40)  # a sparse terabyte
    with pytest.raises(ConfigError, match=f"{large} is larger than {LARGEST_FILE} bytes"):
        await Client.from_kubeconfig(path=path, library=library).open()


async def test_a_path_that_is_given_for_a_context(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``context`` is the first parameter: the error says how to pass a path."""
    monkeypatch.chdir(tmp_path)
    write_kubeconfig(tmp_path / "mine", "http://x", {"token": "t"})
    for default, complaint in (("mine", "there is no '.*'"), ("none", "no such file")):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / default))
        for given in ("/nope/config", "mine"):
            hint = rf"{complaint}; '{given}' looks like a path: use from_kubeconfig\(path='{given}'\)$"
            with pytest.raises(ConfigError, match=hint):
                await Client.from_kubeconfig(given, library=library).open()
        with pytest.raises(ConfigError, match=rf"{complaint}(; set .*)?$"):
            await Client.from_kubeconfig("prod", library=library).open()


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"server": ""}, "has no server"),
        ({"server": "localhost:8080"}, "URL"),
        ({"server": "http://x", "proxy-url": "socks5://localhost:1080"}, "proxy"),
        (
            {"server": "https://x", "insecure-skip-tls-verify": True, "certificate-authority": "/ca.crt"},
            "certificate-authority /ca.crt has no effect together with insecure-skip-tls-verify",
        ),
        (
            {"server": "https://x", "insecure-skip-tls-verify": "false"},
            "'c' must be true or false, not 'false'",
        ),
    ],
)
async def test_a_cluster_that_cannot_be_reached(
    library: str, tmp_path: Path, cluster: Any, message: str
) -> None:
    path = write_kubeconfig(tmp_path / "config", user={"token": "t"}, **cluster)
    with pytest.raises(ConfigError, match=message):
        await Client.from_kubeconfig(path=path, library=library).open()


@pytest.mark.parametrize(("kind", "key"), [("clusters", "cluster"), ("users", "user")])
async def test_a_context_of_what_is_not_there(library: str, tmp_path: Path, kind: str, key: str) -> None:
    """A misspelt user is an error, and not an anonymous request."""
    path = write_kubeconfig(tmp_path / "config", "http://x", {"token": "t"})
    config = json.loads(path.read_text())
    config["contexts"][0]["context"][key] = "typo"
    path.write_text(json.dumps(config))
    complaint = f"context 'main' names the {key} 'typo', which is not among the {kind}"
    with pytest.raises(ConfigError, match=complaint):
        await Client.from_kubeconfig(path=path, library=library).open()


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            {"auth-provider": {"name": "azure"}},
            "auth-provider 'azure' is not supported .*: use an exec plugin",
        ),
        ({"auth-provider": "oidc"}, "auth-provider must be a section of its own, not a str"),
        (
            {"auth-provider": {"name": "oidc", "config": ["x"]}},
            "config must be a section of its own, not a list",
        ),
        ({"exec": "aws"}, "exec must be a section of its own, not a str"),
        ({"token": 123}, "token must be text, not a int: put it in quotes"),
        ({"token": "t", "username": "ada"}, "both a token and a password"),
        ({"client-certificate": "/ada.crt"}, "client-certificate /ada.crt is set, but client-key is missing"),
        ({"client-key-data": "eA=="}, "client-key-data is set, but client-certificate is missing"),
        ({"client-certificate-data": "%"}, "client-certificate-data is not base64"),
    ],
)
async def test_invalid_user_is_refused(library: str, tmp_path: Path, user: Any, message: str) -> None:
    path = write_kubeconfig(tmp_path / "config", "https://x", user)
    with pytest.raises(ConfigError, match=message):
        await Client.from_kubeconfig(path=path, library=library).open()


async def test_a_token_that_no_header_can_carry(library: str) -> None:
    with pytest.raises(ConfigError, match=r"not allowed in a header"):
        await Client.from_url("http://x", token="a\nb", library=library).open()


async def test_passwords_and_impersonation(library: str, tmp_path: Path) -> None:
    async def answer(request: Any) -> Any:
        return json_of(POD_LIST)

    async with serve(answer) as server:
        user: dict[str, Any] = {"username": "ada", "password": "lovelace", "as": "grace", "as-uid": "42"}
        path = write_kubeconfig(tmp_path / "config", server.url, user)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
        assert server.tokens == ["Basic " + base64.b64encode(b"ada:lovelace").decode()]
        assert server.requests[0].headers["Impersonate-User"] == "grace"
        assert server.requests[0].headers["Impersonate-Uid"] == "42"
        path = write_kubeconfig(tmp_path / "config", server.url, {**user, "as-groups": ["g"]})
        with pytest.raises(ConfigError, match=r"as-groups"):
            await Client.from_kubeconfig(path=path, library=library).open()
        path = write_kubeconfig(tmp_path / "config", server.url, {"token": "t", "as-uid": "42"})
        with pytest.raises(ConfigError, match=r"as-uid without as"):
            await Client.from_kubeconfig(path=path, library=library).open()


async def test_client_certificates(library: str, tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = authority.client("ada")
    (tmp_path / "ada.crt").write_bytes(certificate)
    (tmp_path / "ada.key").write_bytes(key)

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    inline = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    files = {"client-certificate": "ada.crt", "client-key": "ada.key"}
    async with serve(name, authority.server_context(wants_client=True)) as server:
        for user, expected in ((inline, "ada"), (files, "ada"), (None, ""), ({}, "")):
            path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                assert await client.get_json("/whoami") == expected


async def test_relative_paths_are_those_of_the_file_that_has_them(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in kubectl, if user and cluster come from different files."""
    authority = Authority()
    certificate, key = authority.client("ada")

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    for folder, files in (
        ("clusters", {"ca.crt": authority.pem}),
        ("users", {"a.crt": certificate, "a.key": key}),
    ):
        (tmp_path / folder).mkdir()
        for file, content in files.items():
            (tmp_path / folder / file).write_bytes(content)
    async with serve(name, authority.server_context(wants_client=True)) as server:
        user = {"client-certificate": "a.crt", "client-key": "a.key"}
        of_clusters, of_users = tmp_path / "clusters" / "config", tmp_path / "users" / "config"
        cluster: dict[str, Any] = {"server": server.url, "certificate-authority": "ca.crt"}
        config = json.loads(write_kubeconfig(of_clusters, user=user, **cluster).read_text())
        of_users.write_text(json.dumps({"users": config.pop("users")}))
        of_clusters.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", f"{of_clusters}{os.pathsep}{of_users}")
        async with Client.from_kubeconfig(library=library) as client:
            assert await client.get_json("/whoami") == "ada"


async def test_client_certificates_are_read_again_after_a_minute(library: str, tmp_path: Path) -> None:
    """A server that refuses the old one during the TLS handshake sends no 401."""
    authority, stranger, wall = Authority(), Authority(), 1_000_000.0

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    def issue(by: Authority, name: str) -> None:
        certificate, key = by.client(name)
        (tmp_path / "client.crt").write_bytes(certificate)
        (tmp_path / "client.key").write_bytes(key)

    tls = authority.server_context(wants_client=True)
    tls.verify_mode = ssl.CERT_REQUIRED
    issue(stranger, "ada")
    async with serve(name, tls) as server:
        user = {"client-certificate": "client.crt", "client-key": "client.key"}
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            with pytest.raises(TransportError):
                await client.get("/whoami")
            issue(authority, "ada")
            wall += 61
            with pytest.raises(TransportError):
                await client.get("/whoami")
            await wait_renewed(client)
            for _ in range(2):
                assert await client.get_json("/whoami") == "ada"
                wall += 61
            await wait_renewed(client)
            assert await client.get_json("/whoami") == "ada"
        assert len({request.transport for request in server.requests}) == 1  # nothing has changed since


async def test_tls_is_verified(library: str, tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()

    async def answer(request: Any) -> Any:
        return json_of(POD_LIST)

    async with serve(answer, authority.server_context("127.0.0.1")) as server:
        user = {"token": "t"}
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=stranger.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            with pytest.raises(
                TransportError, match=r"certificate cannot be verified: .*certificate-authority"
            ):
                await ListWatch.for_resource(client, "v1", "pods").list()
        async with Client.from_url(server.url, library=library) as client:
            with pytest.raises(TransportError, match=r"certificate cannot be verified"):
                await client.stream("/api")
        trusting: Any = {"insecure-skip-tls-verify": True}
        path = write_kubeconfig(tmp_path / "config", server.url, user, **trusting)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
    async with serve(answer, authority.server_context("api.example.com")) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            with pytest.raises(TransportError, match=r"tls-server-name"):
                await client.get("/api")
        named: Any = {"tls-server-name": "api.example.com"}
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem, **named)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")


async def test_empty_fields_are_absent(library: str, tmp_path: Path) -> None:
    """As in kubectl."""
    authority = Authority()
    certificate, key = authority.client("ada")
    for file, content in (("ca.crt", authority.pem), ("ada.crt", certificate), ("ada.key", key)):
        (tmp_path / file).write_bytes(content)

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    async with serve(name, authority.server_context(wants_client=True)) as server:
        for empty in ("", None):
            cluster: Any = {"certificate-authority": "ca.crt", "certificate-authority-data": empty}
            cluster |= dict.fromkeys(("tls-server-name", "proxy-url", "insecure-skip-tls-verify"), empty)
            user: dict[str, Any] = {"client-certificate": "ada.crt", "client-key": "ada.key"}
            user |= dict.fromkeys(("client-certificate-data", "client-key-data", "token", "username"), empty)
            path = write_kubeconfig(tmp_path / "config", server.url, user | {"exec": empty}, **cluster)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                assert await client.get_json("/whoami") == "ada"
            user = dict.fromkeys(("client-certificate", "client-key", "tokenFile"), empty) | {"token": "t"}
            data: Any = {"certificate-authority": empty}
            path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem, **data)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                assert await client.get_json("/whoami") == ""
            assert server.tokens.pop() == "Bearer t"


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"username": "ada", "password": "secret"}, "Basic YWRhOnNlY3JldA=="),
        ({"tokenFile": "token"}, "Bearer of-file"),
        ({"token": "t", "tokenFile": "token"}, "Bearer of-file"),
        ({"token": "t", "tokenFile": "none"}, "Bearer t"),
        ({"client-certificate": "ada.crt", "client-key": "ada.key"}, ""),
        ({}, "Bearer of-plugin"),
    ],
)
async def test_of_several_credentials_client_gos_choice_is_sent(
    library: str, tmp_path: Path, user: dict[str, str], shown: str
) -> None:
    """A plugin runs only if there are no other credentials (``exec.UpdateTransportConfig``)."""
    authority, plugin = Authority(), Plugin(tmp_path)
    certificate, key = authority.client("ada")
    (tmp_path / "ada.crt").write_bytes(certificate)
    (tmp_path / "ada.key").write_bytes(key)
    (tmp_path / "token").write_text("of-file")
    plugin.gives(token="of-plugin")

    async def answer(request: Any) -> Any:
        return json_of("{}")

    async with serve(answer, authority.server_context()) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, user | plugin.user(), ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
        assert server.tokens == [shown]
    assert len(plugin.runs) == ("plugin" in shown)


async def test_a_name_without_a_password(library: str, tmp_path: Path) -> None:
    async with serve_guarded("t") as (server, _):
        path = write_kubeconfig(tmp_path / "config", server.url, {"username": "ada"})
        async with Client.from_kubeconfig(path=path, library=library) as client:
            with pytest.raises(ApiError, match="401"):
                await client.get("/api")
        assert server.tokens[0] == "Basic YWRhOg=="


@pytest.mark.parametrize("url", ["http://cluster.example", "http://localhost:8080"])
async def test_credentials_are_not_sent_in_clear(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    """As in client-go, which runs no plugin then. Loopback is safe, unless requests go through a proxy."""
    plugin = Plugin(tmp_path)
    plugin.gives(token="of-plugin")

    async def answer(request: Any) -> Any:
        return json_of("{}")

    async with serve(answer) as proxy:
        for user in (plugin.user(), {"token": "t", "as": "ada"}, {"username": "ada", "password": "secret"}):
            by: Any = {"proxy-url": proxy.url}
            path = write_kubeconfig(tmp_path / "config", url, user, **by)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                await client.get("/api")
            says = f"{url}: the user's credentials are not sent, as the URL is not https"
            assert [record.getMessage() for record in caplog.records] == [says]
            caplog.clear()
        assert proxy.tokens == ["", "", ""]
        assert not plugin.runs
        assert not any("Impersonate-User" in request.headers for request in proxy.requests)


async def test_urls_that_kubectl_takes(library: str, tmp_path: Path) -> None:
    authority = Authority()
    async with serve_guarded("t", authority.server_context()) as (server, _):
        user, own = {"token": "t"}, server.url.removeprefix("https://")
        for url in (f"HTTPS://{own}", f"https://{own}/?x=1#y"):
            path = write_kubeconfig(tmp_path / "config", url, user, ca=authority.pem)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                await client.get("/api")
                assert client.server == server.url
        path = write_kubeconfig(tmp_path / "config", f"https://ada:secret@{own}", user, ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            with pytest.raises(ApiError, match="401"):
                await client.get("/api")
        assert server.tokens[2] == "Basic YWRhOnNlY3JldA=="  # what the URL says comes first


async def test_a_relative_path_in_a_directory_that_is_gone(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(
        ConfigError, match=r"^kubeconfig: cannot resolve a relative path, as the working directory is gone: "
    ):
        await Client.from_kubeconfig(path="config", library=library).open()


async def test_a_path_means_the_same_file_wherever_the_process_goes(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    (tmp_path / "elsewhere").mkdir()
    async with serve_guarded("one") as (server, guard):
        write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        for given in ("path", "environment"):
            monkeypatch.chdir(tmp_path)
            monkeypatch.setenv("KUBECONFIG", "config")
            path = "config" if given == "path" else None
            async with Client.from_kubeconfig(path=path, library=library) as client:
                monkeypatch.chdir(tmp_path / "elsewhere")
                guard.token = given
                plugin.gives(token=given)
                await client.get("/api")


@pytest.mark.parametrize("becomes", [None, "", "clusters: [", "- a list"])
async def test_a_plugin_is_asked_again_when_the_kubeconfig_is_gone(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, becomes: str | None
) -> None:
    """Deleted, emptied or damaged: its last content stays in use, as client-go reads it only once."""
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with Client.from_kubeconfig(path=path, library=library) as client:
            if becomes is None:
                path.unlink()
            else:
                path.write_text(becomes)
            for token in ("two", "three"):
                guard.token = token
                plugin.gives(token=token)
                await client.get("/api")
            write_kubeconfig(path, server.url, {"token": "four"})
            guard.token = "four"
            await client.get("/api")
    warnings = [
        record.getMessage() for record in caplog.records if "cannot be used any more" in record.message
    ]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"kubeconfig {path} cannot be used any more (")


async def test_one_of_several_kubeconfigs_is_gone(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        cluster, user = tmp_path / "cluster", tmp_path / "user"
        config = json.loads(write_kubeconfig(cluster, server.url, plugin.user()).read_text())
        user.write_text(json.dumps({"users": config.pop("users")}))
        cluster.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", f"{cluster}{os.pathsep}{user}")
        async with Client.from_kubeconfig(library=library) as client:
            user.unlink()
            guard.token = "two"
            plugin.gives(token="two")
            await client.get("/api")


async def test_a_kubeconfig_that_is_a_pipe_is_read_once(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        text = write_kubeconfig(tmp_path / "config", server.url, plugin.user()).read_text()
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(text,))
        writer.start()
        async with Client.from_kubeconfig(path=pipe, library=library) as client:
            writer.join()
            guard.token = "two"
            plugin.gives(token="two")
            await client.get("/api")
    assert not caplog.records


async def test_missing_certificate_files_are_logged_once(
    library: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests succeed for ten minutes without them, also after the authority is replaced."""
    authority, wall = Authority(), 1_000_000.0
    certificate, key = authority.client("ada")
    for file, content in (("ca.crt", authority.pem), ("ada.crt", certificate), ("ada.key", key)):
        (tmp_path / file).write_bytes(content)

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    async with serve(name, authority.server_context(wants_client=True)) as server:
        user = {"client-certificate": "ada.crt", "client-key": "ada.key"}
        cluster: Any = {"certificate-authority": "ca.crt"}
        path = write_kubeconfig(tmp_path / "config", server.url, user, **cluster)
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            (tmp_path / "ada.crt").unlink()
            (tmp_path / "ada.key").unlink()
            for minute in range(60):
                wall += 10
                assert await client.get_json("/whoami") == "ada"
                await wait_renewed(client)
                if minute == 30:
                    (tmp_path / "ca.crt").write_bytes(authority.pem + Authority().pem)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line.partition(" cannot be used any more")[0] for line in warnings] == [
        f"client-certificate {tmp_path}/ada.crt",
        f"client-key {tmp_path}/ada.key",
    ]


async def test_a_token_file_that_is_gone_keeps_the_newest_token(library: str, tmp_path: Path) -> None:
    wall = 1_000_000.0
    (tmp_path / "token").write_text("one")
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, {"tokenFile": "token"})
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            (tmp_path / "token").write_text("two")
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            guard.token = "two"
            (tmp_path / "token").unlink()
            for _ in range(3):
                wall += 61
                await client.get("/api")
                await wait_renewed(client)
    assert server.tokens[-1] == "Bearer two"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("indent", [None, "\t"])
async def test_kubeconfigs_in_the_encodings_of_kubectl(
    library: str, tmp_path: Path, encoding: str, indent: str | None
) -> None:
    """Windows tools write UTF-16, or a byte order mark before JSON."""
    async with serve_guarded("secret") as (server, _):
        path = write_kubeconfig(tmp_path / "config", server.url, {"token": "secret"})
        config = json.loads(path.read_text())
        config["users"].append({"name": "jürgen", "user": {}})
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        path.write_bytes((mark + json.dumps(config, indent=indent, ensure_ascii=False)).encode(encoding))
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
        path.write_bytes(b"name: j\xfcrgen")
        with pytest.raises(ConfigError, match=r"it is not UTF-8, at byte 7: save it as UTF-8"):
            await Client.from_kubeconfig(path=path, library=library).open()


def test_files_are_read_as_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    """Including file names and the plugin's arguments and variables."""
    script = (
        f"#!{sys.executable}\n"
        + """if True:
        import os, sys
        said = os.fsencode(sys.argv[1]), os.environb[b"WHO"], b"j\\xc3\\xbcrgen" in os.environb[b"KUBERNETES_EXEC_INFO"]
        assert said == (b"j\\xc3\\xbcrgen", b"j\\xc3\\xbcrgen", True), said
        print('{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t"}}')
        """
    )
    (tmp_path / "plügin").write_text(script, encoding="utf-8")
    (tmp_path / "plügin").chmod(0o700)
    (tmp_path / "jürgen.crt").write_bytes(Authority().pem)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plügin",
        "args": ["jürgen"],
        "env": [{"name": "WHO", "value": "jürgen"}],
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"who": "jürgen"}}
    cluster: Any = {"certificate-authority": "jürgen.crt", "extensions": [extension]}
    path = write_kubeconfig(tmp_path / "config", "https://x", {"exec": plugin}, **cluster)
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False), encoding="utf-8")
    program = (
        "import asyncio, locale, sys; from aioinformer import Client\n"
        "assert locale.getpreferredencoding(False).lower() not in ('utf-8', 'utf8'), 'the test is of no use'\n"
        f"asyncio.run(Client.from_kubeconfig(path={str(path)!r}).open())"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


async def test_names_and_passwords_of_urls_are_sent_as_utf_8(library: str, tmp_path: Path) -> None:
    """As in Go; aiohttp sends Latin-1, and drops other characters."""

    async def answer(request: Any) -> Any:
        return json_of(POD_LIST)

    expected = "Basic " + base64.b64encode("jürgen:pä\u0141s:ß".encode()).decode()
    async with serve(answer) as server:
        for credentials in ("jürgen:pä\u0141s:ß", "j%C3%BCrgen:p%C3%A4%C5%81s%3A%C3%9F"):
            url = server.url.replace("//", f"//{credentials}@")
            async with Client.from_url(url, library=library) as client:
                await client.get("/api")
            proxied: Any = {"proxy-url": url}
            path = write_kubeconfig(tmp_path / "config", url, {})
            async with Client.from_kubeconfig(path=path, library=library) as client:
                await client.get("/api")
            path = write_kubeconfig(tmp_path / "config", "http://somewhere.example", {}, **proxied)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                await client.get("/api")
            said = [request.headers for request in server.requests[-3:]]
            assert [headers.get("Authorization") for headers in said] == [expected, expected, None]
            assert said[2]["Proxy-Authorization"] == expected


@pytest.mark.parametrize(
    ("user", "origin"),
    [
        ({"token": "t"}, "the credentials came from the token of user 'u' in kubeconfig"),
        ({"tokenFile": "file"}, "the credentials came from tokenFile .*/file of user 'u' in kubeconfig"),
        ({"username": "a", "password": "b"}, "came from username and password of user 'u' in kubeconfig"),
        ({"exec": {}}, r"the credentials came from exec plugin \./plugin of user 'u' in kubeconfig"),
        ({}, "no credentials were sent: user 'u' in kubeconfig .*config has none"),
        (None, "no credentials were sent: context 'main' in kubeconfig .*config names no user"),
    ],
)
async def test_a_401_says_where_the_credentials_came_from(
    library: str, tmp_path: Path, user: Any, origin: str
) -> None:
    (tmp_path / "file").write_text("from-file")
    plugin = Plugin(tmp_path)
    plugin.gives(token="from-plugin")
    async with serve_guarded("another") as (server, _):
        given = plugin.user() if user and "exec" in user else user
        path = write_kubeconfig(tmp_path / "config", server.url, given)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            with pytest.raises(ApiError, match=rf"401 Unauthorized: Unauthorized; .*{origin}") as caught:
                await client.get_json("/api")
            assert str(caught.value).count("credentials") == 1


async def test_a_401_of_a_url_says_where_the_credentials_came_from(library: str) -> None:
    async with serve_guarded("another") as (server, _):
        for url, token, origin in (
            (server.url, "t", "the credentials came from the token given to Client.from_url"),
            (server.url, None, "no credentials were sent: pass a token to Client.from_url"),
            (server.url.replace("//", "//a:b@"), None, "from the name and password in the server's URL"),
        ):
            async with Client.from_url(url, token, library=library) as client:
                with pytest.raises(ApiError, match=rf"401 Unauthorized: Unauthorized; .*{origin}"):
                    await client.get_json("/api")
