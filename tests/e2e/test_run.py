"""``aioinformer run`` as a program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from aioinformer import Client, InvalidError, Resource
from aioinformer.testing import APIServer, eventually
from tests.kubernetes.process import free_ports
from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import Cluster
from .definitions import definition
from .processes import Ended, Lines, Running, started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts

ROOT = Path(__file__).parents[2]

COPIES = """
from aioinformer import Client, KubeObject
from aioinformer.operator import Context, Controller, Manager, Operator, Request, owner_reference

operator = Operator("copies")


@operator.controller("configmaps", owns=["secrets"])
async def reconcile(request: Request[KubeObject], context: Context) -> None:
    site = request.object
    if site is not None:
        metadata = {"name": site.name, "namespace": site.namespace, "ownerReferences": [owner_reference(site)]}
        await context.resource("secrets").apply({"metadata": metadata})


def manager(client: Client, namespace: str | None = None) -> Manager:
    made = Manager(client, namespace=namespace)

    async def report(request: Request[KubeObject]) -> None:
        print("reconciled", request.key, flush=True)

    made.add(Controller("maps", report, made.for_resource("v1", "configmaps")))
    return made
"""

SITES = """
import msgspec
from aioinformer.operator import Context, Operator, Request
from aioinformer.typed import CustomResource


class Spec(msgspec.Struct):
    text: str
    replicas: int = 1


class Status(msgspec.Struct):
    length: int = 0


class Site(CustomResource, group="example.com", version="v1"):
    spec: Spec
    status: Status | None = None


operator = Operator("sites", events=False)


@operator.controller(Site, owns=["configmaps"])
async def reconcile(request: Request[Site], context: Context) -> None:
    if request.object is not None:
        status = {"status": {"length": len(request.object.spec.text) * request.object.spec.replicas}}
        await context.resource(Site).patch_status(request.object, status)
"""

SLOW = """
import asyncio
from aioinformer import KubeObject, NotFoundError
from aioinformer.operator import Context, Operator, Request

operator = Operator("slow", events=False)


@operator.controller("configmaps", owns=["secrets"])
async def reconcile(request: Request[KubeObject], context: Context) -> None:
    print("began", flush=True)
    while not await context.resource("secrets").list(request.namespace):
        await asyncio.sleep(0.01)
    print("ended", flush=True)
"""


SETTINGS = """
from collections.abc import AsyncIterator
import msgspec
from aioinformer import KubeObject
from aioinformer.operator import Context, Operator, Request


class Settings(msgspec.Struct):
    url: str


operator = Operator("cave-keeper", events=False, settings=Settings)


@operator.lifespan
async def store(context: Context) -> AsyncIterator[str]:
    url = context.get(Settings).url
    print(url, "opened", flush=True)
    yield url
    print(url, "closed", flush=True)


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject], context: Context) -> None:
    print(request.key, "uses", context.get(str), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "copies.py").write_text(COPIES)
    (tmp_path / "sites.py").write_text(SITES)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def aioinformer(folder: Path, *args: str) -> AbstractAsyncContextManager[Running]:
    path = os.pathsep.join((str(folder), str(ROOT)))
    environment = {
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(folder / ".cache"),
    }
    return started_program(sys.executable, "-m", "aioinformer", "run", *args, environment=environment)


def on(server: APIServer, port: int = 0) -> tuple[str, ...]:
    return ("--server", server.url, "--metrics-port", str(port), "--probe-port", str(port))


async def outcome(folder: Path, *args: str) -> Ended:
    async with aioinformer(folder, *args) as program:
        return await program.end()


async def line_with(lines: Lines, text: str) -> str:
    while text not in (line := await lines.next()):
        pass
    return line


