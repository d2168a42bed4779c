"""exec_plugin.py: credentials from a command."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aioinformer import (
    Client,
    ConfigError,
    TransportError,
)
from aioinformer.client import exec_plugin
from aioinformer.client.kubeconfig import KubeConfig

from ..listwatch.streams import begin, json_of, serve
from ..steps import until
from .clusters import Authority, Plugin, client_name, on_clock, serve_guarded, wait_renewed, write_kubeconfig


async def test_an_exec_plugin_gives_the_token(library: str, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        user = plugin.user(provideClusterInfo=True, env=[{"name": "A", "value": "1"}], args=["x"])
        path = write_kubeconfig(tmp_path / "config", server.url, user)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
            await client.get("/api")
            assert len(plugin.runs) == 1
            assert plugin.runs[0]["spec"] == {"interactive": False, "cluster": {"server": server.url}}
            guard.token = "two"
            plugin.gives(token="two")
            await client.get("/api")
            assert len(plugin.runs) == 2
    assert server.tokens == ["Bearer one"] * 3 + ["Bearer two"]


async def test_plugin_gets_the_cluster_info(library: str, tmp_path: Path) -> None:
    """As in client-go: the certificate authority as data, and the cluster's extension for plugins."""
    authority, plugin = Authority(), Plugin(tmp_path)
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    plugin.gives(token="one")
    cluster: dict[str, Any] = {
        "server": "https://x:1",
        "certificate-authority": "ca.crt",
        "extensions": [
            {"name": "example.com", "extension": {"a": 1}},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}},
        ],
    }
    path = write_kubeconfig(tmp_path / "config", user=plugin.user(provideClusterInfo=True), **cluster)
    async with Client.from_kubeconfig(path=path, library=library):
        pass
    assert plugin.runs[0]["spec"]["cluster"] == {
        "server": "https://x:1",
        "certificate-authority-data": base64.b64encode(authority.pem).decode(),
        "config": {"audience": "me"},
    }


async def test_a_plugin_runs_again_when_its_credentials_are_about_to_expire(
    library: str, tmp_path: Path
) -> None:
    plugin, now = Plugin(tmp_path), datetime.now(UTC)
    wall = now.timestamp()
    plugin.gives(token="one", expirationTimestamp=(now + timedelta(minutes=20)).isoformat())
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            await client.get("/api")
            wall += 18.9 * 60
            await client.get("/api")
            assert len(plugin.runs) == 1
            wall += 0.2 * 60
            plugin.says("fail")
            await client.get("/api")  # what there is still does
            await wait_renewed(client)
            plugin.says("wait")
            wall += 11
            requests = [asyncio.ensure_future(client.get("/api")) for _ in range(2)]
            await plugin.hangs(asyncio.get_running_loop().create_future())
            await asyncio.gather(*requests)  # requests do not wait for each other
            plugin.gives(token="two")
            await wait_renewed(client)
            guard.token = "two"
            await client.get("/api")
            assert len(plugin.runs) == 3
    assert server.tokens == ["Bearer one"] * 5 + ["Bearer two"]


