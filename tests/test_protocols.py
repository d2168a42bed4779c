"""Which batch methods of a store may replace its single ones."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.protocols import may_batch


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
    """A wrapper that passes missing attributes on."""

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
    ids=lambda value: value if isinstance(value, bool) else type(value).__name__,
)
def test_batch_method_is_used_unless_a_subclass_overrides_a_single_one(obj: object, usable: bool) -> None:
    assert may_batch(obj, "many", "one", "other") is usable


def test_single_method_overridden_on_the_instance() -> None:
    patched = Base()
    patched.other = lambda: None  # type: ignore[method-assign]
    assert not may_batch(patched, "many", "one", "other")
    assert may_batch(patched, "many", "one")
