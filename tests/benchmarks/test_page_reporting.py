"""benchmarks/harness/page_reporting.py: free memory is kept during a measurement, and the report says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.harness.page_reporting import BLOCK, KEPT, TAKEN, keep_memory


class _NotOurs(type(Path())):  # type: ignore[misc]  # of whatever system this is
    """A file that only root may write; tests may run as root."""

    def write_text(self, *given: object, **more: object) -> int:
        raise PermissionError(13, "Permission denied")


@pytest.fixture
def console() -> Console:
    return Console(record=True, width=200)


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "page_reporting_order"
    path.write_text("9\n")
    return path


@pytest.mark.parametrize("most", [0, BLOCK])
def test_memory_is_kept_during_a_measurement(console: Console, order: Path, most: int) -> None:
    with keep_memory(console, order, most) as note:
        assert note == KEPT
        assert int(order.read_text()) > 10
    assert order.read_text() == "9"


def test_parameter_is_restored_after_success_and_failure(console: Console, order: Path) -> None:
    with pytest.raises(RuntimeError), keep_memory(console, order, 0):
        raise RuntimeError
    assert order.read_text() == "9"


@pytest.mark.parametrize("said", ["4294967295\n", "11\n", "", None])
def test_nothing_is_changed_if_memory_is_kept_anyway(console: Console, order: Path, said: str | None) -> None:
    if said is None:
        order.unlink()
    else:
        order.write_text(said)
    with keep_memory(console, order) as note:
        assert note == ""
    assert not console.export_text()
    assert said is None or order.read_text() == said


def test_report_says_if_memory_cannot_be_kept(console: Console, order: Path) -> None:
    with keep_memory(console, _NotOurs(order)) as note:
        assert note == TAKEN
    assert "as root" in console.export_text()
    assert order.read_text() == "9\n"
