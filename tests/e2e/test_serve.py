"""``aioinformer serve`` as a program."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioinformer import Client, ConfigError, ForbiddenError, Resource
from aioinformer.cli.serve import ServeOptions, run_serve

from .definitions import CAVE_DEFINITION, cave
from .processes import Ended, Running, started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts

SCRIPT = (
    "import json, os; print(json.load(open(os.environ['KUBECONFIG']))['clusters'][0]['cluster']['server'])"
)


@asynccontextmanager
async def serve_in_process(*arguments: str) -> AsyncIterator[Running]:
    environment = {"XDG_CACHE_HOME": "/nonexistent", "NO_COLOR": "1"}
    async with started_program(
        sys.executable, "-m", "aioinformer", "serve", *arguments, environment=environment
    ) as program:
        yield program


async def outcome(*arguments: str) -> Ended:
    async with serve_in_process(*arguments) as program:
        return await program.end()


def folder_of_manifests(folder: Path) -> Path:
    """The objects in an order in which none of the first could be applied."""
    (folder / "below").mkdir(parents=True)
    (folder / "a.json").write_text(
        json.dumps({**cave("deep"), "apiVersion": "example.com/v1", "kind": "Cave"})
    )
    configmap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: '1'}\n"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    (folder / "b.yaml").write_text(f"{configmap}---\n---\n{namespace}")
    (folder / "below" / "c.yml").write_text(json.dumps(CAVE_DEFINITION))
    (folder / "notes.txt").write_text("no manifest")
    return folder


async def test_manifests_audit_and_saved_state(tmp_path: Path) -> None:
    manifests = folder_of_manifests(tmp_path / "manifests")
    kubeconfig, state, audit = tmp_path / "kubeconfig", tmp_path / "state.json", tmp_path / "audit"
    options = ("--load", str(manifests), "--save", str(state), "--audit", str(audit))
    async with serve_in_process("--kubeconfig", str(kubeconfig), *options, "--tls", "--rbac") as program:
        assert "with 4 objects applied" in await program.output.next()
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            deep = await Resource(client, "example.com/v1", "caves").get("default/deep")
            assert (await Resource(client, "configmaps").get("shop/a"))["data"] == {"k": "1"}
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0
    assert not kubeconfig.exists()
    requests = [json.loads(line) for line in audit.read_text().splitlines()]
    (read,) = (request for request in requests if (request["verb"], request.get("name")) == ("get", "deep"))
    assert (read["resource"], read["namespace"], read["status"]) == ("caves.example.com", "default", 200)
    async with serve_in_process("--kubeconfig", str(kubeconfig), "--load", str(state)) as program:
        await program.output.next()
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            assert await Resource(client, "example.com/v1", "caves").get("default/deep") == deep
        program.signal(signal.SIGINT)
        assert (await program.end()).code == 0


async def test_command_has_the_kubeconfig_and_gives_the_exit_code() -> None:
    ended = await outcome("--", sys.executable, "-c", f"{SCRIPT}; raise SystemExit(3)")
    assert ended.code == 3
    assert "http://127.0.0.1:" in ended.output.splitlines()[1]


async def test_command_ends_with_the_server() -> None:
    sleep = "import time; print('started', flush=True); time.sleep(600)"
    async with serve_in_process("--", sys.executable, "-c", sleep) as program:
        await program.output.next()
        assert await program.output.next() == "started"
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_workloads_faults_and_token(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    options = ("--workloads", "--token", "secret", "--fault", "403?verb=list&times=1")
    async with serve_in_process("--kubeconfig", str(kubeconfig), *options) as program:
        await program.output.next()
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            pods = Resource(client, "pods")
            with pytest.raises(ForbiddenError):
                await pods.list()
            container = {"name": "main", "image": "example.com/main"}
            await pods.create(
                {"metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": [container]}}
            )
            await pods.wait_for("default/a", "condition=Ready", 30)


async def test_mistake_is_one_line() -> None:
    ended = await outcome("--fault", "nope")
    assert ended.code == 1
    (line,) = ended.errors.splitlines()
    assert "--fault: unknown fault 'nope'" in line


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.yaml", "a: [", "bad.yaml: "),
        ("none.yaml", None, "No such file or directory"),
        ("nameless.yaml", "apiVersion: v1\nkind: Pod\n", "document 1: the object has no metadata.name"),
        ("deep.yaml", "[" * 9000, "deep.yaml: nested too deeply"),
        ("text.yaml", "hello", "document 1: not an object: 'hello'"),
        ("empty.yaml", "---\n", "no objects in files that end with .yaml"),
        ("odd.yaml", "apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: x}\n", "document 1: Odd x: "),
        (
            "invalid.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n",
            "document 1: Pod x: ",
        ),
        (
            "state.json",
            '{"kind":"EmbeddedServerState","resourceVersion":1,"objects":[{}]}',
            "state.json: not the",
        ),
    ],
)
async def test_file_that_cannot_be_loaded_is_named(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        await run_serve(ServeOptions(kubeconfig=tmp_path / "kubeconfig", load=[tmp_path / name]))


async def test_options_that_cannot_work(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: .* choose another --port"):
            await run_serve(ServeOptions(port=port))
    with pytest.raises(ConfigError, match=r"--audit .*No such file"):
        await run_serve(ServeOptions(audit=str(tmp_path / "no" / "audit")))
    with pytest.raises(ConfigError, match="there is no folder"):
        await run_serve(ServeOptions(kubeconfig=tmp_path / "no" / "kubeconfig"))
    with pytest.raises(ConfigError, match="no-such-command: No such file"):
        await run_serve(ServeOptions(kubeconfig=tmp_path / "kubeconfig", command=["no-such-command"]))