async def get(port: int, path: str) -> tuple[int, Any]:
    """Return the answer, or status 0 while nothing listens."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError:
            return 0, ""


async def until_answer(port: int, path: str, is_wanted: Callable[[tuple[int, Any]], bool]) -> Any:
    while not is_wanted(answer := await get(port, path)):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.05)  # the program, which is starting, needs the processor
    return answer[1]


def objects_exist(server: APIServer, plural: str, *names: str) -> Callable[[], bool]:
    """Return whether objects exist, for ``eventually``."""
    return lambda: {f"default/{name}" for name in names} <= set(server.snapshot("v1", plural))


@pytest.mark.parametrize(
    "options", [(), ("--uvloop", "--leader-elect", "--lease-namespace", "default", "--trace")]
)
async def test_an_operator_runs_until_a_signal(
    server: APIServer, folder: Path, options: tuple[str, ...]
) -> None:
    (port,) = free_ports(1)
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with aioinformer(folder, "copies", *on(server, port), "--log-format", "json", *options) as program:
        await until_answer(port, "/readyz", lambda answer: answer[0] == 200)
        await eventually(objects_exist(server, "secrets", "a"), within=60)
        state = json.loads(
            await until_answer(port, "/debug.json", lambda answer: '"working":true' in answer[1])
        )
        assert (state["name"], state["stages"] is not None) == ("copies", "--trace" in options)
        if "--leader-elect" in options:
            assert (
                state["leader"]["leader"]
                == server.get("coordination.k8s.io/v1", "leases", "copies")["spec"]["holderIdentity"]
            )
        assert "controller_runtime_reconcile_total" in (await get(port, "/metrics"))[1]
        program.signal(signal.SIGTERM)
        ended = await program.end()
    assert (ended.code, ended.output) == (0, "")
    lines = [json.loads(line) for line in ended.errors.splitlines()]
    assert {"time", "level", "logger", "message"} == set(lines[0])
    assert f"copies runs on {server.url}" in [line["message"] for line in lines]
    if "--leader-elect" in options:
        assert not server.get("coordination.k8s.io/v1", "leases", "copies")["spec"].get("holderIdentity")


async def test_a_manager_factory_in_one_namespace(server: APIServer, folder: Path) -> None:
    for namespace in ("default", "other"):
        server.create("v1", "configmaps", {"metadata": {"name": "a"}}, namespace)
    async with aioinformer(folder, "copies:manager", *on(server), "-n", "other") as program:
        assert await program.output.next() == "reconciled other/a"
        program.signal(signal.SIGINT)
        assert (await program.end()).code == 0
    ended = await outcome(folder, "copies:manager", *on(server), "--grace-period", "5")
    assert ended == (1, "", "aioinformer: copies:manager takes no grace_period: add this parameter, or leave out the "
                     "option that sets it\n")  # fmt: skip


OPTIONAL = """
import msgspec
from aioinformer.operator import Kind, Operator, Request
from aioinformer.typed import CustomResource


class Spec(msgspec.Struct):
    text: str = ""


class Lamp(CustomResource, group="optional.example.com", version="v1"):
    spec: Spec


operator = Operator("lamps", events=False)


@operator.controller(Kind(Lamp, optional=True))
async def reconcile(request: Request[Lamp]) -> None:
    print("reconciled", request.key, flush=True)
"""


@pytest.mark.parametrize("options", [(), ("--install-crds",)])
async def test_an_operator_runs_while_an_optional_kind_is_missing(
    cluster: Cluster, folder: Path, options: tuple[str, ...]
) -> None:
    (port,) = free_ports(1)
    (folder / "lamps.py").write_text(OPTIONAL)
    where = ("--kubeconfig", str(cluster.kubeconfig))
    ports = ("--metrics-port", str(port), "--probe-port", str(port))
    async with aioinformer(folder, "lamps", *where, *ports, *options) as program:
        await until_answer(port, "/readyz", lambda answer: answer[0] == 200)
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


LED = """
from aioinformer import Client
from aioinformer.operator import Manager


def Make_caves(client: Client, leader_election: object) -> Manager:
    return Manager(client, leader_election=leader_election)
