"""pydantic models as specs: their schemas, and what a schema cannot say."""

from __future__ import annotations

import logging
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    PlainSerializer,
    RootModel,
    SecretStr,
    Tag,
    create_model,
    model_serializer,
    model_validator,
)

from aioinformer.errors import ConfigError
from aioinformer.objects.decoders import decoder_of
from aioinformer.objects.encoding import fields_of
from aioinformer.typed import CamelStruct, CustomResource, MapOf, crd

from .models import Http, Port, Probe, Site, Tcp


def define(spec: Any) -> type[CustomResource]:
    return types.new_class(
        "Thing",
        (CustomResource,),
        {"group": "example.com", "version": "v1"},
        lambda body: body.update(__annotations__={"spec": spec}, __module__=__name__),
    )


def schema_of(annotation: Any, **options: Any) -> dict[str, Any]:
    """Return the schema of a model's field."""
    model = types.new_class(
        "Spec", (BaseModel,), {}, lambda body: body.update(__annotations__={"field": annotation}, **options)
    )
    definition = crd(define(model))
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    field: dict[str, Any] = spec["properties"]["field"]
    return field


def test_fields_of_a_model() -> None:
    spec = crd(Site)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["description"] == "The wanted state."
    assert spec["required"] == ["host"]
    fields = spec["properties"]
    assert "title" not in fields  # computed
    assert fields["host"] == {
        "type": "string",
        "minLength": 3,
        "maxLength": 40,
        "pattern": "^[a-z.]+$",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}],
    }
    assert fields["replicas"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 10,
        "multipleOf": 2,
        "description": "Wanted pods.",
        "example": 4,
        "default": 2,
    }
    assert fields["budget"] == {"type": "integer", "minimum": 1, "nullable": True}
    assert fields["targetPort"]["x-kubernetes-int-or-string"]
    assert fields["ports"]["x-kubernetes-list-map-keys"] == ["number", "protocol"]
    assert fields["ports"]["maxItems"] == 3
    assert fields["ports"]["items"]["properties"]["hostName"] == {"type": "string", "nullable": True}
    assert fields["tags"] == {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-list-type": "set",
        "default": [],
    }
    assert fields["env"]["maxProperties"] == 2
    assert fields["open"]["x-kubernetes-preserve-unknown-fields"]
    assert fields["wait"]["default"] == "PT300S"
    assert fields["price"]["default"] == "1.50"
    assert fields["home"]["format"] == "uri"


def test_a_discriminated_union_is_one_of_its_classes() -> None:
    probe = schema_of(Annotated[Http | Tcp, Field(discriminator="kind")])
    assert probe == {
        "description": "http: Calls a URL.",
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["http", "tcp"]},
            "url": {"type": "string"},
            "tries": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 3},
            "port": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "description": "The port."},
        },
        "required": ["kind"],
        "oneOf": [
            {"properties": {"kind": {"enum": ["http"]}}, "required": ["kind", "url"]},
            {"properties": {"kind": {"enum": ["tcp"]}}, "required": ["kind", "port"]},
        ],
    }


def test_the_whole_spec_may_be_a_union_in_a_root_model() -> None:
    class Spec(RootModel[Probe]): ...

    spec = crd(define(Spec))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert len(spec["oneOf"]) == 2


def test_limits_of_a_config_are_limits_of_the_schema() -> None:
    assert schema_of(str, model_config=ConfigDict(str_max_length=5)) == {"type": "string", "maxLength": 5}


def test_a_structs_field_may_be_a_list_or_a_map_of_models() -> None:
    spec = msgspec.defstruct("Spec", [("ports", list[Port]), ("by_name", dict[str, Port])])
    schema = crd(define(spec))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert schema["properties"]["ports"]["items"] == schema["properties"]["by_name"]["additionalProperties"]
    assert schema["properties"]["ports"]["items"]["required"] == ["number"]


class Tree(BaseModel):
    trees: list[Tree] = []


class A(BaseModel):
    kind: Literal["a"] = "a"
    same: int = 1


class B(BaseModel):
    kind: Literal["b"] = "b"
    same: str = ""


class Two(BaseModel):
    kind: Literal["c", "d"] = "c"


class Written(BaseModel):
    @model_serializer
    def write(self) -> str:
        return ""


class PlainStruct(msgspec.Struct):
    x: int


@dataclass
class Data:
    x: int


