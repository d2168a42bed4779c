"""An operator as a process, started by a program: ``run``."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import msgspec
import pytest

from aioinformer import Client, ConfigError, TransportError, __version__
from aioinformer._core.certificates import expiry_of
from aioinformer._core.lost_lines import LostLines
from aioinformer.operator import (
    AdmissionReview,
    Context,
    LeaderElection,
    Manager,
    Operator,
    Request,
    RunOptions,
    run,
)
from aioinformer.operator.debug_page import Snapshot, reading_debug_page
from aioinformer.operator.definition_updates import digest
from aioinformer.operator.definitions import install
from aioinformer.testing import APIServer, eventually
from aioinformer.typed import CamelStruct, CustomResource, crd
from tests.kubernetes.process import free_ports

from .webhooks.certificates import Certificates


class Settings(msgspec.Struct):
    greeting: str


class Spec(CamelStruct):
    text: str


class Note(CustomResource, group="example.com", version="v1"):
    spec: Spec


class NextSpec(Spec):
    title: str


class NextNote(CustomResource, group="example.com", version="v1", kind="Note", plural="notes"):
    """A Note in the next release, which requires a field."""

    spec: NextSpec


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as server:
        yield server


def greeter(seen: list[str]) -> Operator:
    """Return an operator that keeps its setting and the key of each note."""
    operator = Operator("greeter", events=False, settings=Settings)

    @operator.controller(Note)
    async def reconcile(request: Request[Note], context: Context) -> None:
        seen.append(f"{context.get(Settings).greeting} {request.key}")

    return operator


@pytest.mark.parametrize("ending", ["a signal", "its task is cancelled"])
async def test_a_program_runs_an_operator_with_all_that_belongs_to_it(server: APIServer, ending: str) -> None:
    seen: list[str] = []
    (port,) = free_ports(1)
    client = Client.from_url(server.url)
    options = RunOptions(
        settings=Settings("hello"), leader_elect=True, install_crds=True, metrics_port=port, probe_port=port
    )
    others = asyncio.all_tasks()
    running = asyncio.create_task(run(greeter(seen), client, options))
    await eventually(lambda: server.list("example.com/v1", "notes") == [], within=20)
    server.create("example.com/v1", "notes", {"metadata": {"name": "a"}, "spec": {"text": "b"}})
    await eventually(lambda: seen == ["hello default/a"], within=20)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
        assert answer.status == 200
    assert server.list("coordination.k8s.io/v1", "leases", "default")[0]["metadata"]["name"] == "greeter"
    if ending == "a signal":
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    else:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [task for task in asyncio.all_tasks() - others if not task.done()] == []
    with pytest.raises(ConfigError, match="closed"):
        await client.get("/version")


async def test_metrics_that_ask_for_a_token_need_rights(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    operator = Operator("guarded", events=False)
    async with APIServer(token="administrator", rbac=True) as server:
        server.users["operator's"] = "operator"
        options = RunOptions(metrics_port=port, probe_port=port, metrics_auth=True)
        running = asyncio.create_task(run(operator, Client.from_url(server.url, "operator's"), options))
        missing = (
            "create tokenreviews.authentication.k8s.io; create subjectaccessreviews.authorization.k8s.io"
        )
        await eventually(lambda: "operator may not create" in caplog.text, within=20)
        assert [part in caplog.text for part in missing.split("; ")] == [True, True]
        async with aiohttp.ClientSession() as session:
            for path, status in (("/metrics", 401), ("/debug.json", 401), ("/debug", 200), ("/healthz", 200)):
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    assert answer.status == status, path
                    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
            async with session.get(
                f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer any"}
            ) as answer:
                assert answer.status == 503, "it has no right to review"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_the_debug_page_has_what_the_process_knows_of_itself(
    server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = greeter([])

    @operator.validate(Note)
    async def check(review: AdmissionReview[Note]) -> None: ...

    monkeypatch.setattr("aioinformer.operator.process.LOST_LINES", lost := LostLines())
    certificates = Certificates(tmp_path, expired=True)
    (port,) = free_ports(1)
    options = RunOptions(
        settings=Settings("hello"), install_crds=True, metrics_port=port, probe_port=0, webhook_port=free_ports(1)[0],
        tls_cert=str(certificates.cert), tls_key=str(certificates.key),
    )  # fmt: skip
    running = asyncio.create_task(run(operator, Client.from_url(server.url), options))
    async with reading_debug_page(f"http://127.0.0.1:{port}") as read:

        async def read_ready() -> Snapshot | None:
            with suppress(TransportError):
                page = await read()
                return None if page["ready"] else page
            return None

        page = await eventually(read_ready, within=20)
        assert page["version"] == __version__
        assert page["problems"].keys() == {"CertificateInvalid"}
        assert "expired" in page["problems"]["CertificateInvalid"]
        assert page["certificate_expires"] == expiry_of(certificates.cert.read_bytes())
        assert page["definitions"] == {"notes.example.com": digest(crd(Note))}
        lost.record(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        assert "No space left on device" in (await read())["problems"]["LogsLost"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_changed_class_that_objects_do_not_fit_is_a_warning(
    server: APIServer, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("greeter", events=False)

    @operator.controller(NextNote)
    async def reconcile(request: Request[NextNote]) -> None: ...

    async with Client.from_url(server.url) as client:
        await install(client, greeter([]))
    server.create("example.com/v1", "notes", {"metadata": {"name": "a"}, "spec": {"text": "b"}})
    options = RunOptions(force_crds=True, metrics_port=0, probe_port=0)
    running = asyncio.create_task(run(operator, Client.from_url(server.url), options))
    expected = "1 of 1 objects do not fit the class NextNote and are not reconciled: default/a: "
    await eventually(lambda: expected in caplog.text, within=20)
    assert "required field `title`" in caplog.text
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_what_the_server_lacks_ends_it_with_an_error_that_says_what_to_do(server: APIServer) -> None:
    options = RunOptions(settings=Settings("hello"), metrics_port=0, probe_port=0)
    with pytest.raises(ConfigError, match=r"has no notes\.example\.com in example\.com/v1.*--install-crds"):
        await run(greeter([]), Client.from_url(server.url), options)


async def test_the_lease_of_a_function_has_its_whole_name(server: APIServer) -> None:
    """Two programs with a function of the same name do not compete for one Lease."""
    options = RunOptions(leader_elect=True, metrics_port=0, probe_port=0)
    running = asyncio.create_task(run(make_manager, Client.from_url(server.url), options))
    try:
        (lease,) = await eventually(
            lambda: server.list("coordination.k8s.io/v1", "leases", "default"), within=20
        )
        assert lease["metadata"]["name"] == "tests.operator.test-process.make-manager"
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def make_manager(client: Client, leader_election: LeaderElection | None = None) -> Manager:
    return Manager(client, leader_election=leader_election)
