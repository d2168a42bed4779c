"""The CustomResourceDefinition of a class."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID, uuid4

import msgspec
import pytest
from msgspec import Meta, inspect

from aioinformer import Client, ConfigError, InvalidError, Resource
from aioinformer.operator import Operator, Uses
from aioinformer.operator.definitions import install
from aioinformer.testing import APIServer
from aioinformer.typed import (
    CamelStruct,
    Column,
    CustomResource,
    MapOf,
    Metadata,
    Rule,
    Scale,
    SetOf,
    crd,
)
from aioinformer.typed.scalars import SCALARS

from .kinds import Website

INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def spec_of(definition: dict[str, Any]) -> dict[str, Any]:
    """The schema of the first version's spec."""
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec: dict[str, Any] = schema["properties"]["spec"]
    return spec


TEXTS: dict[Any, tuple[list[Any], list[str]]] = {
    timedelta: (
        [
            timedelta(days=1, seconds=0.25),
            -timedelta(hours=1),
            timedelta(0),
            "PT1H30M",
            "P1D",
            "PT0.5S",
            "P2DT5M1S",
        ],
        ["24h", "1h30m", "P", "PT", "P1DT", "P1W", "P1Y", "PT1M1H", "P9999999999D", "90", ""],
    ),
    time: (
        [time(1, 2, 3, 4), time(1, 2, tzinfo=UTC), "23:59:59+01:00"],
        ["12:00", "24:00:00", "12:00:60", "12:00:00+24:00", "noon"],
    ),
    Decimal: ([Decimal("1E+2"), Decimal("-0.10"), "5"], ["ten", "1,5", "", "0x1"]),
    bytes: ([b"", b"a", b"abcd"], ["a", "a=", "!!!!"]),
    datetime: (
        [datetime(1, 1, 1, tzinfo=UTC), "9999-12-31T23:59:59.999999Z", "2020-01-01T00:00:00.1234567-23:59"],
        [
            "0000-01-01T00:00:00Z",
            "2020-01-01T00:00:00+99:99",
            "2020-01-01T00:00:00x5Z",
            "9999-12-31T23:59:59.9999999Z",
        ],
    ),
    date: ([date(1, 1, 1), date(9999, 12, 31)], ["0000-01-01"]),
    UUID: (
        [UUID(int=5), "12345678123412341234123456789ABC"],
        ["12345678-123412341234123456789abc", "12345678-1234-1234-1234-123456789ab"],
    ),
}


@pytest.mark.parametrize("kind", TEXTS, ids=lambda kind: kind.__name__)
def test_the_schema_refuses_texts_that_the_class_cannot_read(kind: Any) -> None:
    """The server would accept such an object, and the cache would drop it."""
    field = msgspec.defstruct("Field", [("value", kind)])
    good, bad = TEXTS[kind]
    schema = spec_of(crd(define(field)))["properties"]["value"]
    for value in good:
        text = msgspec.json.decode(msgspec.json.encode(value))
        assert re.search(schema["pattern"], text), text
        msgspec.convert({"value": text}, field)
    for text in bad:
        assert not re.search(schema["pattern"], text), text
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"value": text}, field)


def define(spec: Any) -> type[CustomResource]:
    return types.new_class(
        "Thing",
        (CustomResource,),
        {"group": "example.com", "version": "v1"},
        lambda body: body.update(__annotations__={"spec": spec}, __module__=__name__),
    )


def test_names_and_versions() -> None:
    definition = crd(Website)
    assert definition["metadata"] == {"name": "websites.typed.example.com"}
    spec = definition["spec"]
    assert spec["scope"] == "Namespaced"
    assert spec["names"] == {
        "plural": "websites",
        "singular": "website",
        "kind": "Website",
        "listKind": "WebsiteList",
        "shortNames": ["web"],
        "categories": ["all", "sites"],
    }
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert [(column["name"], column["type"]) for column in version["additionalPrinterColumns"]] == [
        ("Host", "string"),
        ("Replicas", "integer"),
        ("Ready", "string"),
        ("ReadyAt", "date"),
        ("Age", "date"),
    ]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A website."
    assert schema["required"] == ["spec"]
    assert [*schema["properties"]] == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert [rule["rule"] for rule in schema["x-kubernetes-validations"]] == [
        "self.metadata.name != 'forbidden'",
        "self.spec.replicas < 9",
    ]


