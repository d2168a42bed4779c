"""Output of objects."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Group

from aioinformer import AioInformerError, KubeObject
from aioinformer.cli.output import JsonLines, LogLines, Screen, Table, age_of, print_error, status_of
from aioinformer.typed import Change


def cave(**fields: Any) -> KubeObject:
    return KubeObject.from_dict({"metadata": {"name": "deep", "namespace": "default"}, **fields})


def test_server_text_cannot_forge_rows(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(namespaced=False, wide=False)
    table.event("ADDED", "default/evil", cave(status={"phase": "ok\nADDED\x1b[2J\x07\u202e é東"}), True)
    table.event("ADDED", "default/deep", cave(), True)
    _, evil, deep = capsys.readouterr().out.splitlines()
    said = r"ok\nADDED\x1b[2J\x07\u202e é東"
    assert evil.split(maxsplit=2) == ["ADDED", "evil", f"{said}  -"]
    assert cell_len(evil) == cell_len(deep), "columns are as wide as what is shown"


UNSAFE = (
    '\x7f\x80\x9b2J\x9d0;title\x9c\x85\u2028\u2029\u202e\u2066\u200f\ufeff\U000e0041\U000f0000 é東🙂\\"\n\x1b'
)


def test_json_lines_escape_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    obj = KubeObject.from_dict({"metadata": {"name": "deep"}, "data": {UNSAFE: UNSAFE}})
    lines = JsonLines(full=True)
    lines.event(UNSAFE, UNSAFE, obj, True)
    lines.print_synced(1, UNSAFE)
    printed = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in printed)
    event, synced = printed.split("\n")[:-1]
    assert json.loads(event)["object"]["data"] == {UNSAFE: UNSAFE}
    assert json.loads(event)["key"] == json.loads(synced)["resourceVersion"] == UNSAFE
    assert "é東🙂" in event, "what can be printed is"


def test_changes_are_printed_with_their_event(capsys: pytest.CaptureFixture[str]) -> None:
    obj = KubeObject.from_dict({"metadata": {"name": "a"}})
    changes = [Change(("data", "k\x1b"), "1", "2\x1b"), Change(("data", "j"), "1", msgspec.UNSET)]
    Table(namespaced=False, wide=False).event("MODIFIED", "a", obj, False, changes)
    assert capsys.readouterr().out.splitlines()[2:] == [
        r'    data["k\u001b"]: "1" -> "2\u001b"',
        '    data.j: removed "1"',
    ]
    JsonLines(full=False).event("MODIFIED", "a", obj, False, changes)
    assert json.loads(capsys.readouterr().out)["changes"] == [
        {"field": r'data["k\u001b"]', "old": "1", "new": "2\x1b"},
        {"field": "data.j", "old": "1"},
    ]


def test_server_text_cannot_forge_log_lines(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("client")
    logger.addHandler(handler := LogLines())
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    said = "away\nERROR root: all is lost\r\x85\u2028synced: 5 objects"
    logger.warning("list pods: %s", said)
    try:
        raise AioInformerError(said)
    except AioInformerError:
        logger.exception("handler: %s", said)
    print_error(f"not synced: {said}")
    shown = r"away\nERROR root: all is lost\r\x85\u2028synced: 5 objects"
    first, second, *traceback, last = capsys.readouterr().err.split("\n")[:-1]
    assert first == f"WARNING client: list pods: {shown}"
    assert second == f"ERROR client: handler: {shown}"
    assert last == f"not synced: {shown}"
    assert traceback[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in traceback)
    assert "ERROR root: all is lost" in "".join(traceback)


@pytest.mark.parametrize("phase", ["x" * 500_000, "東" * 250_000, "\x1b" * 250_000])
def test_long_cell_does_not_widen_the_column(capsys: pytest.CaptureFixture[str], phase: str) -> None:
    table = Table(namespaced=True, wide=True)
    table.event("ADDED", "default/deep", cave(), True)
    table.event("ADDED", "default/evil", cave(status={"phase": phase}), True)
    table.event("ADDED", f"default/{'n' * 500}", cave(), True)
    table.event("ADDED", "default/deep", cave(), True)
    _, before, evil, long, after = capsys.readouterr().out.splitlines()
    assert len(after) < len(before) + 110
    assert len(evil) < 1000
    assert "n" * 500 in long, "a name is printed whole"


def test_columns_are_as_wide_as_a_terminal_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(namespaced=False, wide=False)
    for phase in ("稼働中です", "re\u0301sume\u0301", "Running"):
        table.event("ADDED", "default/deep", cave(status={"phase": phase}), True)
    _, *rows = capsys.readouterr().out.splitlines()
    assert {cell_len(row[: row.rindex("-")]) for row in rows} == {55}


UNDECODABLE = {
    "a time that is none": (b'"creationTimestamp":"soon"', b"", ["-", "<undecodable>", "5", "u", "<none>"]),
    "a time without a zone": (
        b'"creationTimestamp":"9024-02-20T00:00:00"',
        b"",
        ["-", "0s", "5", "u", "<none>"],
    ),
    "a label that is null": (b'"labels":{"a":null}', b"", ["-", "<undecodable>", "5", "u", "<undecodable>"]),
    "a deletion at no time": (
        b'"deletionTimestamp":"x"',
        b"",
        ["Terminating", "<undecodable>", "5", "u", "<none>"],
    ),
    "a phase that is no text": (
        b'"labels":{"a":"b"}',
        b',"status":{"phase":"\xff"}',
        ["\N{REPLACEMENT CHARACTER}", "-", "5", "u", "a=b"],
    ),
}


@pytest.mark.parametrize(("meta", "rest", "said"), UNDECODABLE.values(), ids=UNDECODABLE)
def test_undecodable_field_does_not_hide_the_rest(
    capsys: pytest.CaptureFixture[str], meta: bytes, rest: bytes, said: list[str]
) -> None:
    raw = b'{"metadata":{"name":"odd","uid":"u","resourceVersion":"5",%s}%s}' % (meta, rest)
    Table(namespaced=False, wide=True).event("ADDED", "odd", KubeObject.from_bytes(raw), True)
    _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["ADDED", "odd", *said]


def test_undecodable_object_has_an_error_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    obj = KubeObject.from_bytes(b'{"metadata":{"name":"odd"},"data":{"a":1e999}}')
    JsonLines(full=True).event("ADDED", "odd", obj, True)
    line = json.loads(capsys.readouterr().out)
    assert (line["key"], "object" in line) == ("odd", False)
    assert line["error"]


def test_screen_prints_strings_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    said = "failed [/healthz] at [fd00::1]:2379 :ok: [red]"
    Screen().print(Group(said))
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "-"),
        ({"status": {"phase": "Running"}}, "Running"),
        ({"status": {"readyReplicas": 1}, "spec": {"replicas": 2}}, "1/2"),
        ({"status": {}, "spec": {"replicas": 2}}, "0/2"),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
        ({"status": {"conditions": [5, {"type": "Ready", "status": "False"}]}}, "NotReady"),
        ({"status": {"conditions": [{"type": "Held", "status": "True"}]}}, "-"),
        ({"status": {"conditions": 5}}, "-"),
        ({"status": {"conditions": {"Ready": True}}}, "-"),
        ({"status": {"phase": 5}}, "-"),
        ({"status": [], "spec": 5}, "-"),
    ],
)
def test_status_of_arbitrary_custom_resources(fields: dict[str, Any], status: str) -> None:
    assert status_of(cave(**fields)) == status


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=60), "6[0-9]s"),
        (timedelta(minutes=5.5), "5m"),
        (timedelta(hours=30.5), "30h"),
        (timedelta(days=12.5), "12d"),
    ],
)
def test_ages(age: timedelta, said: str) -> None:
    created = (datetime.now(UTC) - age).isoformat()
    obj = KubeObject.from_dict({"metadata": {"name": "deep", "creationTimestamp": created}})
    assert re.fullmatch(said, age_of(obj))
