"""``aioinformer top`` on a running operator and on informers of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from textual.widgets import DataTable, Static

from aioinformer import AioInformerError, Client, ConfigError, KubeObject, TransportError
from aioinformer.cli.top.informer_source import informer_source
from aioinformer.cli.top.screen import Top
from aioinformer.cli.top.table import LONGEST_CELL, shorten, text_of
from aioinformer.cli.top.tables import Reading, show
from aioinformer.operator import Operator, Request, RunOptions, run
from aioinformer.operator.debug_page import Read, Snapshot, reading_debug_page
from aioinformer.testing import APIServer, eventually
from tests.kubernetes.process import free_ports

operator = Operator("keeper", events=False)


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject]) -> None:
    if request.name == "bad":
        raise ValueError("no \x1b[31mdisk")


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as server:
        for name in ("good", "bad"):
            server.create("v1", "configmaps", {"metadata": {"name": name}})
        yield server


@pytest.fixture
async def url(server: APIServer) -> AsyncIterator[str]:
    """The metrics port of a running operator."""
    (port,) = free_ports(1)
    options = RunOptions(metrics_port=port, probe_port=0, host="127.0.0.1")
    running = asyncio.create_task(run(operator, Client.from_url(server.url), options))
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:
        await eventually(lambda: is_failing(session, url), within=20)
    yield url
    running.cancel()
    await asyncio.wait({running})


async def is_failing(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/debug.json") as answer:
            return bool((await answer.json())["failing"]["total"])
    except aiohttp.ClientError:
        return False


def cells(app: Top, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def test_the_screen_shows_a_running_operator(server: APIServer, url: str) -> None:
    async with reading_debug_page(url) as read:
        app = Top(read, every=0.1)
        async with app.run_test(size=(160, 60)) as pilot:
            await eventually(lambda: cells(app, "failing"))
            ((controller, key, _, _, error),) = cells(app, "failing")
            assert (controller, key) == ("configmaps", "default/bad")
            assert error == r"ValueError: no \x1b[31mdisk"
            ((name, synced, objects, *_),) = cells(app, "informers")
            assert (name, synced, objects) == ("configmaps", "yes", "2")
            head = str(app.query_one("#headline", Static).render())
            assert head.startswith(f"keeper  {server.url}  up ")
            await pilot.press("p")
            assert app.is_paused
            server.create("v1", "configmaps", {"metadata": {"name": "new"}})
            await pilot.pause(0.5)
            assert cells(app, "informers")[0][2] == "2", "paused"
            await pilot.press("p")
            await eventually(lambda: cells(app, "informers")[0][2] == "3")


async def test_rates_are_those_between_two_looks(server: APIServer) -> None:
    async with informer_source(Client.from_url(server.url), ["configmaps", "po"], None) as read:
        before = Reading(0.0, await read())
        await eventually(lambda: read_objects(read))
        start = Reading(10.0, await read())
        for number in range(30):
            server.patch("v1", "configmaps", "good", {"data": {"number": str(number)}})
        after = await eventually(lambda: after_events(read, start, 30))
    headline, tables = show(start, Reading(20.0, after))
    (row, pods) = tables[0].rows
    assert row[:4] == ("configmaps", "yes", "2", "3.0")
    assert pods[:3] == ("pods", "yes", "0")
    assert show(None, before)[1][0].rows[0][3] == "", "no rate at first"
    assert show(Reading(0.0, after), start)[1][0].rows[0][3] == "", "none after a restart"
    assert "event to handler p50" in headline
    assert [table.title for table in tables if table.rows] == ["Informers", "Handlers, the slowest first"]


async def read_objects(read: Read) -> bool:
    data = await read()
    return bool(data["informers"][0]["objects"] == 2)


async def after_events(read: Read, start: Reading, count: int) -> Snapshot | None:
    data = await read()
    return data if data["informers"][0]["events"] >= start.data["informers"][0]["events"] + count else None


async def test_an_operator_that_goes_away_is_said_and_shown_again(server: APIServer, url: str) -> None:
    answers: list[object] = []

    async def read() -> dict[str, object]:
        if len(answers) == 2:
            answers.append(None)
            raise TransportError("http://127.0.0.1:1/debug.json cannot be read: refused")
        answers.append(None)
        async with reading_debug_page(url) as source:
            return dict(await source())

    app = Top(read, every=0.1)
    async with app.run_test():
        head = app.query_one("#headline", Static)
        await eventually(lambda: "cannot be read: refused" in str(head.render()))
        assert cells(app, "informers"), "what was known stays"
        await eventually(lambda: str(head.render()).startswith("keeper"))


async def test_a_resource_that_the_server_lacks_is_named(server: APIServer) -> None:
    with pytest.raises(ConfigError, match="podz"):
        async with informer_source(Client.from_url(server.url), ["podz"], None):
            pass


def test_cells_are_one_short_line_without_control_characters() -> None:
    assert shorten("a\n b\x1b[2J") == r"a b\x1b[2J"
    assert len(shorten("x" * 1000)) == LONGEST_CELL + 1


async def run_top(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioinformer", "top", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_without_a_terminal_the_tables_are_printed_once(server: APIServer, url: str) -> None:
    code, output, errors = await run_top(url, "--every=0.2")
    assert (code, errors) == (0, "")
    assert output.startswith(f"keeper  {server.url}")
    assert "Failing keys: 1\n" in output
    code, output, errors = await run_top("configmaps", f"--server={server.url}", "--once", "-n", "default")
    assert code == 0, errors
    assert "configmaps in default" in output


async def test_mistakes_are_one_line(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    code, _, errors = await run_top(f"http://127.0.0.1:{port}", "--once")
    assert code == 1
    assert f"http://127.0.0.1:{port}/debug.json cannot be read" in errors
    code, _, errors = await run_top("http://127.0.0.1", f"--token-file={tmp_path / 'none'}", "--once")
    assert code == 1
    assert "--token-file" in errors
    code, _, errors = await run_top("http://127.0.0.1", "pods")
    assert code == 2


def test_empty_tables_are_not_printed() -> None:
    data: Snapshot = {"informers": [], "controllers": []}
    assert text_of(show(None, Reading(0.0, data))[1]) == ""


def test_the_headline_has_the_problems_of_the_process() -> None:
    data: Snapshot = {"name": "shops", "informers": [], "problems": {"LogsLost": "log lines are lost"}}
    assert show(None, Reading(0.0, data))[0] == "shops  ready  log lines are lost"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"informers": [{}]},
        {"informers": [], "problems": [3]},
        {"informers": 3},
        {"informers": [], "failing": [1]},
    ],
)
def test_a_snapshot_of_another_version_is_named(data: Snapshot) -> None:
    with pytest.raises(AioInformerError, match="of another version of aioinformer"):
        show(None, Reading(0.0, data))