FIELDS: dict[str, dict[str, Any]] = {
    "host": {
        "type": "string",
        "minLength": 3,
        "maxLength": 40,
        "pattern": "^[a-z.]+$",
        "description": "The host name.",
        "example": "a.example",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "host cannot change"}],
    },
    "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2, "default": 2},
    "ratio": {"type": "number", "minimum": 0.5, "default": 0.5},
    "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
    "mode": {"type": "string", "enum": ["fast", "slow"]},
    "level": {"type": "integer", "enum": [1, 2, 3], "default": 1},
    "targetPort": {**INT_OR_STRING, "default": "http"},
    "aliases": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "default": []},
    "tags": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set", "default": []},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2, "default": {}},
    "settings": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {}},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "since": {**SCALARS[inspect.DateTimeType], "nullable": True},
    "day": {**SCALARS[inspect.DateType], "nullable": True},
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name: str) -> None:
    assert spec_of(crd(Website))["properties"][name] == FIELDS[name]


def test_objects_in_fields() -> None:
    spec = spec_of(crd(Website))
    assert (spec["type"], spec["required"], spec["description"]) == ("object", ["host"], "The wanted state.")
    limits, ports, extra = (spec["properties"][name] for name in ("limits", "ports", "extra"))
    assert limits["default"] == {"cpu": "1", "timeout": 10}
    assert limits["properties"]["timeout"] == {
        "type": "integer",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 100,
        "exclusiveMaximum": True,
        "default": 10,
    }
    assert limits["properties"]["memory"]["nullable"]
    assert "Gi" not in limits["properties"]["cpu"]["pattern"]
    assert (ports["x-kubernetes-list-type"], ports["maxItems"]) == ("map", 3)
    assert ports["x-kubernetes-list-map-keys"] == ["number", "protocol"]
    assert extra["x-kubernetes-preserve-unknown-fields"]
    assert "timeout" in extra["properties"]


def test_versions_of_a_kind() -> None:
    class Cave(CustomResource, group="example.com", version="v1", served=False):
        spec: dict[str, Any] = {}

    class CaveV2(Cave, version="v2"):  # an old version that is served no longer is no reason
        size: int = 1

    definition = crd(Cave, CaveV2, conversion={"strategy": "None"})["spec"]
    assert definition["names"]["kind"] == "Cave"
    assert definition["conversion"] == {"strategy": "None"}
    assert [
        (version["name"], version["served"], version["storage"]) for version in definition["versions"]
    ] == [
        ("v1", False, False),
        ("v2", True, True),
    ]
    assert "subresources" not in definition["versions"][0]

    class CaveV3(Cave, version="v3", storage=True):
        pass

    assert [version["storage"] for version in crd(CaveV3, CaveV2)["spec"]["versions"]] == [True, False]


def test_another_kind_has_names_of_its_own() -> None:
    class Cave(CustomResource, group="example.com", version="v1", short_names=("cv",), categories=("all",)):
        spec: dict[str, Any] = {}

    class Mine(Cave, kind="Mine"):
        pass

    names = crd(Mine)["spec"]["names"]
    assert (names["plural"], names["categories"]) == ("mines", ["all"])
    assert "shortNames" not in names


def test_cluster_scoped_kinds_and_plurals() -> None:
    class Policy(CustomResource, group="example.com", version="v1", namespaced=False):
        spec: dict[str, Any] = {}

    definition = crd(Policy)
    assert definition["spec"]["scope"] == "Cluster"
    assert definition["metadata"]["name"] == "policies.example.com"