async def test_a_plugin_does_not_run_again_for_a_servers_certificate(library: str, tmp_path: Path) -> None:
    """As in client-go: its credentials stay valid. A changed certificate authority is loaded."""
    plugin, old, new = Plugin(tmp_path), Authority(), Authority()
    plugin.gives(token="one")
    path, tls = tmp_path / "config", new.server_context()
    async with serve_guarded("one", tls) as (server, guard):
        write_kubeconfig(path, server.url, plugin.user(), ca=old.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            for _ in range(3):
                with pytest.raises(TransportError, match="certificate cannot be verified"):
                    await client.get("/api")
            assert len(plugin.runs) == 1
            write_kubeconfig(path, server.url, plugin.user(args=["-v"]), ca=old.pem)
            for _ in range(3):
                with pytest.raises(TransportError, match="certificate cannot be verified"):
                    await client.get("/api")
            assert len(plugin.runs) == 2  # by another section it may give others
            write_kubeconfig(path, server.url, plugin.user(args=["-v"]), ca=new.pem)
            await client.get("/api")
            assert len(plugin.runs) == 2
            guard.token = "two"
            plugin.gives(token="two")
            await client.get("/api")
            assert len(plugin.runs) == 3
    assert server.tokens == ["Bearer one", "Bearer one", "Bearer two"]


async def test_expired_credentials_are_not_sent(library: str, tmp_path: Path) -> None:
    plugin, now = Plugin(tmp_path), datetime.now(UTC)
    wall = now.timestamp()
    plugin.gives(token="one", expirationTimestamp=(now + timedelta(minutes=20)).isoformat())
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            wall += 20.1 * 60
            plugin.says("fail")
            await client.get("/api")  # but if there are no others: the server's clock may be behind
            plugin.gives(token="two")
            guard.token = "two"
            wall += 11
            await client.get("/api")
    assert server.tokens == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("fail", "failed with code 1: .*sorry"),
        ("no JSON", "did not write JSON"),
        ("{}", "did not write an ExecCredential"),
        (
            '{"apiVersion":"client.authentication.k8s.io/v1","status":{}}',
            "neither a token nor a client certificate",
        ),
        ('{"apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}}', "v1beta1"),
        (
            '{"apiVersion":"client.authentication.k8s.io/v1","status":{"clientKeyData":"t"}}',
            "without its key",
        ),
    ],
)
async def test_a_plugin_that_fails(library: str, tmp_path: Path, said: str, message: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.says(said)
    path = write_kubeconfig(tmp_path / "config", "https://x", plugin.user())
    with pytest.raises(ConfigError, match=message):
        await Client.from_kubeconfig(path=path, library=library).open()


async def test_a_plugin_that_is_not_installed(library: str, tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "brew install it"}}
    path = write_kubeconfig(tmp_path / "config", "https://x", user)
    with pytest.raises(ConfigError, match=r"no-such-plugin cannot be run: .*brew install it"):
        await Client.from_kubeconfig(path=path, library=library).open()
    path = write_kubeconfig(tmp_path / "config", "https://x", {"exec": {"command": "x"}})
    with pytest.raises(ConfigError, match=r"needs command and apiVersion"):
        await Client.from_kubeconfig(path=path, library=library).open()


@pytest.mark.parametrize("entry", [{"value": "a"}, "A=1"])
async def test_invalid_variable_is_refused(tmp_path: Path, entry: Any) -> None:
    config = Plugin(tmp_path).user(env=[entry])["exec"]
    with pytest.raises(ConfigError, match=r"each entry in env of the user's exec section needs a name"):
        await exec_plugin.run_exec_plugin(config, str(tmp_path), {})


async def test_variables_of_a_plugin(tmp_path: Path) -> None:
    """A variable without a value is empty, as in client-go, and not ``"None"``."""
    config = {
        "command": "sh",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["-c", f'printf \'<%s>\' "$A" "$B" "$C" >{tmp_path}/said; exit 1'],
        "env": [{"name": "A", "value": None}, {"name": "B"}, {"name": "C", "value": 1}],
    }
    with pytest.raises(ConfigError, match="failed with code 1"):
        await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
    assert (tmp_path / "said").read_text() == "<><><1>"


async def test_interactive_plugin_without_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(
        ConfigError, match=r"plugin is interactive \(Always\), but standard input is not a terminal"
    ):
        await exec_plugin.run_exec_plugin(plugin.user(interactiveMode="Always")["exec"], str(tmp_path), {})
    assert not plugin.runs
    await exec_plugin.run_exec_plugin(plugin.user(interactiveMode="IfAvailable")["exec"], str(tmp_path), {})


