"""Which of an object's verbs may be used for others."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.protocols import batched


class Base:
    def one(self) -> None: ...
    def other(self) -> None: ...
    def many(self) -> None: ...


class Plain(Base): ...


class Counting(Base):
    def one(self) -> None: ...


class CountingMany(Counting):
    def many(self) -> None: ...


class Mixin:
    def other(self) -> None: ...


class Mixed(Mixin, Base): ...


class Without(Base):
    many = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ()

    def many(self) -> None: ...


class Proxy:
    """What it has not itself is another's."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class CountingProxy(Proxy):
    def one(self) -> None: ...


@pytest.mark.parametrize(
    ("obj", "usable"),
    [
        (Base(), True),
        (Plain(), True),
        (Counting(), False),
        (CountingMany(), True),
        (Mixed(), False),
        (Without(), False),
        (Slotted(), True),
        (Mixin(), False),
        (Proxy(Base()), True),
        (Proxy(Mixin()), False),
        (CountingProxy(Base()), False),
    ],
    ids=lambda each: each if isinstance(each, bool) else type(each).__name__,
)
def test_a_verb_for_many_stands_for_others_unless_one_is_overridden_below_it(
    obj: object, usable: bool
) -> None:
    assert batched(obj, "many", "one", "other") is usable


def test_one_overridden_on_the_object_itself() -> None:
    patched = Base()
    patched.other = lambda: None  # type: ignore[method-assign]
    assert not batched(patched, "many", "one", "other")
    assert batched(patched, "many", "one")