def test_a_literal_that_may_be_none() -> None:
    class Cave(CustomResource, group="example.com", version="v1"):
        spec: Literal["deep", "flat", None] = None

    assert spec_of(crd(Cave)) == {"type": "string", "enum": ["deep", "flat"]}


T = TypeVar("T")


class Pair(CamelStruct, Generic[T]):
    """Two values."""

    left: T
    right: T | None = None


class Base(CustomResource, Generic[T]):
    spec: T


class Paired(Base[Pair[int]], group="example.com", version="v1"):
    status: dict[str, list[Pair[Annotated[str, Meta(min_length=1)]]]] = {}


def test_generic_structs() -> None:
    definition = crd(Paired)
    assert spec_of(definition) == {
        "description": "Two values.",
        "type": "object",
        "properties": {"left": {"type": "integer"}, "right": {"type": "integer", "nullable": True}},
        "required": ["left"],
    }
    status = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status["additionalProperties"]["items"]["properties"]["left"] == {"type": "string", "minLength": 1}
    decoded = msgspec.json.decode(b'{"spec": {"left": 1}}', type=Paired)
    assert decoded.spec == Pair(left=1)


class Limited(CustomResource, group="example.com", version="v1"):
    spec: Annotated[int, Meta(ge=1, le=9)] | Annotated[str, Meta(pattern="^[a-z]+$", max_length=5)]


async def test_limits_of_int_or_string_are_enforced() -> None:
    assert spec_of(crd(Limited)) == {
        **INT_OR_STRING,
        "minimum": 1,
        "maximum": 9,
        "maxLength": 5,
        "pattern": "^[a-z]+$",
    }
    operator = Operator("limits", uses=[Uses(Limited)])
    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, operator)
        limited = Resource(client, Limited)
        right: tuple[int | str, ...] = (1, 9, "web")
        for number, spec in enumerate(right):
            await limited.create(
                Limited(metadata=Metadata(name=f"right-{number}", namespace="default"), spec=spec)
            )
        wrong: tuple[int | str, ...] = (0, 10, "WEB", "longer")
        for spec in wrong:
            with pytest.raises(InvalidError, match="spec"):
                await limited.create(Limited(metadata=Metadata(name="wrong", namespace="default"), spec=spec))


class Loop(CamelStruct):
    inner: Loop | None = None


class Row(CamelStruct, array_like=True):
    x: int = 0


class Item(CamelStruct):
    name: str
    owner: str | None = None


class BadSpec(CamelStruct, kw_only=True):
    union: list[int] | str = ""
    loop: Loop | None = None
    row: Row | None = None
    pair: tuple[int, str] = (1, "")
    mixed: Literal["a", 1] = "a"
    keys: dict[int, str] = {}
    small: Annotated[int, Meta(ge=3)] = 1
    look: Annotated[str, Meta(pattern="^(?!a)")] = "b"
    objects: Annotated[list[Item], SetOf] = []
    items: Annotated[list[Item], MapOf("nam")] = []
    owners: Annotated[list[Item], MapOf("owner")] = []
    text: Annotated[str, SetOf] = ""
    odd: Annotated[str, Meta(extra_json_schema={"$ref": "x"})] = ""


