"""What doctor says of the processes of an operator, by their debug pages."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from aioinformer import Client, KubeObject
from aioinformer.doctor import Finding, Level, Report, examine
from aioinformer.doctor.findings import LONGEST_LINE
from aioinformer.doctor.processes import Process, check_processes, judge_process, judge_replicas
from aioinformer.operator import CustomResource, Operator, Request, RunOptions, run
from aioinformer.testing import APIServer, eventually
from aioinformer.typed import CamelStruct
from tests.kubernetes.process import free_ports

from .setups import answering, require

FAULT, WARNING, OK = Level.FAULT, Level.WARNING, Level.OK
NOW = 1_800_000_000.0
NOWHERE = "http://127.0.0.1:1"
"""An API server that does not run."""


def page(**parts: Any) -> Process:
    return msgspec.convert({"name": "shops", "informers": [], **parts}, Process)


def judge(**parts: Any) -> list[Finding]:
    return [*judge_process(page(**parts), "shops", NOW)]


def controller(**parts: Any) -> dict[str, Any]:
    return {"name": "shop", "working": True, "concurrency": 1, **parts}


def key(name: str, **parts: Any) -> dict[str, Any]:
    return {"controller": "shop", "key": name, "error": f"{name} is bad", "where": "shops.py:7", **parts}


def test_a_page_without_problems_has_no_findings() -> None:
    assert judge(version="1.0", ready=[], certificate_expires=NOW + 30 * 86400) == []
    assert judge() == [], "a page of a former version"


@pytest.mark.parametrize(
    ("parts", "level", "words"),
    [
        ({"ready": ["pods is out of date: backing off"]}, FAULT, "not ready: pods is out of date: backing off"),
        ({"warnings": ["shops: 2 undecodable objects"]}, WARNING, "shops: 2 undecodable objects"),
        ({"leader": {"leading": False, "error": "403"}}, FAULT, "Lease cannot be acquired or renewed: 403"),
        ({"sharding": {"last_error": "409"}}, FAULT, "Lease cannot be acquired or renewed: 409"),
        ({"problems": {"LogsLost": "lines are lost"}}, FAULT, "lines are lost"),
        ({"problems": {"LaterReason": "of a later version"}}, FAULT, "of a later version"),
        ({"certificate_expires": NOW - 3600}, FAULT, "the certificate of its webhooks expired 60 min ago"),
        ({"certificate_expires": NOW + 3600}, WARNING, "the certificate of its webhooks expires in 60 min"),
        (
            {"controllers": [controller(failing=2, failing_seconds=300)], "failing": {"keys": [key("a"), key("b")]}},
            WARNING,
            "shop: 2 objects fail, for up to 5 min: a: a is bad (shops.py:7)",
        ),
        (
            {"controllers": [controller(failing=1, last_error_key="c", last_error="timed out")]},
            WARNING,
            "shop: 1 object fails, for up to 0 ms: c: timed out",
        ),
        (
            {"controllers": [controller(running=[{"key": "a", "seconds": 1}, {"key": "b", "seconds": 600}])]},
            WARNING,
            "shop: the reconcile of b runs for 10 min",
        ),
        ({"controllers": [controller(queued_seconds=90)]}, WARNING, "shop: an object waits for a worker for 90 s"),
        ({"name": "others"}, WARNING, "another operator runs there: others"),
    ],
)  # fmt: skip
def test_a_problem_of_a_page_is_one_finding(parts: dict[str, Any], level: Level, words: str) -> None:
    (finding,) = judge(**parts)
    assert (finding.check, finding.level) == ("process", level)
    assert words in finding.what
    assert finding.do


def test_an_invalid_certificate_is_said_once() -> None:
    problems = {"CertificateInvalid": "certificate has expired"}
    (finding,) = judge(problems=problems, certificate_expires=NOW - 3600)
    assert finding.what == "certificate has expired"


def test_tasks_run_for_ever_and_standbys_have_no_failing_objects() -> None:
    running = [{"key": "a", "seconds": 10**6}]
    assert judge(controllers=[controller(concurrency=None, running=running)]) == []
    assert judge(controllers=[controller(working=False, failing=3)]) == []


def test_replicas_are_compared() -> None:
    definitions = {"shops.example.com": "a1"}
    parts = {"version": "1.0", "definitions": definitions, "controllers": [controller()]}
    one, standby = page(**parts, leader={"leading": True}), page(**parts, leader={"leading": False})
    assert [*judge_replicas({"one": one, "two": standby})] == []
    for other, words in (
        (one, "several replicas of shops lead: one, two"),
        (page(**{**parts, "version": "0.9"}), "different versions of aioinformer: 1.0 at one, 0.9 at two"),
        (page(), "different versions of aioinformer: 1.0 at one, an older one at two"),
        (page(**{**parts, "definitions": {"shops.example.com": "b2"}}), "releases: shops.example.com at one, two"),
        (page(**{**parts, "controllers": []}), "different releases: the controller shop at one, two"),
    ):  # fmt: skip
        (finding,) = judge_replicas({"one": one, "two": other})
        assert words in finding.what
        assert (finding.level, bool(finding.do)) == (WARNING, True)
    assert [*judge_replicas({"one": one, "two": page(name="others")})] == []


async def examine_page(body: str) -> Report:
    async with answering(200, body) as url:
        return await examine(Client.from_url(NOWHERE), processes=[url])


async def test_processes_are_examined_also_without_a_server() -> None:
    report = await examine_page(json.dumps({"name": "shops", "informers": [], "leader": {"leading": True}}))
    require(report, FAULT, "server", "refuses connections")
    require(report, OK, "process", "shops is ready, and leads")


@pytest.mark.parametrize(
    ("body", "level", "words"),
    [
        ("<html>", FAULT, "is no JSON"),
        ('{"name": 3, "informers": []}', WARNING, "its debug page has another form"),
        ('{"name": "shops", "informers": [], "controllers": 7}', WARNING, "another form"),
    ],
)
async def test_a_page_of_another_program_or_version_is_a_finding(body: str, level: Level, words: str) -> None:
    require(await examine_page(body), level, "process", words)


async def test_long_texts_of_a_page_are_cut() -> None:
    reasons = ["x\n" * 10**6] * 5 + ["y"] * 1000
    many = [{"name": f"shop-{number}", "failing": 1} for number in range(10_000)]
    body = {"name": "shops", "informers": [], "ready": reasons, "controllers": many}
    report = await examine_page(json.dumps(body))
    findings = [finding for finding in report.findings if finding.check == "process"]
    assert 0 < len(findings) < 30
    assert max(len(finding.what) for finding in findings) <= LONGEST_LINE + 1


async def test_a_process_that_does_not_answer_is_frozen() -> None:
    async with silent() as (url, connected):
        report = await examine(Client.from_url(NOWHERE), processes=[url], timeout=0.5)
        assert connected.is_set()
    finding = require(report, FAULT, "process", url, "does not answer within 0.5 s", "frozen")
    assert "liveness probe" in finding.do


@asynccontextmanager
async def silent() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that accepts connections and never answers, with an event that it has accepted one."""
    connected = asyncio.Event()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        writers.append(writer)

    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connected
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