"""


async def test_the_lease_of_a_factory_is_named_by_its_whole_path(server: APIServer, folder: Path) -> None:
    (folder / "caves").mkdir()
    (folder / "caves" / "main.py").write_text(LED)
    options = ("--leader-elect", "--lease-namespace", "default")
    async with aioinformer(folder, "caves.main:Make_caves", *on(server), *options) as program:
        await line_with(program.errors, "has no controllers")
        (lease,) = server.list("coordination.k8s.io/v1", "leases", "default")
        assert lease["metadata"]["name"] == "caves.main.make-caves"
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_installations_with_other_lease_names_lead_at_the_same_time(
    server: APIServer, folder: Path
) -> None:
    elected = ("--leader-elect", "--lease-namespace", "default")
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with (
        aioinformer(folder, "copies", *on(server), *elected) as own,
        aioinformer(folder, "copies", *on(server), *elected, "--lease-name", "other") as other,
    ):
        for program in (own, other):
            await line_with(program.errors, "starts its controllers")
        leases = {
            lease["metadata"]["name"]: lease["spec"]["holderIdentity"]
            for lease in server.list("coordination.k8s.io/v1", "leases", "default")
        }
        assert leases.keys() == {"copies", "other"}
        assert len({*leases.values()}) == 2
    ended = await outcome(folder, "copies", *on(server), "--lease-name", "a/b")
    assert (ended.code, ended.output) == (2, "")
    assert "--lease-name must be a name that an object may have" in ended.errors


async def test_sigterm_waits_for_running_reconciles(server: APIServer, folder: Path) -> None:
    (port,) = free_ports(1)
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with aioinformer(folder, "slow", *on(server, port)) as program:
        assert await program.output.next() == "began"
        program.signal(signal.SIGTERM)
        assert (
            await until_answer(port, "/readyz", lambda answer: answer[0] == 503)
            == "the manager is stopping\n"
        )
        server.create("v1", "secrets", {"metadata": {"name": "go"}})
        ended = await program.end()
    assert (ended.code, ended.output) == (0, "ended\n")


@pytest.mark.parametrize(("grace_period", "signals"), [("0.2", 1), ("600", 2)])
async def test_the_grace_period_or_a_second_signal_ends_reconciles(
    server: APIServer, folder: Path, grace_period: str, signals: int
) -> None:
    (port,) = free_ports(1)
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with aioinformer(folder, "slow", *on(server, port), "--grace-period", grace_period) as program:
        assert await program.output.next() == "began"
        program.signal(signal.SIGTERM)
        if signals == 2:
            await until_answer(port, "/readyz", lambda answer: answer[0] == 503)
            program.signal(signal.SIGTERM)
        ended = await program.end()
    assert (ended.code, ended.output) == (0, "")


async def test_missing_rights_are_one_line(server: APIServer, folder: Path) -> None:
    server.forbid("list", "configmaps")
    ended = await outcome(folder, "copies", *on(server))
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors == (
        "aioinformer: system:anonymous may not list configmaps in all namespaces. Grant it: aioinformer manifests "
        "copies prints the rules, or pass --namespace to work in a single one\n"
    )
    ended = await outcome(folder, "copies:manager", *on(server), "-n", "one")
    assert ended.errors.endswith(" may not list configmaps in one. Grant it by a Role or ClusterRole\n")


async def test_missing_rights_to_the_lease_name_the_manifests_that_have_them(
    server: APIServer, folder: Path
) -> None:
    """Without --replicas, the manifests have no rights to Leases."""
    server.forbid("update", "leases")
    async with aioinformer(folder, "copies", *on(server), "--leader-elect") as program:
        line = await line_with(program.errors, "may not update leases")
        assert line.endswith("Grant it: aioinformer manifests copies --replicas 2 prints the rules")
        program.signal(signal.SIGTERM)
        await program.end()


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_rights_at_the_real_server(real: Cluster, folder: Path) -> None:
    await real.create(CONFIGMAPS, configmap("a"))
    ports = ("--metrics-port", "0", "--probe-port", "0", "-n", real.namespace)
    args = ("copies:manager", "--kubeconfig", str(real.kubeconfig), "--context", "powerless", *ports)
    assert (await outcome(folder, *args)).errors == (
        f"aioinformer: powerless may not list, watch configmaps in {real.namespace}. "
        "Grant it by a Role or ClusterRole\n"
    )
    await real.permit()
    async with aioinformer(folder, *args) as program:
        assert await program.output.next() == f"reconciled {real.key('a')}"
        program.signal(signal.SIGTERM)
        ended = await program.end()
    assert (ended.code, "WARNING" in ended.errors) == (0, False)


async def test_a_cluster_scoped_resource_is_declared_as_such(server: APIServer, folder: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "caves", "kind": "Cave"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "caves.example.com"}, "spec": spec}
    server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", definition)
    source = COPIES.replace('owns=["secrets"]', 'owns=["secrets"], uses=[Uses(CAVES)]')
    for caves, ends in (
        ('"caves.example.com"', True),
        ('Kind("caves.example.com", namespaced=False)', False),
    ):
        (folder / "caves.py").write_text(
            f"from aioinformer.operator import Kind, Uses\nCAVES = {caves}\n{source}"
        )
        async with aioinformer(folder, "caves", *on(server), "-n", "default") as program:
            if ends:
                ended = await program.end()
                assert ended.code == 1
                assert "caves.example.com is cluster-scoped at the server" in ended.errors
                assert "declare it as Kind('caves.example.com', namespaced=False)" in ended.errors
            else:
                await line_with(program.errors, "starts its controllers")
                program.signal(signal.SIGTERM)
                assert (await program.end()).code == 0


FAILING = """
from aioinformer.operator import Operator

