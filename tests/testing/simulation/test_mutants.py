"""Every mutant can be planted. `make mutants` then measures how soon the simulation finds each."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .mutants import MUTANTS, Mutant, StaleMutantError
from .mutations import PACKAGE, main
from .operators import (
    CallOther,
    DropAssignment,
    DropCall,
    DropOperand,
    MoveBehind,
    Negate,
    Operator,
    ReplaceArgument,
    ReplaceAssigned,
    ReplaceCall,
    ReplaceCondition,
    ReplaceExcept,
    ReplaceReturn,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_can_be_planted_and_compiles(mutant: Mutant) -> None:
    compile(mutant.plant(PACKAGE), mutant.file, "exec")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_survivors_are_explained() -> None:
    assert all(bool(mutant.why) is not bool(mutant.caught) for mutant in MUTANTS)


@pytest.mark.parametrize(
    ("before", "operator", "after"),
    [
        ("if a.b: c()", Negate("b"), "if not a.b:\n    c()"),
        ("x = [a for a in b if a.c]", ReplaceCondition("c", by="True"), "x = [a for a in b if True]"),
        ("return a and self.b and (not c)", DropOperand("b"), "return a and (not c)"),
        ("await self.a(b)", DropCall("a"), "pass"),
        ("self.a(b)", DropCall("a", instead="raise"), "raise"),
        ("self.a += b", DropAssignment("a"), "pass"),
        ("a[b] = c", ReplaceAssigned("a", by="d"), "a[b] = d"),
        ("return a", ReplaceReturn(by="b.c"), "return b.c"),
        ("for a in self.b(c): d()", ReplaceCall("b", by="()"), "for a in ():\n    d()"),
        ("a = b.c(d)", CallOther("c", other="e"), "a = b.e(d)"),
        ("a = b(c, d)", ReplaceArgument("b", position=1, by="None"), "a = b(c, None)"),
        (
            "try: a()\nexcept (b, c.d): e()",
            ReplaceExcept("d", by="b"),
            "try:\n    a()\nexcept b:\n    e()",
        ),
        ("if a: b()\nc()\nd = e", MoveBehind("b", behind="d"), "c()\nd = e\nif a:\n    b()"),
        ("a()\na(b)\nc(a())", DropCall("a", nth=1), "a()\npass\nc(a())"),
    ],
)
def test_operator_changes_its_place_only(before: str, operator: Operator, after: str, tmp_path: Path) -> None:
    def function(code: str) -> str:
        return "class A:\n\n    async def f(self):\n" + "\n".join(
            f"        {line}" for line in code.splitlines()
        )

    (tmp_path / "module.py").write_text(function(before))
    assert Mutant("bug", "module", "A.f", operator).plant(tmp_path) == function(after)


@pytest.mark.parametrize(
    ("function", "operator", "message"),
    [
        ("g", DropCall("b"), "bug: module has no function g"),
        ("f", DropCall("z"), "bug: module:f has no statement that calls 'z'"),
        (
            "f",
            DropCall("b"),
            "bug: module:f has 2 places, and nth does not say which: statement that calls 'b'",
        ),
        ("f", DropCall("b", nth=2), "bug: module:f has only 2, not number 2: statement that calls 'b'"),
        ("f", ReplaceArgument("c", by="1"), "bug: module:f has no call of 'c' with a positional argument 0"),
        ("f", MoveBehind("c", behind="d"), "bug: module:f has no call of 'c' before the assignment to 'd'"),
    ],
)
def test_stale_mutant_names_function_and_missing_place(
    function: str, operator: Operator, message: str, tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(
        dedent(
            """
            def f():
                b()
                d = 1
                if d:
                    b(2)
                c()
            """
        )
    )
    with pytest.raises(StaleMutantError) as caught:
        Mutant("bug", "module", function, operator).plant(tmp_path)
    assert str(caught.value) == message


def test_mutant_of_a_missing_module_is_stale(tmp_path: Path) -> None:
    with pytest.raises(StaleMutantError, match=r"there is no module gone\.away"):
        Mutant("bug", "gone.away", "f", DropCall("a")).plant(tmp_path)


def test_stale_mutant_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = Mutant("stale", "store.store", "Store.put", DropCall("nothing"))
    monkeypatch.setattr("tests.testing.simulation.mutations.MUTANTS", [*MUTANTS[:1], stale])
    assert main([]) == 2
    printed = capsys.readouterr().out
    assert "STALE  stale: store.store:Store.put has no statement that calls 'nothing'" in printed
    assert "1 of 2 mutants are stale; none was run" in printed
