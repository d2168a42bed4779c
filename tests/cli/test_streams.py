"""Streams: rows go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from aioinformer.testing import APIServer
from tests.e2e.processes import Running, started_program

from .terminals import on_terminal

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # it is the program's loop that counts

SPINNER = "[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"
MANY = 100


@pytest.fixture
def url(server: APIServer) -> str:
    """The URL of a server with objects wider than a terminal."""
    for number in range(MANY):
        name = f"{number}-{'x' * 100}"
        server.create("v1", "configmaps", {"metadata": {"name": name}})
    return server.url


def in_shell(command: str, **environment: str) -> AbstractAsyncContextManager[Running]:
    """Run the program in a shell."""
    return started_program(
        "bash", "-c", f"exec {sys.executable} -m aioinformer {command}", environment=environment
    )


@pytest.mark.parametrize("form", ["jsonl", "table"])
async def test_rows_go_to_redirected_stdout(url: str, tmp_path: Path, form: str) -> None:
    output = tmp_path / "rows"
    args = ("watch", "cm", "--server", url, "--until-synced", "-o", form)
    async with on_terminal(*args, output=output) as program:
        assert await program.end() == 0
    rows = output.read_text().splitlines()
    assert sum("ADDED" in row for row in rows) == MANY
    assert len(rows) == MANY + 1
    assert "ADDED" not in program.terminal.text
    if form == "jsonl":
        assert json.loads(rows[-1])["count"] == MANY


async def test_terminal_shows_the_state_until_rows_come(server: APIServer, url: str) -> None:
    frozen = server.faults.freeze(resource="configmaps")
    async with on_terminal("watch", "cm", "--server", url, "--until-synced", "-o", "jsonl") as program:
        await program.terminal.shows(f"{SPINNER} not synced, 0 objects")
        frozen.remove()
        await program.terminal.shows(r"SYNCED.*\n")
        rows = await program.terminal.shows('{"type":"ADDED"')
        assert await program.end() == 0
    assert [json.loads(row)["type"] for row in rows.splitlines()] == ["ADDED"] * MANY + ["SYNCED"]


@pytest.mark.parametrize(
    ("frozen", "said"),
    [("/api/v1", "waiting for {url} to list"), ("/api/v1/configmaps", "not synced, 0 objects")],
)
async def test_progress_lines_without_a_terminal(server: APIServer, url: str, frozen: str, said: str) -> None:
    fault = server.faults.freeze(matching=lambda request: request.path == frozen)
    async with in_shell(f"watch cm -A --server {url} --until-synced -o jsonl") as program:
        for _ in range(2):
            assert (await program.errors.next()).startswith(said.format(url=url))
        fault.remove()
        ended = await program.end()
    assert ended.code == 0
    assert [json.loads(line)["type"] for line in ended.output.splitlines()] == ["ADDED"] * MANY + ["SYNCED"]


async def test_terminal_shows_the_silent_server(server: APIServer, url: str) -> None:
    server.pause()
    async with on_terminal("watch", "cm", "--server", url) as program:
        await program.terminal.shows(rf"{SPINNER} waiting for {url} to list")
        server.resume()
        await program.terminal.shows("ADDED")
        program.signal(signal.SIGTERM)
        assert await program.end() == 0


async def test_state_is_shown_unchanged(server: APIServer, url: str) -> None:
    server.faults.fail(500, times=None, resource="configmaps", message="no [/healthz] at [fd00::1]:2379")
    async with on_terminal("watch", "cm", "--server", url) as program:
        await program.terminal.shows(rf"{SPINNER}[^⠋]*no \[/healthz\]\s+at\s+\[fd00::1\]:2379")
        program.signal(signal.SIGTERM)
        assert await program.end() == 0


async def test_force_color_is_no_terminal(url: str) -> None:
    async with in_shell(f"watch cm --server {url} --until-synced", FORCE_COLOR="1") as program:
        code, output, errors = await program.end()
    assert (code, output.count("ADDED")) == (0, MANY)
    (line,) = errors.splitlines()
    assert line.startswith(f"synced: {MANY} objects at version ")


@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
async def test_unwritable_stderr_changes_nothing_else(server: APIServer, url: str, errors: str) -> None:
    async with in_shell(f"-v watch cm --server {url} {errors}") as program:
        header, *rows = [await program.output.next() for _ in range(1 + MANY)]
        assert header.startswith("EVENT")
        assert all(row.startswith("ADDED") for row in rows)
        server.create("v1", "configmaps", {"metadata": {"name": "late"}})
        assert (await program.output.next()).startswith("ADDED      late")
        program.signal(signal.SIGTERM)
        assert await program.end() == (0, "", "")
    async with in_shell(f"watch absent --server {url} {errors}") as program:
        assert await program.end() == (1, "", "")


async def test_bad_usage_with_closed_stderr() -> None:
    async with in_shell("absent 2>&-") as program:
        assert await program.end() == (2, "", "")


async def test_a_server_s_message_is_part_of_one_line(server: APIServer, url: str) -> None:
    forged = "no\nERROR root: all is lost\x85synced: 5 objects at version 5"
    server.faults.fail(500, times=3, resource="configmaps", message=forged)
    async with in_shell(f"watch cm --server {url} --until-synced") as program:
        code, _, errors = await program.end()
    assert code == 0
    *warnings, last = errors.split("\n")[:-1]
    assert warnings
    assert all(line.startswith(("WARNING aioinformer.", "not synced")) for line in warnings)
    assert any(r"no\nERROR root: all is lost\x85synced: 5" in line for line in warnings)
    assert last.startswith(f"synced: {MANY} objects at version ")