REFUSED: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "untagged": (Http | Port, "needs a tag that tells them apart", {}),
    "recursive": (Tree, "Tree contains itself", {}),
    "tuple": (tuple[int, str], "no tuple of fixed length", {}),
    "keys": (dict[int, str], "keys of a dict must be str", {}),
    "secret": (SecretStr, "written as asterisks", {}),
    "decimal": (Annotated[Decimal, Field(ge=1)], "cannot limit a Decimal", {}),
    "datetime": (Annotated[datetime, Field(gt=datetime(2020, 1, 1, tzinfo=UTC))], "no limit", {}),
    "json": (Json[Any], "read as string and written as anything", {}),  # type: ignore[misc]
    "callable": (Callable[[], int], "pydantic has no JSON schema for it", {}),
    "dataclass": (Data, "make it a BaseModel", {}),
    "struct": (PlainStruct, "CamelStruct", {"model_config": ConfigDict(arbitrary_types_allowed=True)}),
    "mixed": (int | list[str], "a schema has one type for a field", {}),
    "limits of a union": (Annotated[int | str, Field(max_length=3)], "give them to its members", {}),
    "differing": (Annotated[A | B, Field(discriminator="kind")], "A and B have different types", {}),
    "two tags": (Annotated[A | Two, Field(discriminator="kind")], "a Literal with one value", {}),
    "function": (
        Annotated[Annotated[A, Tag("a")] | Annotated[B, Tag("b")], Discriminator(lambda value: "a")],
        "a function chooses the class",
        {},
    ),
    "serializer": (Written, "model_serializer", {}),
    "written otherwise": (
        Annotated[int, PlainSerializer(str, return_type=str)],
        "read as integer and written as string",
        {},
    ),
    "alias": (int, "one alias", {"field": Field(validation_alias="a", serialization_alias="b")}),
    "path": (int, "one alias", {"field": Field(validation_alias=AliasPath("a", 0))}),
    "data": (int, "made of other fields", {"field": Field(default_factory=lambda data: 1)}),
    "default": (
        Annotated[int, Field(ge=3)],
        "the default does not fit the type: Input should be greater",
        {"field": 1},
    ),
    "changing": (
        datetime,
        "differs from call to call",
        {"field": Field(default_factory=lambda: datetime.now(UTC))},
    ),
    "meta": (Annotated[int, msgspec.Meta(ge=1)], "give the limit by Field", {}),
    "extra": (int, "must be a dict", {"field": Field(json_schema_extra=lambda schema: None)}),
    "unknown key": (int, "has no 'if'", {"field": Field(json_schema_extra={"if": {}})}),
    "map": (Annotated[list[Port], MapOf("none")], "have no field 'none'", {}),
    "pattern": (Annotated[str, Field(pattern="a{1001}")], "Go's regular expressions", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_schema_cannot_say_is_a_mistake_of_the_field(name: str) -> None:
    annotation, message, options = REFUSED[name]
    with pytest.raises(ConfigError) as raised:
        schema_of(annotation, **options)
    assert "spec." in str(raised.value)
    assert message in str(raised.value)


def test_all_mistakes_of_a_model_are_reported_with_their_paths() -> None:
    class Inner(BaseModel):
        secret: SecretStr
        pair: tuple[int, int]

    class Spec(BaseModel):
        inner: list[Inner]
        keys: dict[int, int]

    with pytest.raises(ConfigError) as raised:
        crd(define(Spec))
    for path in ("spec.inner[].secret", "spec.inner[].pair", "spec.keys"):
        assert f"{path}: " in str(raised.value)


def test_an_untagged_union_of_structs_names_the_field() -> None:
    class One(CamelStruct):
        x: int

    class Other(CamelStruct):
        y: int

    deep = msgspec.defstruct("Deep", [("either", One | Other)])
    spec = msgspec.defstruct("Spec", [("deep", deep)])
    with pytest.raises(ConfigError, match=r"spec\.deep\.either: .*must be tagged"):
        crd(define(spec))


def test_a_union_of_models_in_a_struct_names_the_field() -> None:
    spec = msgspec.defstruct("Spec", [("probes", list[Http | Tcp])])
    with pytest.raises(ConfigError, match=r"spec\.probes: .*put a union of models into a model"):
        crd(define(spec))


TEXTS: dict[Any, tuple[list[str], list[str]]] = {
    timedelta: (
        ["PT300S", "P1D", "-P1Y5DT1H", "+PT0.123456789S", "P99999999D", "PT99999H9999999M999999999S"],
        ["5m", "24h", "P", "PT", "P1DT", "PT123456H", "P1H", "pt1h", "01:00:00", ""],
    ),
    datetime: (
        ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "2020-01-01T00:00:00.1234567Z"],
        ["0000-01-01T00:00:00Z", "2020-01-01T00:00:00+99:99", "2020-01-01", "1577836800"],
    ),
    date: (["0001-01-01", "9999-12-31"], ["0000-01-01"]),
    time: (["23:59:59.123456789+01:00", "00:00:00"], ["12:00", "24:00:00", "noon"]),
    Decimal: (["1E+2", "-0.10", "+5"], ["ten", "NaN", "Infinity", ""]),
    UUID: (["12345678123412341234123456789ABC"], ["12345678-123412341234123456789abc"]),
}


@pytest.mark.parametrize("kind", TEXTS, ids=lambda kind: kind.__name__)
def test_a_model_reads_and_writes_the_texts_that_the_schema_takes(kind: Any) -> None:
    pattern = schema_of(kind)["pattern"]
    good, bad = TEXTS[kind]
    model = create_model("Model", field=(kind, ...))
    read = decoder_of(thing := define(model))
    for text in good:
        assert re.search(pattern, text), text
        obj = read(msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"field": text}}), None)
        assert isinstance(obj, thing)
        assert re.search(pattern, fields_of(obj)["spec"]["field"]), text
    for text in bad:
        assert not re.search(pattern, text), text


def test_validators_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Checked(BaseModel):
        host: str
        level: Annotated[int, AfterValidator(abs)] = 1

        @model_validator(mode="after")
        def check(self) -> Checked:
            return self

    with caplog.at_level(logging.INFO, "aioinformer"):
        crd(define(Checked))
        crd(define(Checked))
    (record,) = caplog.records
    assert "Checked has validators (level, the whole model)" in record.getMessage()