async def test_a_plugin_that_hangs_is_ended_with_its_children(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(tmp_path)
    plugin.says("hang")
    monkeypatch.setattr(exec_plugin, "PLUGIN_TIMEOUT", 0.5)
    path = write_kubeconfig(tmp_path / "config", "https://x", plugin.user())
    with pytest.raises(ConfigError, match=r"did not end within 0.5 seconds"):
        await Client.from_kubeconfig(path=path, library=library).open()


async def test_plugin_with_endless_output_is_killed(tmp_path: Path) -> None:
    script = f"echo $$ >{tmp_path}/pid; exec yes"
    config = {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1", "args": ["-c", script]}
    with pytest.raises(ConfigError, match=r"^exec plugin \S*sh wrote more than 1048576 bytes$"):
        async with asyncio.timeout(20):
            await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_slow_plugin_is_logged_with_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It may ask the user to log in."""
    monkeypatch.setattr(exec_plugin, "PLUGIN_TIMEOUT", 0.8)
    monkeypatch.setattr(exec_plugin, "PROGRESS_PERIOD", 0.3)
    config = {
        "command": "sh",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["-c", "echo please visit >&2; sleep 600"],
    }
    with pytest.raises(ConfigError, match=r"sh did not end within 0\.8 seconds: please visit$"):
        await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
    messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line.partition("has run for ")[2] for line in messages] == [
        "0.3 s: please visit",
        "0.6 s: please visit",
    ]


async def test_plugin_at_a_terminal_has_no_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user sees its messages there."""
    monkeypatch.setattr(exec_plugin, "PLUGIN_TIMEOUT", 0.1)
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    terminal, inside = os.openpty()
    script = "echo please visit >&2; sleep 0.5; cat status.json"
    config = {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1", "args": ["-c", script]}
    monkeypatch.chdir(tmp_path)
    try:
        with os.fdopen(inside, "w") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            credential = await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
            monkeypatch.undo()
            assert credential.token == "one"
            assert os.read(terminal, 100) == b"please visit\r\n"
    finally:
        os.close(terminal)


class StandIn(io.StringIO):
    """A stream that claims to be a terminal and has no file descriptor."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["stdin", "stderr"])
async def test_stream_without_a_descriptor_is_not_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Programs may replace the standard streams by any object."""
    plugin, closed = Plugin(tmp_path), io.StringIO()
    plugin.gives(token="one")
    closed.close()
    for stream in (None, object(), StandIn(), closed):
        monkeypatch.setattr(sys, name, stream)
        credential = await exec_plugin.run_exec_plugin(plugin.user()["exec"], str(tmp_path), {})
        assert credential.token == "one"


async def test_a_plugin_is_found_by_our_path(tmp_path: Path) -> None:
    """As in Go: a PATH in the section does not matter."""
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    config = {
        "command": "sh",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": [
            "-c",
            f'test "$PATH" = /nowhere && while read -r line; do echo "$line"; done <{tmp_path}/status.json',
        ],
        "env": [{"name": "PATH", "value": "/nowhere"}],
    }
    (tmp_path / "status.json").write_text((tmp_path / "status.json").read_text() + "\n")
    assert (await exec_plugin.run_exec_plugin(config, str(tmp_path), {})).token == "one"


def is_at_end(pipe: int) -> bool:
    """Return whether every process has closed the other end of a pipe."""
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("cancelled", [False, True])
async def test_children_of_an_ended_plugin_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """They hold the pipes open that the runner reads to their end."""
    monkeypatch.setattr(exec_plugin, "PLUGIN_TIMEOUT", 30.0 if cancelled else 0.5)
    alive, said, script = tmp_path / "alive", tmp_path / "said", tmp_path / "plugin"
    os.mkfifo(alive)
    lives = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)  # ends when every process has closed the other end
    script.write_text(f"#!/bin/sh\nexec 3>{alive}\nsleep 600 &\necho >{said}\n")
    script.chmod(0o700)
    config = {"command": str(script), "apiVersion": "client.authentication.k8s.io/v1"}
    running = asyncio.ensure_future(exec_plugin.run_exec_plugin(config, str(tmp_path), {}))
    try:
        async with asyncio.timeout(20):
            await until(said.exists)
            if cancelled:
                running.cancel()
            with pytest.raises(asyncio.CancelledError if cancelled else ConfigError):
                await running
            await until(lambda: is_at_end(lives))
    finally:
        os.close(lives)


@pytest.mark.parametrize("code", [0, 3])
async def test_a_helper_that_a_plugin_leaves_behind_is_not_waited_for(tmp_path: Path, code: int) -> None:
    """As in client-go. It may keep the plugin's standard error open for as long as it runs."""
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    script = f"""
import os, pathlib, subprocess, sys
os.chdir({str(tmp_path)!r})
helper = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)  # it has nothing else; uvloop's own leak
pathlib.Path("helper").write_text(str(helper.pid))
print("sorry", file=sys.stderr, flush=True)
print(pathlib.Path("status.json").read_text(), flush=True)
os._exit({code})
"""
    config = {
        "command": sys.executable,
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["-c", script],
    }
    tasks = asyncio.all_tasks()
    try:
        async with asyncio.timeout(20):
            if code:
                with pytest.raises(ConfigError, match=r"failed with code 3: sorry$"):
                    await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
            else:
                assert (await exec_plugin.run_exec_plugin(config, str(tmp_path), {})).token == "one"
        assert asyncio.all_tasks() == tasks
    finally:
        os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)  # which fails of one that has ended


