"""Every planted bug can still be planted: `make mutants` then says how soon each is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mutants import MUTANTS, Mutant, StaleMutantError
from .mutations import PACKAGE, main


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_place_is_there_once_and_the_bug_is_code(mutant: Mutant) -> None:
    planted = mutant.plant(PACKAGE)
    assert planted != (PACKAGE / mutant.file).read_text()
    compile(planted, mutant.file, "exec")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_survivors_are_explained() -> None:
    assert all(bool(mutant.why) is not bool(mutant.caught) for mutant in MUTANTS)


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_one_whose_place_is_gone_or_ambiguous_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text)
    with pytest.raises(StaleMutantError, match=f"has it {text.count('x')} times, not once"):
        Mutant("stale", "module.py", "x = 1\n", "x = 2\n").plant(tmp_path)


def test_with_a_stale_one_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = Mutant("stale", "turns.py", "nothing of the kind", "")
    monkeypatch.setattr("tests.testing.simulation.mutations.MUTANTS", [*MUTANTS[:1], stale])
    assert main([]) == 2
    said = capsys.readouterr().out
    assert "STALE  stale: turns.py has it 0 times" in said
    assert "1 of 2 mutants are stale: nothing was run" in said