operator = Operator("failing", events=False)


@operator.lifespan
async def database(context):
    raise ConnectionError("the database is away")
    yield 1


def no_client(): ...


async def broken(client):
    raise OSError("boom")
"""


async def test_errors_of_the_users_code_are_its_own(server: APIServer, folder: Path) -> None:
    (folder / "failing.py").write_text(FAILING)
    ended = await outcome(folder, "failing", *on(server))
    assert ended.code == 1
    assert ended.errors.endswith("ConnectionError: the database is away\n")
    assert "failing.py" in ended.errors
    ended = await outcome(folder, "failing:no_client", *on(server))
    assert ended.errors == (
        "aioinformer: failing:no_client made no Manager: TypeError: no_client() takes 0 positional arguments but 1 was "
        "given\n"
    )
    ended = await outcome(folder, "failing:broken", *on(server))
    assert ended.errors.startswith("aioinformer: failing:broken made no Manager: ")
    assert ended.errors.endswith('line 17 (raise OSError("boom")): OSError: boom\n')
    assert ended.code == 1


async def test_rights_that_only_some_reconciles_need_are_a_warning(server: APIServer, folder: Path) -> None:
    server.forbid("patch", "secrets")
    async with aioinformer(folder, "copies", *on(server)) as program:
        line = await line_with(program.errors, "may not")
        assert "WARNING" in line
        assert "may not patch secrets in all namespaces; the operator starts anyway" in line
        await line_with(program.errors, "starts its controllers")
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_an_unreachable_server_is_waited_for(server: APIServer, folder: Path) -> None:
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    server.faults.refuse()
    async with aioinformer(folder, "copies", *on(server)) as program:
        await line_with(program.errors, "the rights were not checked, and the operator starts anyway")
        await server.faults.accept()
        await eventually(objects_exist(server, "secrets", "a"), within=60)
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_a_port_in_use_is_one_line(server: APIServer, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await outcome(
            folder, "copies", "--server", server.url, "--metrics-port", str(port), "--probe-port", "0"
        )
    assert ended == (1, "", f"aioinformer: port {port} is in use: end the program that listens on it, or pass another "
                     "--metrics-port (0 for none)\n")  # fmt: skip


async def test_a_missing_collection_is_one_line(server: APIServer, folder: Path) -> None:
    (folder / "caves.py").write_text(
        COPIES.replace(
            'made.for_resource("v1", "configmaps")', 'made.for_resource("example.com/v1", "caves")'
        )
    )
    ended = await outcome(folder, "caves:manager", *on(server))
    assert ended == (1, "", f"aioinformer: the server {server.url} has no caves.example.com in example.com/v1. Install "
                     "its CustomResourceDefinition\n")  # fmt: skip


async def test_definitions_are_installed_required_and_compared(server: APIServer, folder: Path) -> None:
    ended = await outcome(folder, "sites", *on(server))
    missing = f"the server {server.url} has no sites.example.com in example.com/v1"
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors.startswith(f"aioinformer: {missing}. Install it: pass --install-crds, or apply ")
    async with aioinformer(folder, "sites", *on(server), "--install-crds") as program:
        await line_with(program.errors, "starts its controllers")
        server.create("example.com/v1", "sites", {"metadata": {"name": "a"}, "spec": {"text": "four"}})
        await eventually(lambda: "status" in server.get("example.com/v1", "sites", "a"))
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0
    (folder / "sites.py").write_text(
        SITES.replace("replicas: int = 1", "replicas: int = 2\n    color: str | None = None")
    )
    async with aioinformer(folder, "sites", *on(server)) as program:
        line = await line_with(program.errors, "differs from the class Site")
        assert "WARNING" in line
        assert "spec.replicas.default: 1 -> 2" in line
        assert "spec.color: added" in line
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0
    (folder / "sites.py").write_text(SITES.replace('version="v1"', 'version="v2"'))
    ended = await outcome(folder, "sites", *on(server))
    assert "has no sites.example.com in example.com/v2; it serves example.com/v1. Install it" in ended.errors


async def test_a_definition_that_is_deleted_is_installed_again(server: APIServer, folder: Path) -> None:
    definitions = ("apiextensions.k8s.io/v1", "customresourcedefinitions")
    async with aioinformer(folder, "sites", *on(server), "--install-crds") as program:
        await line_with(program.errors, "starts its controllers")
        server.delete(*definitions, "sites.example.com")
        await line_with(
            program.errors, "sites.example.com: deleted while the operator runs; installing it again"
        )
        await eventually(lambda: server.get(*definitions, "sites.example.com"))
        site = {"metadata": {"name": "a"}, "spec": {"text": "four"}}
        await eventually(lambda: server.create("example.com/v1", "sites", site), within=30)
        await eventually(lambda: "status" in server.get("example.com/v1", "sites", "a"), within=30)
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_definitions_that_differ_at_the_real_server_say_what_to_do(real: Cluster, folder: Path) -> None:
    ports = ("--metrics-port", "0", "--probe-port", "0", "--kubeconfig", str(real.kubeconfig))
    older = SITES.replace("example.com", "differ.example.com")
    newer = older.replace("replicas: int = 1", "replicas: int = 1\n    color: str | None = None")

    async def outcome_of(source: str, *options: str) -> str:
        """Return what an operator logs until it has started or ended."""
        (folder / "sites.py").write_text(source)
        async with aioinformer(folder, "sites", *ports, *options) as program:
            errors = ""
            while "starts its controllers" not in errors and not errors.startswith("aioinformer: "):
                errors += await program.errors.next()
            program.signal(signal.SIGTERM)
            return errors + (await program.end()).errors

    assert "WARNING" not in await outcome_of(newer, "--install-crds")
    errors = await outcome_of(older)
    assert (
        "sites.differ.example.com at the server differs from the class Site: v1 spec.color: removed" in errors
    ), errors
    assert "If the server's is newer, run the newer operator" in errors
    errors = await outcome_of(older.replace('version="v1"', 'version="v0"'), "--install-crds")
    assert errors.startswith("aioinformer: sites.differ.example.com was not installed: ")
    assert "storedVersions" in errors
    assert "If the server's definition is newer than the class, run the newer operator" in errors
    errors = await outcome_of(older.replace("differ.example.com", "elsewhere.example.com"))
    assert "has no sites.elsewhere.example.com in elsewhere.example.com/v1; it has sites." in errors
    assert "is the group of the class right?" in errors


async def test_a_right_that_is_missing_at_run_time_is_named_with_what_to_do(
    server: APIServer, folder: Path
) -> None:
    server.forbid("patch", "secrets")
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with aioinformer(folder, "copies", *on(server)) as program:
        line = await line_with(program.errors, "default/a failed")
        assert "apply secrets default/a: 403 Forbidden" in line
        assert "If a right is missing, grant it to the service account" in line
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_a_webhook_port_in_use_is_one_line(server: APIServer, folder: Path) -> None:
    (folder / "hooks.py").write_text(HOOKS)
    authority = trustme.CA()
    pem = folder / "both.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(pem))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        files = ("--tls-cert", str(pem), "--tls-key", str(pem))
        ended = await outcome(folder, "hooks", *on(server), "--webhook-port", str(port), *files)
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors.startswith(
        f"aioinformer: port {port} is in use: end the program that listens on it, or pass "
    )
    assert "--webhook-port" in ended.errors


async def test_settings_come_from_the_environment(server: APIServer, folder: Path) -> None:
    (folder / "settings.py").write_text(SETTINGS)
    ended = await outcome(folder, "settings", *on(server))
    assert ended == (
        1,
        "",
        "aioinformer: cave-keeper: the environment: set CAVE_KEEPER_URL, which has no default\n",
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CAVE_KEEPER_URL", "nfs://a")
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with aioinformer(folder, "settings", *on(server)) as program:
            assert await program.output.next() == "nfs://a opened"
            assert await program.output.next() == "default/a uses nfs://a"
            program.signal(signal.SIGTERM)
            ended = await program.end()
    assert (ended.code, ended.output) == (0, "nfs://a closed\n")


async def test_dev_keeps_the_server_and_restarts_when_the_source_changes(folder: Path) -> None:
    ports = ("--metrics-port", "0", "--probe-port", "0")
    async with aioinformer(folder, "copies:operator", "--dev", *ports) as program:
        line = await program.output.next()
        kubeconfig = line.rpartition("KUBECONFIG=")[2]
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            assert f"an API server at {client.server};" in line
            assert await client.get_json("/version")
        await line_with(program.errors, "starts its controllers")
        (folder / "copies.py").write_text(COPIES + "\nraise ValueError('no')\n")
        await line_with(program.errors, "copies.py has changed: restarting")
        await line_with(program.errors, "ValueError: no")
        await line_with(program.errors, "the operator has ended with 1")
        (folder / "copies.py").write_text(COPIES)
        await line_with(program.errors, "starts its controllers")
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0
    assert not os.path.exists(kubeconfig)  # noqa: ASYNC240 - fast


HELPED = COPIES.replace("operator = Operator", "import helper.texts\n\noperator = Operator")


async def test_dev_restarts_when_a_helper_or_a_template_changes(folder: Path) -> None:
    (folder / "copies.py").write_text(HELPED)
    helper, template = folder / "helper", folder / "templates" / "page.html"
    for path, text in ((helper / "__init__.py", ""), (helper / "texts.py", "A = 1\n"), (template, "<p>")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    ports = ("--metrics-port", "0", "--probe-port", "0")
    async with aioinformer(folder, "copies:operator", "--dev", *ports) as program:
        await line_with(program.errors, "starts its controllers")
        await asyncio.sleep(1.5)  # the files are reported
        (helper / "texts.py").write_text("A = \n")
        await line_with(program.errors, "texts.py has changed: restarting")
        await line_with(program.errors, "texts.py, line 1: SyntaxError")
        (helper / "texts.py").write_text("A = 2\n")
        await line_with(program.errors, "texts.py has changed: restarting")
        await line_with(program.errors, "starts its controllers")
        await asyncio.sleep(1.5)
        template.write_text("<b>")
        await line_with(program.errors, "page.html has changed: restarting")
        await line_with(program.errors, "starts its controllers")


WRITES = """
import pathlib, time
pathlib.Path(__file__).with_name("written.py").write_text(f"AT = {time.time_ns()}")
"""


async def test_dev_ignores_files_that_are_not_imported(folder: Path) -> None:
    (folder / "copies.py").write_text(COPIES + WRITES)
    async with aioinformer(
        folder, "copies:operator", "--dev", "--metrics-port", "0", "--probe-port", "0"
    ) as program:
        await line_with(program.errors, "starts its controllers")
        await asyncio.sleep(1.5)
        (folder / "written.py").write_text("")
        await asyncio.sleep(1.5)
        program.signal(signal.SIGTERM)
        assert "restarting" not in (await program.end()).errors


async def test_dev_waits_longer_and_longer_for_an_operator_that_writes_its_own_source(folder: Path) -> None:
    later = "\nimport threading\nthreading.Timer(1.5, lambda: pathlib.Path(__file__).touch()).start()\n"
    (folder / "copies.py").write_text(COPIES + "\nimport pathlib" + later)
    async with aioinformer(
        folder, "copies:operator", "--dev", "--metrics-port", "0", "--probe-port", "0"
    ) as program:
        line = await line_with(program.errors, "Does the operator write them?")
        assert "copies.py has changed: restarting in 1 s" in line
        await line_with(program.errors, "restarting in 2 s")


async def test_dev_has_the_same_kubeconfig_at_each_start(folder: Path) -> None:
    paths = set()
    for _ in range(2):
        async with aioinformer(
            folder, "copies:operator", "--dev", "--metrics-port", "0", "--probe-port", "0"
        ) as program:
            path = (await program.output.next()).rpartition("KUBECONFIG=")[2]
            paths.add(path)
            assert Path(path).stat().st_mode & 0o777 == 0o600  # noqa: ASYNC240 - fast
            assert Path(path).parent.stat().st_mode & 0o777 == 0o700
            async with aioinformer(
                folder, "copies:operator", "--dev", "--metrics-port", "0", "--probe-port", "0"
            ) as other:
                assert (await other.output.next()).rpartition("KUBECONFIG=")[2] not in paths
                assert Path(path).exists()  # noqa: ASYNC240 - fast
    assert len(paths) == 1


async def test_dev_starts_again_when_a_kind_of_another_project_is_installed(folder: Path) -> None:
    ports = ("--metrics-port", "0", "--probe-port", "0")
    (folder / "copies.py").write_text(
        COPIES.replace('owns=["secrets"]', 'owns=["secrets", "caves.example.org"]')
    )
    async with aioinformer(folder, "copies:operator", "--dev", *ports) as program:
        kubeconfig = (await program.output.next()).rpartition("KUBECONFIG=")[2]
        line = await line_with(program.errors, "has no resource 'caves.example.org'")
        assert line.endswith(". If the name is right, install its CustomResourceDefinition")
        await line_with(program.errors, "the operator has ended with 1")
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            await Resource(client, "crds").create(definition("example.org", "Cave"))
        await line_with(program.errors, "a CustomResourceDefinition was installed: restarting")
        await line_with(program.errors, "starts its controllers")


async def test_dev_leaves_no_operator_behind_when_it_is_killed(folder: Path) -> None:
    async with aioinformer(
        folder, "copies:operator", "--dev", "--metrics-port", "0", "--probe-port", "0"
    ) as program:
        await line_with(program.errors, "starts its controllers")
        program.signal(signal.SIGKILL)
        ended = await program.end()  # the operator has the same standard error, which ends with it
    assert ended.code == -signal.SIGKILL


HOOKS = """
from aioinformer import KubeObject
from aioinformer.operator import AdmissionReview, Context, Denied, Operator

