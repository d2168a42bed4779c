"""Our queues and stores and client-go's leave the same traces of the same scripts. See README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from aioinformer.cache import Delta, DeltaType
from aioinformer.fifo.delta_fifo import DeltaState

from . import fuzz
from .differences import QUEUES, Difference
from .queue_play import Play
from .queue_script import QueueScript
from .queue_suites import DELTA_FIFO, DELTA_FIFO_036, REAL_FIFO
from .store_suite import INDEXER
from .suite import Suite, first_failure, scripts

NAMES = [suite.name for suite in (DELTA_FIFO, DELTA_FIFO_036, REAL_FIFO, INDEXER)]
SCRIPTS = 5000
SHARE = 1000


@pytest.mark.parametrize("begin", range(0, SCRIPTS, SHARE))
@pytest.mark.parametrize("suite", NAMES, indirect=True)
def test_random_scripts_leave_the_same_trace(suite: Suite[Any], begin: int) -> None:
    failure = first_failure(suite, scripts(suite, "make test", begin, SHARE))
    assert failure is None, failure


MET: list[tuple[Suite[Any], str, Difference]] = [
    (
        DELTA_FIFO,
        '{"ops":[["replace","1","n/a@1"],["pop","drop-requeue","0"],["drain","apply"]],"delta":true}',
        Difference.SYNCED,
    ),
    (
        DELTA_FIFO,
        '{"ops":[["resync"],["pop","drop-requeue","0"],["replace","1"]],"delta":true,"known":["n/a@1"]}',
        Difference.SYNCED,
    ),
    (
        REAL_FIFO,
        '{"ops":[["resync"],["pop","drop","1"],["replace","1"],["drain","apply"]],"known":[],"atomic":true,'
        '"unlock":true}',
        Difference.SYNCED,
    ),
    (
        DELTA_FIFO_036,
        '{"ops":[["replace","1","n/a@1","-1"],["drain","apply"]],"delta":true,"known":["n/b@1"]}',
        Difference.BAD_OBJECT,
    ),
    (
        REAL_FIFO,
        '{"ops":[["replace","1","n/a@1","-1"],["pop_batch","apply","0"]],"known":["n/b@1"],"atomic":true}',
        Difference.BAD_OBJECT,
    ),
    (INDEXER, '{"ops":[["replace","1","-1","n/a@1"]],"indexes":[],"store":true}', Difference.BAD_OBJECT),
    (
        DELTA_FIFO,
        '{"ops":[["add","n/a@1"],["delete","n/a@2!"],["drain","apply"]],"delta":true,"transform":true}',
        Difference.TRANSFORMER,
    ),
    (
        REAL_FIFO,
        '{"ops":[["replace","1","n/b@1!","n/a@1"],["pop_batch","apply","0"]],"transform":true,"known":[]}',
        Difference.TRANSFORMER,
    ),
    (DELTA_FIFO, '{"ops":[["add","-1"],["replace","1","n/a@1"]],"delta":true}', Difference.REFUSED),
    (REAL_FIFO, '{"ops":[["delete","-1"],["replace","1","n/a@1"]],"known":[]}', Difference.REFUSED),
    (
        DELTA_FIFO,
        '{"ops":[["update","n/a@1"],["delete","?n/a"],["drain","apply"]],"delta":true}',
        Difference.TOMBSTONE,
    ),
    (
        REAL_FIFO,
        '{"ops":[["delete","?n/a"],["drain","apply"]],"known":["n/a@1"],"atomic":false}',
        Difference.TOMBSTONE,
    ),
    (
        REAL_FIFO,
        '{"ops":[["replace","2","n/a@1","n/a@2"],["drain","apply"]],"known":[],"atomic":true}',
        Difference.LISTED_TWICE,
    ),
    (
        REAL_FIFO,
        '{"ops":[["add","n/a@1"],["pop","apply","0"],["update","n/b@2"],["delete","?n/a=n/a@1"],'
        '["pop_batch","apply","0"]],"known":[]}',
        Difference.STORE_VERSION,
    ),
    (INDEXER, '{"ops":[["add","n/a@1"],["add","n/a@"]],"indexes":[],"store":true}', Difference.STORE_VERSION),
    (
        REAL_FIFO,
        '{"ops":[["add","n/a@1"],["update","n/b@2"],["pop_batch","drop-requeue","0"],["add","n/a@3"],'
        '["pop_batch","apply","0"],["drain","apply"]],"known":[]}',
        Difference.PUT_BACK,
    ),
    (
        INDEXER,
        '{"ops":[["list-index-func-values","values"]],"indexes":[],"store":true}',
        Difference.UNKNOWN_INDEX,
    ),
    (
        INDEXER,
        '{"ops":[["add","n/a@1#b"],["add","n/a@2*"],["by-index","values","b"]],"indexes":["values"],'
        '"store":true}',
        Difference.INDEX_FUNC,
    ),
]


@pytest.mark.parametrize(
    ("suite", "script", "difference"),
    [pytest.param(suite.name, script, difference, id=difference.name) for suite, script, difference in MET],
    indirect=["suite"],
)
def test_each_known_difference_is_as_described(
    suite: Suite[Any], script: str, difference: Difference
) -> None:
    suite.met.clear()
    assert suite.compare([msgspec.json.decode(script, type=suite.script_type)]) == [None]
    assert set(suite.met) == {difference}


def test_each_known_difference_has_a_script() -> None:
    assert {difference for *_, difference in MET} == set(QUEUES)


def test_each_known_difference_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "differences-from-client-go.md").read_text()
    assert [difference for difference in Difference if f"**{difference}" not in text] == []


@pytest.mark.parametrize("suite", [DELTA_FIFO.name], indirect=True)
def test_a_bug_is_found_and_shrunk(suite: Suite[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A resync that ignores queued deltas: a stale Sync after a newer change (corner C10)."""

    def stale_resync(state: DeltaState) -> Any:
        for key in state._known.list_keys():
            if (obj := state._known.state(key)) is not None:
                state._insert(key, [])
                state.items[key] = (*state.items[key], Delta(DeltaType.SYNC, obj))
            yield

    monkeypatch.setattr(DeltaState, "resync", stale_resync)
    failure = first_failure(suite, scripts(suite, "make test", 0, SHARE))
    assert failure is not None
    assert [op[0] for op in failure.shrunk.ops][-1] == "resync"
    assert len(failure.shrunk.ops) == 2
    assert f"replay {suite.name} {failure.seed}" in str(failure)
    assert suite.compare([failure.shrunk]) != [None]


@pytest.mark.parametrize("suite", [DELTA_FIFO.name], indirect=True)
def test_driver_finds_and_replays_a_failure(suite: Suite[Any], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fuzz", "--scripts", "20", "--seed", "x", "--suite", suite.name, "--jobs", "1"]
    assert fuzz.main(arguments) == 0
    assert "20 scripts alike" in capsys.readouterr().out
    assert fuzz.main(["replay", suite.name, "x:3"]) == 0
    assert fuzz.main(["run", suite.name, '{"ops":[["add","n/a@1"]],"delta":true}']) == 0
    assert capsys.readouterr().out == "alike\nalike\n"


async def test_crash_of_our_side_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeltaState, "resync", lambda state: 1 / 0)
    play = Play(QueueScript([["add", "n/a@1"], ["resync"], ["close"]], delta=True), "v030")
    await play.run()
    assert "ZeroDivisionError" in play.lines[-1]
    assert play.expected[-1] == "no crash"