class Bad(
    CustomResource,
    group="example",
    version="1",
    kind="Bad_Kind",
    short_names=("B",),
    categories="all",
    scale=Scale(replicas=".spec.replicas"),
    columns=[Column("A", "spec.a"), Column("B", ".spec.nothing")],
):
    spec: BadSpec


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        crd(Bad)
    lines = str(raised.value).splitlines()
    assert lines[0] == "Bad has 22 mistakes:"
    for line, text in zip(
        lines[1:],
        [
            "group='example' must be a domain",
            "version='1' must be like 'v1'",
            "kind='Bad_Kind' must have letters and digits only, at most 59",
            "short_names: 'B' must be a name in lower case",
            "categories='all' must be a tuple: categories=('all',)",
            "spec.union: a schema has one type for a field",
            "spec.loop.inner: Loop contains itself",
            "spec.row: Row has array_like=True",
            "spec.pair: a schema has no tuple",
            "spec.mixed: the values [1, 'a'] must all be",
            "spec.keys: the keys of a dict must be str",
            "spec.small: the default does not fit the type: Expected `int` >= 3",
            "spec.look: pattern: servers use Go's regular expressions and refuse this one: error parsing",
            "spec.objects: a set has strings, numbers or booleans",
            "spec.items: MapOf: the items have no field 'nam', but name, owner",
            "spec.owners: MapOf: 'owner' must be a string",
            "spec.text: SetOf and MapOf are for lists",
            "spec.odd: extra_json_schema: a CustomResourceDefinition's schema has no '$ref'",
            "the column 'A': the path 'spec.a' must begin with a dot",
            "the column 'B': there is no field .spec.nothing",
            "scale: replicas needs a field .spec.replicas of type int",
            "scale: status_replicas needs a field .status.replicas of type int",
        ],
        strict=True,
    ):
        assert text in line


def test_class_arguments_of_other_types_are_mistakes() -> None:
    options: dict[str, Any] = {
        "version": 1,
        "short_names": 5,
        "columns": Column("A", ".spec"),
        "rules": ["self.spec > 1"],
        "scale": "spec.replicas",
        "namespaced": "no",
    }

    class Wrong(CustomResource, group="example.com", **options):
        spec: complex

    with pytest.raises(ConfigError) as raised:
        crd(Wrong)
    for text in (
        "Wrong has 8 mistakes:",
        "version=1 must be a str",
        "short_names=5 must be a tuple",
        "columns=Column(name='A', path='.spec', ",
        "rules: 'self.spec > 1' is not a Rule",
        "scale='spec.replicas' must be a Scale",
        "namespaced='no' must be a bool",
        "spec: a schema has no complex; use a Struct",
    ):
        assert text in str(raised.value)


def test_mistakes_of_versions_are_reported_at_once() -> None:
    class One(CustomResource, group="example.com", version="v1", storage=True):
        spec: dict[str, Any] = {}

    class Two(CustomResource, group="example.org", version="v1", kind="One", storage=True):
        spec: set[Any] | int = 0

    with pytest.raises(ConfigError) as raised:
        crd(One, Two)
    text = str(raised.value)
    assert text.startswith("Two and One has 4 mistakes")
    for part in (
        "Two: spec: a schema has one type",
        "group='example.com', but group='example.org' of Two",
        "One and Two are both version 'v1'",
        "One and Two have storage=True",
    ):
        assert part in text


class Lost(CustomResource, group="example.com", version="v1"):
    spec: Missing  # type: ignore[name-defined]  # noqa: F821


class Undeclared(CustomResource):
    spec: dict[str, Any] = {}


