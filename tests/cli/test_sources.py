"""The files whose changes restart an operator under ``--dev``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from aioinformer import ConfigError
from aioinformer.cli import sources
from aioinformer.cli.sources import Sources, project_files, report_sources


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with a helper package and a template, in the current folder."""
    for name in (
        "operators_main.py",
        "helpers_of_it/__init__.py",
        "templates/page.html",
        ".hidden",
        "venv/pyvenv.cfg",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "venv" / "data.txt").write_text("")
    (tmp_path / "operators_main.py").write_text("import helpers_of_it\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sources, "POLL", 0.01)
    for name in ("operators_main", "helpers_of_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def names(paths: set[str], project: Path) -> set[str]:
    return {str(Path(path).relative_to(project)) for path in paths if path.startswith(str(project))}


def test_loaded_modules_and_the_data_beside_them_are_the_project(project: Path) -> None:
    (project / "not_imported.py").write_text("")
    __import__("operators_main")
    files = project_files()
    assert names(files, project) == {"operators_main.py", "helpers_of_it/__init__.py", "templates/page.html"}
    assert not [path for path in files if "site-packages" in path or path == asyncio.__file__]


async def test_a_change_of_a_reported_file_ends_the_wait(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    report = tmp_path_factory.mktemp("report") / "sources.json"
    watched = Sources("operators_main", report)
    __import__("operators_main")
    report_sources(report, is_loaded=True)
    waiting = asyncio.create_task(watched.wait_changed())
    await asyncio.sleep(0.1)
    (project / "not_imported.py").write_text("")
    await asyncio.sleep(0.1)
    assert not waiting.done()
    (project / "templates" / "page.html").unlink()
    await asyncio.wait_for(waiting, 5)


async def test_after_a_failure_all_python_files_count(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    report = tmp_path_factory.mktemp("report") / "sources.json"
    watched = Sources("operators_main", report)
    report_sources(report, is_loaded=False)
    waiting = asyncio.create_task(watched.wait_changed())
    await asyncio.sleep(0.1)
    (project / "helpers_of_it" / "__init__.py").write_text("A = 1")
    await asyncio.wait_for(waiting, 5)


async def test_a_file_that_is_missing_does_not_end_every_wait(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    watched = Sources("operators_main", tmp_path_factory.mktemp("report") / "sources.json")
    (project / "helpers_of_it" / "__init__.py").unlink()
    await asyncio.wait_for(watched.wait_changed(), 5)
    waiting = asyncio.create_task(watched.wait_changed())
    await asyncio.sleep(0.1)
    assert not waiting.done()
    waiting.cancel()


def test_a_missing_module_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no module 'no_such_module'"):
        Sources("no_such_module", tmp_path / "sources.json")
