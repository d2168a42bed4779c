"""Random classes of custom resources, and random values for their schemas, hostile ones among them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from msgspec import Meta

from aioinformer.typed import CamelStruct, Condition, IntOrString, MapOf, PreserveUnknown, Quantity, SetOf


class Shade(enum.Enum):
    DARK = "dark"
    LIGHT = "light"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


@dataclasses.dataclass
class Point:
    x: Annotated[int, Meta(ge=0)]
    note: str | None
    y: float = 0.5


class Entry(TypedDict):
    key: Annotated[str, Meta(min_length=1)]
    weight: NotRequired[int]
    moment: datetime | None


class Strict(CamelStruct, forbid_unknown_fields=True, kw_only=True):
    mode: Literal["on", "off"] | None
    size: int | None
    host_name: Annotated[str, Meta(pattern=r"^([a-z0-9]+[-.]?)+$")] = "a"


class Tagged(CamelStruct, tag="circle"):
    radius: Annotated[float, Meta(gt=0)]


class Square(CamelStruct, tag="square"):
    side: Annotated[float, Meta(gt=0)]
    radius: Annotated[float, Meta(gt=0)] = 1.0
    colour: Shade | None = None


class Member(CamelStruct, kw_only=True):
    name: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 80
    since: datetime | None = None


SCALARS: list[Any] = [
    *(str, bytes, bool, int, float, datetime, date, time, timedelta, Decimal, UUID),
    *(IntOrString, Quantity, int | float, Shade, Level),
    *(Literal["a", "b"], Literal[1, 2, 3], Literal["x", None]),
    *(
        Annotated[str, Meta(pattern=pattern)]
        for pattern in (r"^\S+$", r"^(a+)+$", r"^\W?$", "b[^x]", r"^(?:\w+\s?)*$")
    ),
    *(Annotated[str, Meta(min_length=1, max_length=3)], Annotated[str, Meta(max_length=0)]),
    *(Annotated[int, Meta(ge=-5, le=5)], Annotated[int, Meta(gt=0, multiple_of=3)]),
    *(
        Annotated[int, Meta(le=2**63 - 1024)],
        Annotated[float, Meta(gt=0, lt=1)],
        Annotated[float, Meta(multiple_of=2)],
    ),
]
HASHABLE: list[Any] = [str, int, bool, date, UUID, Shade, Literal["a", "b"], Annotated[int, Meta(ge=0)]]
OBJECTS: list[Any] = [
    *(Point, Entry, Strict, Tagged, Tagged | Square, Member, Condition),
    Annotated[Strict, PreserveUnknown],
]


def lists_of(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return lists of types."""
    return kinds.map(lambda kind: list[kind])  # type: ignore[valid-type]