class Plain(msgspec.Struct):
    name: str


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Lost, "Lost: msgspec cannot read the class: name 'Missing' is not defined; annotations may name"),
        (Undeclared, r"Undeclared declares no resource: class Undeclared\(CustomResource, group="),
        (Plain, "Plain declares no resource"),
    ],
)
def test_classes_that_are_no_kind(kind: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        crd(kind)


def test_reserved_groups_and_missing_versions_are_mistakes() -> None:
    class Mine(CustomResource, group="mine.k8s.io"):
        spec: dict[str, Any] = {}

    with pytest.raises(ConfigError, match=r"(?s)a group and a version are needed.*reserved for Kubernetes"):
        crd(Mine)
    with pytest.raises(ConfigError, match="crd\\(\\) needs a class"):
        crd()


def test_rules_take_all_options() -> None:
    class Cave(CustomResource, group="example.com", version="v1"):
        spec: Annotated[
            dict[str, str],
            Rule("a", "b"),
            Rule("c", reason="FieldValueRequired", field_path=".x", optional_old_self=True),
        ]

    assert spec_of(crd(Cave))["x-kubernetes-validations"] == [
        {"rule": "a", "message": "b"},
        {"rule": "c", "reason": "FieldValueRequired", "fieldPath": ".x", "optionalOldSelf": True},
    ]


class NullableSpec(CamelStruct, kw_only=True):
    host: str | None
    mode: Literal["a", "b"] | None
    size: int | None = 3
    plain: str


class Nullable(CustomResource, group="example.com", version="v1"):
    spec: NullableSpec


def test_a_field_that_may_be_none_may_be_missing() -> None:
    """Older objects lack it; a server takes no null for an enum."""
    spec = spec_of(crd(Nullable))
    assert spec["required"] == ["plain"]
    assert [*spec["properties"].values()] == [
        {"type": "string", "nullable": True},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "integer", "nullable": True, "default": 3},
        {"type": "string"},
    ]


def test_a_status_needs_a_default() -> None:
    class Cave(CustomResource, group="example.com", version="v1"):
        spec: dict[str, Any]
        status: dict[str, Any]

    with pytest.raises(ConfigError, match=r"Cave: status needs a default, .*servers drop the status"):
        crd(Cave)


class Stamp(CamelStruct, kw_only=True):
    token: str = msgspec.field(default_factory=lambda: str(uuid4()))


def now() -> datetime:
    return datetime.now(UTC)


def any_day() -> date:
    return date(2020, 1, 1)


MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "token": (
        str,
        msgspec.field(default_factory=lambda: str(uuid4())),
        "differs from call to call, and a definition",
    ),
    "time": (float, msgspec.field(default_factory=lambda: now().timestamp()), "differs from call to call"),
    "since": (datetime, msgspec.field(default_factory=now), "make the field `X | None = None`"),
    "day": (date, msgspec.field(default_factory=any_day), "differs from call to call"),
    "inner": (Stamp, msgspec.field(default_factory=Stamp), "differs from call to call"),
    "naive": (
        datetime,
        datetime(2020, 1, 1),  # noqa: DTZ001
        "2020-01-01T00:00:00' is no date-time of RFC 3339, which has a",
    ),
    "infinite": (float, float("inf"), "inf is no number in JSON"),
    "nothing": (float, float("nan"), "nan is no number in JSON"),
    "huge": (int, 2**63, "9223372036854775808 is no number of 64 bits"),
    "deep": (
        dict[str, list[int]],
        msgspec.field(default_factory=lambda: {"a": [2**70]}),
        "is no number of 64 bits",
    ),
    "most": (
        Annotated[int, Meta(le=2**63 - 1)],
        1,
        "le=9223372036854775807 is no number of 64 bits, so servers",
    ),
    "least": (Annotated[int, Meta(ge=-(2**63))], 1, "ge=-9223372036854775808 is no number of 64 bits"),
    "wide": (Annotated[float, Meta(lt=1e300)], 1.0, "lt=1e+300 is no number of 64 bits"),
    "end": (Annotated[str, Meta(pattern=r"a\Z")], "a", r"invalid escape sequence: `\Z`"),
    "many": (Annotated[str, Meta(pattern="a{1,2000}")], "a", "invalid repeat count: `{1,2000}`"),
    "possessive": (Annotated[str, Meta(pattern="a++")], "a", "invalid nested repetition operator: `++`"),
    "verbose": (Annotated[str, Meta(pattern="(?x)a")], "a", "Perl syntax: `(?x`"),
    "comment": (Annotated[str, Meta(pattern="(?#b)a")], "a", "Perl syntax: `(?#`"),
    "again": (Annotated[str, Meta(pattern=r"(a)\1")], "aa", r"invalid escape sequence: `\1`"),
    "if": (Annotated[str, Meta(pattern="(b)?(?(1)c|a)")], "a", "Perl syntax: `(?(`"),
    "atomic": (Annotated[str, Meta(pattern="(?>a)")], "a", "Perl syntax: `(?>`"),
    "behind": (Annotated[str, Meta(pattern="(?<=a)b")], "ab", "invalid named capture"),
    "given": (Annotated[str, Meta(extra_json_schema={"pattern": "(?!a)"})], "b", "Perl syntax: `(?!`"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_servers_refuse_is_a_mistake_of_the_field(name: str) -> None:
    kind, default, message = MISTAKES[name]
    spec = msgspec.defstruct("Spec", [("field", kind, default)])
    with pytest.raises(ConfigError) as raised:
        crd(define(spec))
    assert "spec.field" in str(raised.value)
    assert message in str(raised.value)


NAMES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "K" * 60, "plural": "ks"}, "at most 59"),
    ({"short_names": ("2d",)}, "short_names: '2d' must be a name in lower case that begins with a letter"),
    ({"short_names": ("a" * 64,)}, "at most 63 letters"),
    ({"categories": ("2d",)}, "categories: '2d' must be a name"),
    ({"group": f"{'a' * 60}.{'b' * 250}"}, "may have 253 letters"),
    (
        {"columns": [Column("A", ".spec", format="decimal")]},
        "the column 'A': format='decimal' must be one of int32",
    ),
    ({"columns": [Column("A", ".spec", type="text")]}, "the column 'A': type='text' must be one of integer"),  # type: ignore[arg-type]
    ({"columns": [Column("", ".spec")]}, "the column of .spec needs a name"),
    ({"columns": [Column("A", ".spec", priority=-1)]}, "the column 'A': priority=-1 must be 0"),
    ({"selectable_fields": (".spec.none",)}, "selectable_fields: there is no field .spec.none of type str"),
    ({"selectable_fields": ("spec",)}, "selectable_fields: 'spec' must be a path like '.spec.host'"),
    ({"selectable_fields": (".metadata.name",)}, "without brackets and not of metadata"),
    ({"selectable_fields": (".spec", ".spec")}, "has a field twice"),
    ({"selectable_fields": tuple(f".spec{n}" for n in range(9))}, "9 fields, and servers take at most 8"),
    ({"selectable_fields": ".spec"}, "selectable_fields='.spec' must be a tuple"),
    ({"deprecated": ""}, "deprecated='' must have 1 to 256 printable bytes"),
    ({"deprecated": "a\nb"}, "must have 1 to 256 printable bytes"),
    ({"deprecated": 1}, "deprecated=1 must be a bool or str"),
    ({"labels": {"a b": "c"}}, "labels: 'a b'"),
    ({"labels": {"a": "-"}}, "labels: 'a': '-'"),
    ({"labels": {"a": 1}}, "labels: 'a': 1 must be two strings"),
    ({"annotations": {"a/b/c": ""}}, "annotations: 'a/b/c'"),
    ({"description_limit": -1}, "description_limit=-1 must be 0"),
]


@pytest.mark.parametrize(("options", "message"), NAMES, ids=[message for _, message in NAMES])
def test_names_and_columns_that_servers_refuse_are_mistakes(options: dict[str, Any], message: str) -> None:
    class Thing(CustomResource, **{"group": "example.com", "version": "v1", **options}):
        spec: str

    with pytest.raises(ConfigError, match=message):
        crd(Thing)


