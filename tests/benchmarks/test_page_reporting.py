"""benchmarks/harness/page_reporting.py: that free memory stays for as long as it is measured, and that it is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.harness.page_reporting import BLOCK, KEPT, TAKEN, keeping_memory


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
def test_memory_is_kept_while_it_is_measured(console: Console, order: Path, most: int) -> None:
    with keeping_memory(console, order, most) as note:
        assert note == KEPT
        assert int(order.read_text()) > 10
    assert order.read_text() == "9"


def test_the_parameter_is_put_back_whatever_happens(console: Console, order: Path) -> None:
    with pytest.raises(RuntimeError), keeping_memory(console, order, 0):
        raise RuntimeError
    assert order.read_text() == "9"


@pytest.mark.parametrize("said", ["4294967295\n", "11\n", "", None])
def test_where_memory_stays_anyhow_nothing_is_done(console: Console, order: Path, said: str | None) -> None:
    if said is None:
        order.unlink()
    else:
        order.write_text(said)
    with keeping_memory(console, order) as note:
        assert note == ""
    assert not console.export_text()
    assert said is None or order.read_text() == said


def test_where_it_cannot_be_kept_that_is_said(console: Console, order: Path) -> None:
    with keeping_memory(console, _NotOurs(order)) as note:
        assert note == TAKEN
    assert "as root" in console.export_text()
    assert order.read_text() == "9\n"