operator = Operator("hooks", events=False)


@operator.validate("pods")
async def check(review: AdmissionReview[KubeObject], context: Context) -> None:
    raise Denied(f"not on {context.client.server}")
"""


SITE_HOOKS = """

from aioinformer.operator import AdmissionReview, Denied


@operator.mutate(Site)
async def fill(review: AdmissionReview[Site]) -> None:
    review.object.spec.replicas = 3


@operator.validate(Site, operations=["CREATE", "DELETE"])
async def check(review: AdmissionReview[Site], context: Context) -> None:
    review.warn("seen")
    if review.object.spec.text == "bad":
        raise Denied(f"not on {context.client.server}", field="spec.text")
"""


async def test_webhooks_need_a_certificate(server: APIServer, folder: Path) -> None:
    (folder / "sites.py").write_text(SITES + SITE_HOOKS)
    ended = await outcome(folder, "sites", *on(server), "--install-crds")
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors == (
        "aioinformer: sites has webhooks, which the API server calls by TLS: pass --tls-cert and --tls-key (--dev "
        "makes them), or --webhook-port 0 to run without webhooks\n"
    )
    assert server.list("apiextensions.k8s.io/v1", "customresourcedefinitions") == []


def site(text: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "default"}, "spec": {"text": text}}


async def test_dev_calls_the_webhooks_of_the_operator(folder: Path) -> None:
    (folder / "sites.py").write_text(SITES + SITE_HOOKS)
    (port,) = free_ports(1)
    options = ("--dev", "--metrics-port", "0", "--probe-port", "0", "--webhook-port", str(port))
    async with aioinformer(folder, "sites", *options) as program:
        kubeconfig = Path((await program.output.next()).rpartition("KUBECONFIG=")[2])
        await line_with(program.errors, "starts its controllers")
        warnings: list[str] = []
        async with Client.from_kubeconfig(path=kubeconfig, on_warning=warnings.append) as client:
            sites = Resource(client, "example.com/v1", "sites", kind="Site")
            with pytest.raises(InvalidError, match=r"denied the request: spec\.text: not on https") as denied:
                await sites.create(site("bad"))
            assert [cause[0] for cause in denied.value.causes] == ["spec.text"]
            made = await sites.create(site("good"))
            assert made["spec"] == {"text": "good", "replicas": 3}
            assert warnings == ["seen", "seen"]
            configurations = Resource(client, "validatingwebhookconfigurations")
            assert [configuration.name for configuration in await configurations.list()] == ["sites"]
            (folder / "sites.py").write_text(SITES)
            await line_with(program.errors, "starts its controllers")
            assert not await configurations.list(), "what the source no longer declares is not called"
        program.signal(signal.SIGTERM)
        assert (await program.end()).code == 0


async def test_dev_and_a_server_exclude_each_other(folder: Path) -> None:
    ended = await outcome(folder, "copies", "--dev", "--server", "http://127.0.0.1:1")
    assert ended.code == 2
    assert "--dev has a server of its own" in ended.errors


async def test_a_leader_and_shards_exclude_each_other(folder: Path) -> None:
    ended = await outcome(folder, "copies", "--leader-elect", "--shards", "8")
    assert ended.code == 2
    assert "use either --leader-elect or --shards" in ended.errors
    assert "Traceback" not in ended.errors
