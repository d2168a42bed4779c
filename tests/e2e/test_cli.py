"""The command line as a program: output and exit codes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer
from tests.kubernetes.kubectl import run_kubectl
from tests.kubernetes.process import free_ports
from tests.samples import configmap

from .api import CONFIGMAPS, PODS
from .clusters import Cluster, pod_manifest
from .conftest import REAL
from .definitions import CAVE_DEFINITION, CAVES, cave
from .processes import Ended, Lines, Running, started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts


@pytest.fixture(params=["secure", pytest.param("real", marks=REAL)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    chosen: Cluster = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def open_server() -> AsyncIterator[APIServer]:
    """An embedded server without TLS and token, as --server reaches it."""
    async with APIServer(seed=1) as server:
        yield server


def aioinformer(*args: str) -> AbstractAsyncContextManager[Running]:
    return started_program(
        sys.executable, "-m", "aioinformer", *args, environment={"COLUMNS": "200", "NO_COLOR": "1"}
    )


async def outcome(*args: str) -> Ended:
    """Run the program to its end."""
    async with aioinformer(*args) as program:
        return await program.end()


async def in_shell(command: str) -> Ended:
    """Run the program in a shell pipeline; return its own exit code."""
    command = f"{sys.executable} -m aioinformer {command}; exit ${{PIPESTATUS[0]}}"
    async with started_program("bash", "-c", command) as program:
        return await program.end()


def to(cluster: Cluster) -> tuple[str, ...]:
    return ("--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace)


async def events(lines: Lines, count: int) -> list[dict[str, Any]]:
    return [json.loads(await lines.next()) for _ in range(count)]


@pytest.mark.kubernetes
async def test_it_follows_what_kubectl_does(cluster: Cluster, kubernetes_binaries: Path) -> None:
    kubectl: list[str | Path] = [
        kubernetes_binaries / "kubectl",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cache-dir={cluster.folder / 'kubectl'}",
        f"--namespace={cluster.namespace}",
    ]
    manifest = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod_manifest("new")})
    before = await cluster.create(PODS, pod_manifest("before"))
    async with aioinformer("watch", "pods", *to(cluster), "-o", "jsonl") as program:
        first, synced = await events(program.output, 2)
        version = before["metadata"]["resourceVersion"]
        assert first == {
            "type": "ADDED",
            "key": cluster.key("before"),
            "resourceVersion": version,
            "initial": True,
        }
        assert (synced["type"], synced["count"]) == ("SYNCED", 1)
        assert int(synced["resourceVersion"]) >= int(version)
        await run_kubectl(kubectl, "create", "-f", "-", stdin=manifest)
        await run_kubectl(kubectl, "label", "pod", "new", "tier=front")
        await run_kubectl(kubectl, "delete", "pod", "new")
        assert [
            (event["type"], event["key"], event["initial"]) for event in await events(program.output, 4)
        ] == [
            ("ADDED", cluster.key("new"), False),
            ("MODIFIED", cluster.key("new"), False),
            ("MODIFIED", cluster.key("new"), False),  # marked for deletion
            ("DELETED", cluster.key("new"), False),
        ]
        program.signal(signal.SIGINT)
        assert await program.end() == (0, "", "")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
async def test_json_is_utf_8_whatever_the_locale_is(open_server: APIServer, encoding: str) -> None:
    for name, text in (("a", "plain"), ("b", "→ 東京")):
        open_server.create("v1", "configmaps", configmap(name, k=text), "default")
    async with started_program(
        sys.executable, "-m", "aioinformer", "watch", "cm", "--server", open_server.url, "-n", "default",
        "-o", "jsonl", "--full", "--until-synced", environment={"PYTHONIOENCODING": encoding},
    ) as program:  # fmt: skip
        ended = await program.end()
    *objects, synced = map(json.loads, ended.output.splitlines())
    assert {obj["object"]["data"]["k"] for obj in objects} == {"plain", "→ 東京"}
    assert (ended.code, ended.errors, synced["count"]) == (0, "", 2)


async def test_until_synced_it_prints_what_there_is_and_ends(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.create(CONFIGMAPS, configmap(name, k="1"))
    ended = await outcome("watch", "cm", *to(cluster), "-o", "jsonl", "--full", "--until-synced")
    *objects, synced = map(json.loads, ended.output.splitlines())
    assert (ended.code, ended.errors) == (0, "")
    assert {obj["key"]: obj["object"] for obj in objects} == await cluster.list(CONFIGMAPS)
    assert all(set(obj) == {"type", "key", "resourceVersion", "initial", "object"} for obj in objects)
    assert set(synced) == {"type", "count", "resourceVersion"}
    assert synced["count"] == 2


async def test_custom_resources_and_selectors(cluster: Cluster) -> None:
    await cluster.define(CAVE_DEFINITION)
    for name in ("deep", "flat"):
        await cluster.create(CAVES, cave(name))
    for resource in ("caves.example.com", "cave"):
        ended = await outcome(
            "watch",
            resource,
            *to(cluster),
            "--field-selector",
            "metadata.name=deep",
            "-o",
            "jsonl",
            "--until-synced",
        )
        assert [json.loads(line).get("key") for line in ended.output.splitlines()] == [
            cluster.key("deep"),
            None,
        ]


async def test_tables(cluster: Cluster) -> None:
    await cluster.create(PODS, pod_manifest("web", labels={"app": "web"}))
    ended = await outcome("watch", "pods", *to(cluster), "--until-synced", "-l", "app=web")
    header, row = ended.output.splitlines()
    assert header.split() == ["EVENT", "NAME", "STATUS", "AGE"]
    assert row.split()[:3] == ["ADDED", "web", "Pending"]
    assert ended.errors.startswith("synced: 1 object at version ")
    ended = await outcome("watch", "pods", *to(cluster), "--until-synced", "-o", "wide")
    header, row = ended.output.splitlines()
    assert header.split() == ["EVENT", "NAME", "STATUS", "AGE", "VERSION", "UID", "LABELS"]
    assert row.split()[-1] == "app=web"


async def test_cluster_scoped_resource_ignores_namespace(open_server: APIServer) -> None:
    open_server.create("v1", "nodes", {"metadata": {"name": "node-1"}})
    code, output, errors = await outcome(
        "watch", "no", "-n", "one", "--server", open_server.url, "--until-synced"
    )
    assert (code, output.split()[4:6]) == (0, ["ADDED", "node-1"])
    assert "nodes are cluster-scoped: -n is ignored" in errors.splitlines()[0]


async def test_all_namespaces_of_a_server_by_its_url(open_server: APIServer) -> None:
    for namespace in ("one", "two"):
        open_server.create("v1", "pods", pod_manifest("web"), namespace)
    ended = await outcome("watch", "po", "-A", "--server", open_server.url, "--until-synced")
    assert [line.split()[:3] for line in ended.output.splitlines()] == [
        ["EVENT", "NAMESPACE", "NAME"],
        ["ADDED", "one", "web"],
        ["ADDED", "two", "web"],
    ]


async def test_a_server_that_goes_away_and_comes_back(open_server: APIServer) -> None:
    open_server.create("v1", "pods", pod_manifest("web"))
    async with aioinformer("watch", "pods", "--server", open_server.url, "-o", "jsonl") as program:
        await events(program.output, 2)
        open_server.faults.refuse(cut=True)
        assert "watch pods in default" in await program.errors.next()
        while "cannot be reached" not in await program.errors.next():
            pass
        open_server.delete("v1", "pods", "web")
        open_server.faults.expire_history()
        await open_server.faults.accept()
        (deleted,) = await events(program.output, 1)
        assert (deleted["type"], deleted["key"]) == ("DELETED", "default/web")
        program.signal(signal.SIGTERM)
        code, _, errors = await program.end()
        assert code == 0
        assert "reachable again after" in errors
        assert errors.count("INFO") == 1


async def test_changed_fields_are_printed(open_server: APIServer) -> None:
    open_server.create("v1", "configmaps", {"metadata": {"name": "a"}, "data": {"k": "1", "j": "1"}})
    async with aioinformer("watch", "cm", "--server", open_server.url, "-o", "jsonl", "--diff") as program:
        await events(program.output, 2)
        open_server.patch("v1", "configmaps", "a", {"data": {"k": "2", "j": None}})
        (modified,) = await events(program.output, 1)
        assert modified["changes"] == [
            {"field": "data.k", "old": "1", "new": "2"},
            {"field": "data.j", "old": "1"},
        ]
        program.signal(signal.SIGTERM)
        await program.end()


async def test_ctrl_c_before_anything_was_answered(open_server: APIServer) -> None:
    frozen = open_server.faults.freeze(verb="watch")
    async with aioinformer("watch", "pods", "--server", open_server.url) as program:
        async with asyncio.timeout(30):
            while not open_server.count("watch"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        program.signal(signal.SIGINT)
        assert await program.end() == (0, "", "")
    frozen.remove()


@pytest.mark.parametrize("what", ["the server", "the list"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_interruption_with_until_synced_is_an_error(
    open_server: APIServer, what: str, number: int, code: int
) -> None:
    open_server.create("v1", "pods", pod_manifest("web"))
    if what == "the server":
        open_server.faults.freeze(matching=lambda request: request.path == "/api/v1")
    else:
        open_server.faults.freeze(resource="pods")
    async with aioinformer("watch", "pods", "--server", open_server.url, "--until-synced") as program:
        await program.errors.next()  # what it waits for
        program.signal(number)
        ended = await program.end()
    assert (ended.code, ended.output) == (code, "")
    assert ended.errors.endswith("aioinformer: interrupted before the whole list was printed\n")


async def test_timeout_of_the_list(open_server: APIServer) -> None:
    open_server.faults.freeze(resource="pods")
    args = ("watch", "pods", "--server", open_server.url, "--until-synced", "--timeout")
    for seconds in ("5", "60"):  # in which a busy machine has found the resource
        ended = await outcome(*args, seconds)
        if "to list its resources" not in ended.errors:
            break
    hopeless(ended, f"not synced after {seconds} s: not synced, 0 objects, 0 queued; pods")
    open_server.faults.freeze(matching=lambda request: request.path == "/api/v1")
    hopeless(await outcome(*args, "0.5"), f"not synced after 0.5 s: waiting for {open_server.url} to list")
    open_server.faults.clear()
    assert (await outcome(*args, "30")).code == 0


async def test_timeout_waits_for_an_unavailable_server(open_server: APIServer) -> None:
    args = ("watch", "pods", "--server", open_server.url, "--until-synced", "--timeout")
    open_server.faults.refuse()
    async with aioinformer(*args, "60") as program:
        assert "cannot connect" in await program.errors.next()
        open_server.faults.fail(503, matching=lambda request: request.path == "/api/v1")
        await open_server.faults.accept()
        assert (await program.end()).code == 0
    open_server.faults.fail(503, times=None, message="etcd is away")
    ended = await outcome(*args, "5")
    assert (ended.code, ended.output) == (1, "")
    assert "not synced after 5 s: waiting for" in ended.errors
    assert ended.errors.splitlines()[-1].endswith(
        "last error: get /api/v1: 503 ServiceUnavailable: etcd is away"
    )
    open_server.faults.clear()
    hopeless(await outcome("watch", "podz", *args[2:], "60"), "has no resource 'podz'")


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_respected(open_server: APIServer, status: int) -> None:
    args = ("watch", "pods", "--server", open_server.url, "--until-synced")
    open_server.faults.fail(status, retry_after=1)
    code, _, errors = await outcome(*args)
    assert (code, errors.count("; retrying")) == (0, 1)
    open_server.faults.fail(status)
    hopeless(await outcome(*args), f"get /api/v1: {status}")


async def test_closed_pipe_is_no_error(open_server: APIServer) -> None:
    for number in range(2000):
        open_server.create("v1", "pods", pod_manifest(f"web-{number}"))
    code, output, errors = await in_shell(f"watch pods --server {open_server.url} | head -1")
    assert (code, errors) == (0, "")
    assert output.startswith("EVENT")
    code, output, errors = await in_shell("demo --seconds 3 | head -1")
    assert (code, errors) == (0, "")
    assert output.startswith("an API server at")


async def test_full_disk_is_an_error(open_server: APIServer) -> None:
    open_server.create("v1", "pods", pod_manifest("web"))
    for command in ("--help", "watch --help", "--version", f"watch pods --server {open_server.url}", "demo"):
        hopeless(await in_shell(f"{command} > /dev/full"), "cannot be written: No space left on device")


@pytest.mark.parametrize("command", ["watch pods --server", "bench --server"])
async def test_closed_stdout_is_an_error(open_server: APIServer, command: str) -> None:
    hopeless(await in_shell(f"{command} {open_server.url} >&-"), "cannot be written: Bad file descriptor")
    assert not open_server.count("list")


REASONS = {
    "unknown": (["watch", "cauldrons"], "has no resource 'cauldrons'"),
    "misspelt": (["watch", "podz"], "has no resource 'podz'. Did you mean 'pods'?"),
    "misspelt, of a group": (
        ["watch", "leeses.coordination.k8s.io"],
        "Did you mean 'leases.coordination.k8s.io'?",
    ),
    "unknown group": (["watch", "caves.absent.example.com"], "has no resource 'caves.absent.example.com'"),
    "label selector": (["watch", "pods", "-l", "app in (web"], "unable to parse requirement"),
    "field selector": (["watch", "pods", "--field-selector", "data.k=1"], "data.k"),
}


@pytest.mark.parametrize(("args", "reason"), REASONS.values(), ids=REASONS)
async def test_errors_are_one_line(cluster: Cluster, args: list[str], reason: str) -> None:
    hopeless(await outcome(*args, *to(cluster)), reason)


async def test_a_forbidden_resource(cluster: Cluster) -> None:
    await cluster.forbid()
    hopeless(await outcome("watch", "configmaps", *to(cluster), *powerless(cluster)), "403 Forbidden")


async def test_a_wrong_token(cluster: Cluster) -> None:
    config = json.loads(cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": "wrong"}
    path = cluster.folder / "wrong"
    path.write_text(json.dumps(config))
    hopeless(await outcome("watch", "pods", "--kubeconfig", str(path)), "401 Unauthorized")


async def test_unreachable_server(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    hopeless(await outcome("watch", "pods", "--server", f"http://127.0.0.1:{port}"), "cannot connect")
    hopeless(await outcome("watch", "pods", "--kubeconfig", str(tmp_path / "absent")), "no such file")
    async with started_program(
        *(sys.executable, "-m", "aioinformer", "watch", "pods", "--kubeconfig", ""),
        environment={"KUBECONFIG": str(tmp_path / "gone")},
    ) as program:
        hopeless(await program.end(), str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "args",
    [
        ["watch"],
        ["watch", ""],
        ["watch", "pods", "-n", "a", "-A"],
        ["run", "operators", "-n", "a", "-A"],
        ["watch", "pods", "-n", "../x"],
        ["bench", "-n", "../x"],
        ["bench", "--server", "nonsense"],
        ["bench", "--embedded", "--context", "a"],
        ["bench", "--server", "http://127.0.0.1:1", "--context", "a"],
        ["bench", "-o", "wide"],
        ["watch", "pods", "-o", "xml"],
        ["watch", "pods", "--full"],
        ["watch", "pods", "--timeout", "5"],
        ["watch", "pods", "--server", "http://127.0.0.1:1", "--context", "a"],
        ["watch", "pods", "--server", "no-url"],
        ["watch", "pods", "--nonsense"],
        ["demo", "--seconds", "0"],
        ["nonsense"],
    ],
    ids=" ".join,
)
async def test_bad_usage(args: list[str]) -> None:
    ended = await outcome(*args)
    assert (ended.code, ended.output) == (2, "")
    assert "Usage: aioinformer" in ended.errors


@pytest.mark.parametrize(
    ("resource", "hint"),
    [
        ("pods,svc", "a single resource at a time"),
        ("pods/web-0", "--field-selector metadata.name=NAME"),
        ("deployments.apps/v1", "deployments.v1.apps"),
        ("apps/v1/deployments", "deployments.v1.apps"),
    ],
)
async def test_invalid_resource_names(resource: str, hint: str) -> None:
    ended = await outcome("watch", resource, "--server", "http://127.0.0.1:1")
    assert (ended.code, ended.output) == (2, "")
    assert hint in ended.errors


@pytest.mark.parametrize("args", [["-v", "watch", "pods"], ["watch", "pods", "-v"]], ids=" ".join)
async def test_verbose_works_before_and_after_the_command(open_server: APIServer, args: list[str]) -> None:
    open_server.create("v1", "pods", pod_manifest("web"))
    ended = await outcome(*args, "--server", open_server.url, "--until-synced")
    assert (ended.code, len(ended.output.splitlines())) == (0, 2)
    assert "DEBUG aioinformer.reflector.reflector: pods in default: streamed 1 objects at " in ended.errors


async def test_the_demo_ends_with_a_proof() -> None:
    ended = await outcome("demo", "--seconds", "5")
    assert (ended.code, ended.errors) == (0, "")
    assert "cache equal to the server" in ended.output
    for summary in ("workload:", "troubles:", "handler:", "requests:"):
        assert summary in ended.output


async def test_ctrl_c_ends_the_demo() -> None:
    async with aioinformer("demo") as program:
        await program.output.next()
        program.signal(signal.SIGINT)
        ended = await program.end()
    assert (ended.code, ended.errors) == (0, "")


def hopeless(ended: Ended, reason: str) -> None:
    """Check that the program ended with a one-line error."""
    assert (ended.code, ended.output) == (1, "")
    (line,) = ended.errors.splitlines()
    assert line.startswith("aioinformer: ")
    assert reason in line


def powerless(cluster: Cluster) -> tuple[str, ...]:
    """Return the options for a user without permissions, if the cluster has one."""
    contexts = [context["name"] for context in json.loads(cluster.kubeconfig.read_text())["contexts"]]
    return ("--context", "powerless") if "powerless" in contexts else ()
