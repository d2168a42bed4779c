"""``aioinformer bench`` as a program: its report and its cleanup."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from aioinformer.cli.load import configmap
from aioinformer.cli.report import histogram
from aioinformer.testing import APIServer
from aioinformer.tracing import STAGES

from .api import CONFIGMAPS
from .clusters import EmbeddedCluster
from .processes import PATIENCE, Ended, Running, started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts


def start(*args: str, **variables: str) -> AbstractAsyncContextManager[Running]:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", **variables}
    return started_program(sys.executable, "-m", "aioinformer", "bench", *args, environment=environment)


async def bench(*args: str, **variables: str) -> Ended:
    async with start(*args, **variables) as program:
        return await program.end()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_it_prints_each_stage_and_a_histogram(loop: str) -> None:
    ended = await bench("--embedded", "--objects", "20", "--rate", "100", "--seconds", "1", "--loop", loop)
    assert ended.code == 0, ended.errors
    # On a busy machine the actual rate is lower, and the report says so.
    assert re.search(
        rf"100 changes of 20 objects, \d+ per second( of the 100 requested)?, {loop}, json", ended.output
    )
    assert "from the change at the server to the end" in ended.output
    for stage in ("received", *STAGES, "end to end"):
        assert stage in ended.output
    assert "█" in ended.output


async def test_server_has_no_objects_afterwards() -> None:
    async with APIServer() as server:
        ended = await bench("--server", server.url, "--objects", "30", "--rate", "50", "--seconds", "1")
        assert ended.code == 0, ended.errors
        assert "50 changes of 30 objects" in ended.output
        assert "from the request for the change to the end" in ended.output
        assert server.count("patch", "configmaps") == 100, "the warm-up's, too"
        assert server.snapshot("v1", "configmaps") == {}


async def test_at_a_kubeconfig_s_context_it_makes_a_document(secure: EmbeddedCluster) -> None:
    to = ("--kubeconfig", str(secure.kubeconfig), "-n", secure.namespace)
    ended = await bench(*to, "--objects", "20", "--rate", "50", "--seconds", "2", "--protobuf", "-o", "json")
    assert (ended.code, ended.errors) == (0, "")
    (line,) = ended.output.splitlines()
    report = json.loads(line)
    assert (report["loop"], report["objects"], report["rate"]) == ("asyncio", 20, 50.0)
    assert (report["encoding"], report["embedded"]) == ("protobuf", False)
    assert (report["interrupted"], report["changes"]) == (False, 100)
    assert report["durationSeconds"] * report["changesPerSecond"] == pytest.approx(100)
    assert sum(report["shares"].values()) == pytest.approx(1)
    assert [*report["latencySeconds"]] == ["received", *STAGES, "endToEnd"]
    for percentiles in report["latencySeconds"].values():
        assert [*percentiles] == ["p50", "p90", "p99", "p99.9", "max"]
        assert sorted(percentiles.values()) == [*percentiles.values()]
    assert await secure.list(CONFIGMAPS) == {}


async def test_a_context_that_is_not_there(secure: EmbeddedCluster) -> None:
    ended = await bench("--kubeconfig", str(secure.kubeconfig), "--context", "absent")
    assert (ended.code, ended.output) == (1, "")
    (line,) = ended.errors.splitlines()
    assert line.startswith("aioinformer: ")
    assert "absent" in line


async def test_unreachable_rate_is_reported() -> None:
    ended = await bench("--objects", "10", "--rate", "100000", "--seconds", "1")
    assert " per second of the 100,000 requested, asyncio" in ended.output
    assert (ended.code, ended.errors) == (0, "")


async def test_lost_changes_end_with_advice() -> None:
    async with APIServer() as server:
        args = ("--server", server.url, "--objects", "10", "--rate", "50", "--seconds", "60")
        async with start(*args) as program:
            await requests(server, "patch", 60)
            server.faults.expire_history()
            server.faults.drop_watches("configmaps")
            ended = await program.end()
        assert (ended.code, ended.output) == (1, "")
        (line,) = ended.errors.splitlines()
        assert line.startswith(
            "aioinformer: the informer fell behind and has to relist: 50 changes per second"
        )
        assert line.endswith("pass a lower --rate")
        assert server.snapshot("v1", "configmaps") == {}


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]])
async def test_signal_prints_the_report_and_cleans_up(numbers: list[int]) -> None:
    async with APIServer() as server:
        args = ("--server", server.url, "--objects", "30", "--rate", "50", "--seconds", "60")
        async with start(*args) as program:
            await requests(server, "patch", 100)
            for number in (signal.SIGSTOP, *numbers, signal.SIGCONT):  # several come at once
                program.signal(number)
            ended = await program.end()
        assert (ended.code, ended.errors) == (0, "")
        assert ended.output.startswith("interrupted after ")
        assert "changes of 30 objects" in ended.output
        assert server.snapshot("v1", "configmaps") == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_second_signal_leaves_cleanup_to_the_load_process(number: int) -> None:
    async with APIServer() as server:
        args = ("--server", server.url, "--objects", "3", "--rate", "50", "--seconds", "60")
        async with start(*args) as program:
            await requests(server, "patch", 100)
            frozen = server.faults.freeze(verb="delete")
            program.signal(number)
            await requests(server, "delete", 1)
            program.signal(number)
            ended = await program.end()
        assert (ended.code, ended.errors) == (0, "")
        assert ended.output.startswith("interrupted after ")
        frozen.remove()
        async with asyncio.timeout(PATIENCE):
            while server.snapshot("v1", "configmaps"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_signal_before_any_measurement(number: int, code: int) -> None:
    async with APIServer() as server:
        frozen = server.faults.freeze(verb="create")
        async with start("--server", server.url, "--objects", "1") as program:
            await requests(server, "create", 1)
            program.signal(number)
            message = "aioinformer: interrupted before there was a report\n"
            assert await program.end() == (code, "", message)
        frozen.remove()
        assert server.snapshot("v1", "configmaps") == {}


async def test_leftovers_of_an_earlier_run_are_deleted() -> None:
    async with APIServer() as server:
        for name in ("aioinformer-bench-0", "aioinformer-bench-7"):
            server.create("v1", "configmaps", configmap(name, "default"))
        ended = await bench("--server", server.url, "--objects", "1", "--rate", "50", "--seconds", "1")
        assert ended.code == 0, ended.errors
        assert server.snapshot("v1", "configmaps") == {}


async def test_unreachable_server_is_a_one_line_error() -> None:
    ended = await bench("--server", "http://127.0.0.1:1", "--objects", "1")
    assert ended.code == 1
    assert ended.errors.startswith("aioinformer: ")
    assert "Traceback" not in ended.errors


async def test_missing_uvloop(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("raise ModuleNotFoundError")
    path = os.pathsep.join(folder for folder in (str(tmp_path), os.environ.get("PYTHONPATH")) if folder)
    ended = await bench("--loop", "uvloop", PYTHONPATH=path)
    assert ended == (1, "", "aioinformer: --loop uvloop needs uvloop: pip install uvloop\n")


async def test_a_histogram_shows_every_value_once() -> None:
    lines = histogram([100_000, 101_000, 900_000])
    assert lines[0].endswith("█ 2")
    assert lines[-1].endswith("█ 1")
    assert len(lines) == 7


async def requests(server: APIServer, verb: str, count: int) -> None:
    """Wait for this many requests."""
    async with asyncio.timeout(PATIENCE):
        while server.count(verb, "configmaps") < count:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
