"""aioinformer doctor: its exit codes, its table and its JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from aioinformer.testing import APIServer
from tests.e2e.processes import Ended, started_program
from tests.sharding.written_leases import write_member, write_table

from .setups import install_definition, listening

OPERATOR = """
from aioinformer.operator import Operator
from tests.doctor.setups import operator, Website
"""


async def doctor(*arguments: str, folder: Path | None = None) -> Ended:
    environment = {"PYTHONPATH": f"{folder}:{Path.cwd()}"} if folder else None
    command = (sys.executable, "-m", "aioinformer", "doctor", *arguments)
    async with started_program(*command, environment=environment) as running:
        return await running.end()


async def test_a_server_that_is_fine_and_one_that_is_away(tmp_path: Path) -> None:
    async with APIServer(token="secret") as server:
        server.kubeconfig(tmp_path / "config")
        fine = await doctor("--kubeconfig", str(tmp_path / "config"))
        as_json = await doctor("--kubeconfig", str(tmp_path / "config"), "-o", "json")
        anonymous = await doctor("--server", server.url, "-o", "json")
    away = await doctor("--kubeconfig", str(tmp_path / "config"))
    assert fine.code < 2, fine  # on a busy machine, answers may be slow
    assert (anonymous.code, away.code) == (2, 2), away
    assert "bookmarks come" in fine.output
    report = json.loads(as_json.output)
    assert (report["server"], report["user"]) == (server.url, "embedded")
    assert (report["level"], as_json.code) in (("note", 0), ("warning", 1))
    assert {"check": "ready", "level": "ok", "what": "the server is ready", "do": ""} in report["findings"]
    assert "refuses connections" in away.output
    assert "→ Start the server" in away.output


async def test_forged_owners_of_slots_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "websites.py").write_text(OPERATOR)
    owners: dict[str, list[int]] = {"\x1b[2Jforged": [0, 1, 2, 3], "websites-000000000001": []}
    async with APIServer() as server:
        install_definition(server)
        write_table(server, "websites", 4, owners)
        write_member(server, "websites", "websites-000000000001", ago=0.0, duration=3600)
        options = ("websites", f"--server={server.url}", "--lease-namespace=default", "--shards=4")
        report = await doctor(*options, folder=tmp_path)
    assert report.code == 2, report
    assert r"\x1b[2Jforged" in report.output
    assert "\x1b" not in report.output


async def test_an_operator_and_its_warnings(tmp_path: Path) -> None:
    (tmp_path / "websites.py").write_text(OPERATOR)
    async with APIServer(token="secret") as server:
        server.kubeconfig(tmp_path / "config")
        options = ("websites", "--kubeconfig", str(tmp_path / "config"), "-o", "json")
        missing = await doctor(*options, folder=tmp_path)
        install_definition(server)
        warned = await doctor(*options, "--leader-elect", "--metrics-auth", folder=tmp_path)
    assert missing.code == 2, missing
    assert "has no websites.example.com" in missing.output
    assert warned.code == 1, warned
    assert json.loads(warned.output)["level"] == "warning"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-n", "Web"], "-n"),
        (["--server", "x"], "URL"),
        (["--timeout", "0"], "--timeout"),
        (["--process", "127.0.0.1:8080"], "--process"),
        (["--leader-elect", "--shards=4"], "either --leader-elect or --shards"),
    ],
)
async def test_bad_usage(arguments: list[str], why: str) -> None:
    ended = await doctor(*arguments)
    assert ended.code == 2
    assert why in ended.errors


async def test_processes_and_their_token_without_control_characters(tmp_path: Path) -> None:
    page = {"name": "shops", "informers": [], "ready": ["\x1b[2J gone"]}
    tokens = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        tokens.append(request.headers.get("Authorization"))
        return web.json_response(page)

    (tmp_path / "token").write_text("secret\n")
    async with listening(answer, None) as url:
        options = ("--server", "http://127.0.0.1:1", "--process", url)
        ended = await doctor(*options, "--token-file", str(tmp_path / "token"))
        unread = await doctor(*options, "--token-file", str(tmp_path / "none"))
    assert ended.code == 2
    assert tokens == ["Bearer secret"]
    assert "process" in ended.output
    assert r"\x1b[2J gone" in ended.output
    assert "\x1b" not in ended.output
    assert (unread.code, unread.output) == (2, "")
    assert "--token-file" in unread.errors


@pytest.mark.parametrize("content", [b"", b"a\nb", "schl\u00fcssel".encode(), b"\xff", b"a\x00b"])
@pytest.mark.parametrize("command", [("doctor", "--process"), ("top",)])
async def test_a_file_without_a_token_is_named(
    tmp_path: Path, command: tuple[str, ...], content: bytes
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    arguments = (*command, "http://127.0.0.1:1", "--token-file", str(path))
    async with started_program(sys.executable, "-m", "aioinformer", *arguments) as running:
        ended = await running.end()
    assert (ended.code, ended.output) == (2 if command[0] == "doctor" else 1, "")
    (line,) = ended.errors.splitlines()
    assert line.startswith(f"aioinformer: --token-file {path} ")


async def test_names_that_json_cannot_hold_are_in_the_json(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("{}")
    ended = await doctor("--kubeconfig", str(tmp_path / "config"), "--context", "\udcff", "-o", "json")
    report = msgspec.json.decode(ended.output)
    assert report["level"] == "fault"
    assert any("?" in finding["what"] for finding in report["findings"])


async def test_an_operator_that_cannot_be_loaded() -> None:
    ended = await doctor("no_such_module", "--server", "http://127.0.0.1:1")
    assert (ended.code, ended.output) == (2, "")
    assert "there is no module 'no_such_module'" in ended.errors