def dicts_of(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return dicts of types."""
    return kinds.map(lambda kind: dict[str, kind])  # type: ignore[valid-type]


def optional(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return types that take None, too."""
    return kinds.map(lambda kind: kind | None)


class Field(NamedTuple):
    """A field's type, and whether None is its default."""

    kind: Any
    has_default: bool


def _structs(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(st.builds(Field, kinds, st.booleans()), min_size=1, max_size=3)
    return fields.map(lambda parts: struct_of("Inner", parts))


def struct_of(name: str, parts: list[Field]) -> Any:
    """Return a Struct with these fields; a default is None."""
    fields: list[Any] = [
        (f"f_{number}", part.kind | None, None) if part.has_default else (f"f_{number}", part.kind)
        for number, part in enumerate(parts)
    ]
    return msgspec.defstruct(name, fields, rename="camel", kw_only=True)


leaves = st.sampled_from([*SCALARS, *OBJECTS, Any, dict[str, Any], list[Annotated[str, Meta(max_length=2)]]])
special = st.sampled_from(
    [
        *(set[kind] for kind in HASHABLE),  # type: ignore[valid-type]
        *(Annotated[list[kind], SetOf] for kind in HASHABLE),  # type: ignore[valid-type]
        *(Annotated[list[Member], MapOf("name")], Annotated[list[Condition], MapOf("type")]),
        *(
            Annotated[list[int], Meta(min_length=1, max_length=2)],
            Annotated[dict[str, int], Meta(max_length=1)],
        ),
    ]
)
kinds = st.recursive(
    leaves | special,
    lambda inner: lists_of(inner) | dicts_of(inner) | optional(inner) | _structs(inner),
    max_leaves=4,
)

TEXTS = [
    *("", "a", "ab", "aaa!", "\u00a0", "a\u00a0b", "\x0b", "\u2028", "ä", "😀😀😀", "\u0000"),
    *("1e3", "null", "true", "-0", "2020-01-01T00:00:00-23:59"),
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.9999999Z"),
    *("2020-01-01T00:00:00+99:99", "2020-01-01T00:00:00x5Z", "2020-01-01t00:00:00z", "2020-01-01T00:00:00,5Z"),
    *("2020-01-01T00:00:00." + "1" * 30 + "Z", "2020-01-01T23:59:60Z", "2020-01-01T00:00:00"),
    *("0000-02-29", "1900-02-29", "2020-02-29", "9999-12-31", "0001-01-01", "2020-13-01", "2020-1-1"),
    *("10:00:00", "10:00:00." + "9" * 30, "23:59:59.9999999Z", "10:00:00+23:59", "10:00:00+24:00", "24:00:00"),
    *("12345678-1234-1234-1234-123456789abc", "12345678-123412341234123456789abc", "1" * 32, "A" * 32),
    *("1e99999999999999999999", "1e9999", "1" * 500, "+1.", ".5", "1E+5", "NaN", "Infinity", "0x1", "1_0"),
    *("P99999999DT999999999H999999999M999999999S", "PT1." + "1" * 30 + "S", "-P1D", "P1W", "PT", "1h30m"),
    *("AB==", "AAA=", "QQ==", "QQ", "Q===", "====", "A A=", "QQ==\n"),
    *("100m", "1.5Gi", "1e", "1e3", "0.5E+2", "+", "dark", "b", "x", "True", "circle", "a.b-c", "a" * 40 + "!"),
]  # fmt: skip
NUMBERS = [
    *(
        0,
        1,
        -1,
        3,
        5,
        6,
        80,
        65535,
        65536,
        2**31,
        2**53,
        2**53 + 1,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        10**30,
    ),
    *(1.0, 1e3, 1e18, -1e18, 0.5, 0.3, 2.5, -0.0, 1e-300, 1e300, 9007199254740993.0),
]
anything = st.recursive(
    st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "a", "a.b", "é", "kind"]), inner)
    ),
    max_leaves=4,
)


def values_of(schema: dict[str, Any], level: int = 0) -> st.SearchStrategy[Any]:
    """Return values for a schema: mostly of its type, often at its limits, sometimes others."""
    fitting = [*_draw_fitting(schema, level)]
    others = anything if level else anything.filter(lambda value: value is not None)
    # Drawn uniformly, so that each value is rather a fitting one.
    return st.one_of(*fitting, *fitting, *fitting, others) if fitting else others


def _draw_fitting(schema: dict[str, Any], level: int) -> Iterator[st.SearchStrategy[Any]]:
    if "enum" in schema:
        yield st.sampled_from(schema["enum"])
        return
    match schema.get("type"):
        case "string":
            yield st.sampled_from(TEXTS)
            if pattern := schema.get("pattern"):
                yield st.from_regex(pattern).filter(lambda text: "\x85" not in text)
            else:
                yield st.text(max_size=schema.get("maxLength", 5))
        case "integer" | "number":
            limits = [schema[name] for name in ("minimum", "maximum") if name in schema]
            yield st.sampled_from([*NUMBERS, *(limit + by for limit in limits for by in (-1, 0, 1))])
        case "boolean":
            yield st.booleans()
        case "array":
            yield st.lists(values_of(schema["items"], level + 1), max_size=3)
        case "object" if "properties" in schema:
            fields = {name: values_of(part, level + 1) for name, part in schema["properties"].items()}
            required = {name: fields.pop(name) for name in schema.get("required", ())}
            yield st.fixed_dictionaries(required, optional=fields | {"unknown": anything})
        case "object" if "additionalProperties" in schema:
            keys = st.sampled_from(["", "a", "a.b", "é", "x" * 70, "metadata"])
            yield st.dictionaries(keys, values_of(schema["additionalProperties"], level + 1), max_size=2)
        case _ if "anyOf" in schema:
            yield st.sampled_from([*NUMBERS, *TEXTS])