async def test_a_client_certificate_of_a_plugin_is_replaced(library: str, tmp_path: Path) -> None:
    authority, plugin, wall = Authority(), Plugin(tmp_path), datetime.now(UTC).timestamp()
    over = asyncio.Event()

    def issue(name: str) -> None:
        certificate, key = authority.client(name)
        plugin.gives(
            clientCertificateData=certificate.decode(),
            clientKeyData=key.decode(),
            expirationTimestamp=datetime.fromtimestamp(wall + 600, UTC).isoformat(),
        )

    async def name(request: Any) -> Any:
        if request.path == "/watch":
            answer = await begin(request)
            await over.wait()
            await answer.write(b"still there\n")
            return answer
        return json_of(f'"{client_name(request)}"')

    issue("ada")
    async with serve(name, authority.server_context(wants_client=True)) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user(), ca=authority.pem)
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            assert await client.get_json("/whoami") == "ada"
            stream = await client.stream("/watch")
            wall += 599
            issue("grace")
            assert await client.get_json("/whoami") == "ada"
            await wait_renewed(client)
            assert await client.get_json("/whoami") == "grace"
            over.set()
            assert await anext(stream) == b"still there\n"  # what was open before goes on
            await stream.aclose()


async def test_a_plugin_whose_certificate_cannot_be_used_runs_again(library: str, tmp_path: Path) -> None:
    """As in client-go: an unusable certificate is not reused."""
    authority, plugin, wall = Authority(), Plugin(tmp_path), datetime.now(UTC).timestamp()
    ada, grace = authority.client("ada"), authority.client("grace")

    def gives(certificate: bytes, key: bytes) -> None:
        plugin.gives(
            clientCertificateData=certificate.decode(),
            clientKeyData=key.decode(),
            expirationTimestamp=datetime.fromtimestamp(wall + 600, UTC).isoformat(),
        )

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    async with serve(name, authority.server_context(wants_client=True)) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user(), ca=authority.pem)
        client = on_clock(KubeConfig(path=path), library, lambda: wall)
        gives(ada[0], grace[1])
        with pytest.raises(
            ConfigError, match=r"config, .*clientCertificateData and clientKeyData cannot be used"
        ):
            await client.open()
        gives(*ada)
        async with client:
            assert await client.get_json("/whoami") == "ada"
            wall += 599
            gives(grace[0], ada[1])
            await client.get("/")
            await wait_renewed(client)
            gives(*grace)
            wall += 11
            assert await client.get_json("/whoami") == "grace"
    assert len(plugin.runs) == 4


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin"])
async def test_a_plugin_that_a_relative_entry_of_path_finds_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """As in Go, even if a later entry has it, too: others may have put it into the working directory."""
    plugin, before = Plugin(tmp_path), os.environ["PATH"]
    plugin.gives(token="one")
    (tmp_path / "bin").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    config = {"command": "plugin", "apiVersion": "client.authentication.k8s.io/v1"}
    for path in (f"{entry}{os.pathsep}{before}", f"{entry}{os.pathsep}{tmp_path}"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(
            ConfigError, match=r"exec plugin plugin is not run: a relative entry of PATH finds it"
        ):
            await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
    assert not plugin.runs
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{entry}{os.pathsep}{before}")
    assert (await exec_plugin.run_exec_plugin(config, str(tmp_path), {})).token == "one"


async def test_a_plugin_is_not_found_by_the_path_that_it_is_to_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (".", str(tmp_path)):
        env = [{"name": "PATH", "value": path}]
        config = {"command": "plugin", "apiVersion": "client.authentication.k8s.io/v1", "env": env}
        with pytest.raises(ConfigError, match=r"exec plugin plugin cannot be run: it is not in PATH"):
            await exec_plugin.run_exec_plugin(config, str(tmp_path), {})
    assert not plugin.runs
