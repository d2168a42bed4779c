"""Objects as dicts: what is null, what is omitted, and the order of sets."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from aioinformer.objects.encoding import fields_of, plain


@dataclasses.dataclass
class Point:
    x: int | None
    y: int | None = None


class Inner(msgspec.Struct, rename="camel", kw_only=True):
    host_name: str | None = None
    mode: str | None = "a"
    given: str | None
    left_out: str | msgspec.UnsetType | None = msgspec.UNSET


class Spec(msgspec.Struct, kw_only=True):
    inner: Inner | None = None
    names: dict[str, str | None] = {}
    items: list[Any] = []
    anything: Any = None
    point: Point | None = None


NULLS: list[tuple[Spec, dict[str, Any]]] = [
    (Spec(), {"names": {}, "items": []}),
    (Spec(inner=Inner(given=None)), {"inner": {"mode": "a", "given": None}}),
    (Spec(inner=Inner(mode=None, given="b")), {"inner": {"mode": None, "given": "b"}}),
    (Spec(inner=Inner(given="b", left_out=None)), {"inner": {"mode": "a", "given": "b", "leftOut": None}}),
    (Spec(names={"k": None, "l": "m"}), {"names": {"k": None, "l": "m"}}),
    (
        Spec(items=[None, {"a": None}, Inner(given="b")]),
        {"items": [None, {"a": None}, {"mode": "a", "given": "b"}]},
    ),
    (
        Spec(anything={"a": None, "b": {"c": Inner(given="d")}}),
        {"anything": {"a": None, "b": {"c": {"mode": "a", "given": "d"}}}},
    ),
    (Spec(anything={1: Inner(given="b")}), {"anything": {"1": {"mode": "a", "given": "b"}}}),
    (Spec(point=Point(None)), {"point": {"x": None}}),
]


@pytest.mark.parametrize(("spec", "wanted"), NULLS, ids=lambda part: str(part)[:60])
def test_none_is_omitted_only_where_it_is_the_default(spec: Spec, wanted: dict[str, Any]) -> None:
    """A server would put the default there, and a key of a dict would be lost."""
    assert fields_of(spec) == {"names": {}, "items": [], **wanted}


def test_options_of_structs_hold() -> None:
    class Circle(msgspec.Struct, tag=True, omit_defaults=True):
        radius: int | None = None
        names: set[str] = set()

    class Row(msgspec.Struct, array_like=True):
        x: int | None = None

    assert plain([Circle(), Circle(1, {"b", "a"}), Row()]) == [
        {"type": "Circle"},
        {"type": "Circle", "radius": 1, "names": ["a", "b"]},
        [None],
    ]


def test_tuples_are_lists() -> None:
    assert plain((1, ({2}, Inner(given="a")), {"a": ()})) == [
        1,
        [[2], {"mode": "a", "given": "a"}],
        {"a": []},
    ]


def test_sets_have_one_order() -> None:
    assert plain({10, 9, 1}) == [1, 9, 10]
    assert plain({"a": frozenset(["b", "a"])}) == {"a": ["a", "b"]}
    assert plain({1, "a", 2.5}) == plain({"a", 2.5, 1})
    code = (
        "from aioinformer.objects.encoding import plain\n"
        "import msgspec\n"
        "Spec = msgspec.defstruct('Spec', [('names', set[str])])\n"
        "print(plain(Spec({f'h{i}.example' for i in range(6)})))"
    )
    orders = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(orders) == 1


def test_a_class_in_a_function_is_encoded() -> None:
    """Its annotations cannot be evaluated, and need not be."""

    class Local:
        pass

    class Cave(msgspec.Struct):
        name: str
        local: Local | None = None

    assert fields_of(Cave("a")) == {"name": "a"}