def test_versions_share_labels_but_not_deprecation() -> None:
    class Old(
        CustomResource,
        group="example.com",
        version="v1",
        kind="Thing",
        deprecated="use v2",
        labels={"a": "b"},
        annotations={"example.com/Docs": "any text"},
    ):
        spec: str

    class New(Old, version="v2", selectable_fields=(".spec",)):
        """The new version."""

    class Older(Old, version="v1beta1", deprecated=True): ...

    definition = crd(Older, Old, New)
    assert definition["metadata"] == {
        "name": "things.example.com",
        "labels": {"a": "b"},
        "annotations": {"example.com/Docs": "any text"},
    }
    older, old, new = definition["spec"]["versions"]
    assert (older["deprecated"], "deprecationWarning" in older) == (True, False)
    assert (old["deprecated"], old["deprecationWarning"]) == (True, "use v2")
    assert new.keys().isdisjoint(["deprecated", "deprecationWarning"])
    assert new["selectableFields"] == [{"jsonPath": ".spec"}]

    class Same(Old, version="v2", selectable_fields=(".spec",)): ...

    with pytest.raises(ConfigError, match="selectable_fields differ between versions"):
        crd(Old, Same)

    class Other(Old, version="v3", labels={"a": "c"}): ...

    with pytest.raises(ConfigError, match="labels="):
        crd(Old, Other)


class Described(CamelStruct):
    """Very long."""

    description: Annotated[str, Meta(description="Very long.")] = "a default that stays"
    any: dict[str, str] = msgspec.field(default_factory=lambda: {"description": "data that stays"})


@pytest.mark.parametrize(("limit", "text"), [(0, None), (5, "Very…"), (50, "Very long.")])
def test_descriptions_have_a_limit(limit: int, text: str | None) -> None:
    class Thing(CustomResource, group="example.com", version="v1", description_limit=limit):
        """Very long."""

        spec: list[Described]

    schema = crd(Thing)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    inner = schema["properties"]["spec"]["items"]
    field = inner["properties"]["description"]
    assert [part.get("description") for part in (schema, inner, field)] == [text] * 3
    assert field["default"] == "a default that stays"
    assert inner["properties"]["any"]["default"] == {"description": "data that stays"}


def test_the_longest_names_are_taken() -> None:
    class Thing(
        CustomResource, group="example.com", version="v1", kind="K" * 59, short_names=("a" * 63, "b-2")
    ):
        spec: Annotated[int, Meta(ge=-(2**62), le=2**63 - 1024)] = 2**62

    assert crd(Thing)["spec"]["names"]["listKind"] == f"{'K' * 59}List"


@pytest.mark.parametrize("wrong", [None, 3, b".spec.a"])
@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: Column("A", wrong),
        lambda wrong: Column(wrong, ".spec.a"),
        lambda wrong: Scale(replicas=wrong),
        lambda wrong: Scale(status_replicas=wrong),
        lambda wrong: Scale(selector=wrong),
    ],
)
def test_names_and_paths_that_are_no_texts_are_refused(make: Callable[[Any], object], wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"(Column|Scale): \w+ must be a string"):
        make(wrong)


def test_a_text_with_a_format_is_no_list() -> None:
    """Servers take any list for it."""
    spec = spec_of(crd(define(Annotated[str, Meta(extra_json_schema={"format": "ipv4"})])))
    assert spec == {"type": "string", "format": "ipv4", "minItems": 1, "maxItems": 0}


def test_defaults_of_sets_are_in_order() -> None:
    spec = msgspec.defstruct(
        "Spec", [("names", set[str], msgspec.field(default_factory=lambda: {"c", "a", "b"}))]
    )
    assert spec_of(crd(define(spec)))["properties"]["names"]["default"] == ["a", "b", "c"]


def test_a_definition_with_a_built_in_kind_is_small_enough_for_kubectl_apply() -> None:
    from lightkube.models.core_v1 import PodTemplateSpec

    spec = msgspec.defstruct("Spec", [("first", PodTemplateSpec), ("second", PodTemplateSpec | None, None)])
    definition = crd(define(spec))
    assert len(msgspec.json.encode(definition)) < 2**18  # bytes of an annotation
    template = spec_of(definition)["properties"]["first"]
    assert template["description"].startswith("PodTemplateSpec describes the data a pod should have")
    assert "**parameters**" not in template["description"]
    assert "description" not in template["properties"]["spec"]