async def test_a_process_that_has_ended_refuses_connections() -> None:
    (port,) = free_ports(1)
    report = await examine(Client.from_url(NOWHERE), processes=[f"http://ann:secret@127.0.0.1:{port}"])
    finding = require(report, FAULT, "process", "no process listens there")
    assert "--previous" in finding.do
    assert "secret" not in finding.what


class Spec(CamelStruct):
    size: int


class Shop(CustomResource, group="processes.example.com", version="v1"):
    """A shop."""

    spec: Spec


shops = Operator("shops", events=False)


@shops.controller(Shop)
async def open_shop(request: Request[Shop]) -> None: ...


@shops.controller("configmaps")
async def fill(request: Request[KubeObject]) -> None:
    if request.name == "bad":
        raise ValueError("no \x1b[31mroom")


async def test_a_running_operator_tells_what_fails_and_what_does_not_fit() -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    options = RunOptions(
        target="shops:shops", leader_elect=True, install_crds=True, metrics_port=port, probe_port=0
    )
    async with APIServer() as server:
        running = asyncio.create_task(run(shops, Client.from_url(server.url), options))

        async def find(level: Level, *words: str) -> Finding | None:
            findings = await check_processes([url], "", operator="shops", now=time.time(), timeout=10)
            for finding in findings:
                if finding.level is level and all(word in finding.what for word in words):
                    return finding
            return None

        await eventually(lambda: find(OK, "shops is ready, and leads"), within=30)
        server.create("v1", "configmaps", {"metadata": {"name": "bad"}})
        failing = await eventually(lambda: find(WARNING, "configmaps: 1 object fails", "default/bad"))
        assert "ValueError: no \x1b[31mroom (" in failing.what
        lax = server.get(
            "apiextensions.k8s.io/v1", "customresourcedefinitions", "shops.processes.example.com"
        )
        del lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"]
        server.update("apiextensions.k8s.io/v1", "customresourcedefinitions", lax)
        server.create("processes.example.com/v1", "shops", {"metadata": {"name": "old"}, "spec": {}})
        await eventually(lambda: find(WARNING, "1 undecodable objects", "default/old", "size"))
        running.cancel()
        await asyncio.wait({running})
