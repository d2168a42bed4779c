"""Errors about values that do not fit name the field and the types, and never have the values."""

from __future__ import annotations

import enum
import json
import traceback
from functools import partial
from typing import Any, Literal

import msgspec
import pydantic
import pytest
from kubernetes_asyncio.client import V1Pod

from aioinformer import DecodeError, KubeObject
from aioinformer.errors import KeyFuncError, outline
from aioinformer.objects.codec import codec_for
from aioinformer.objects.excerpts import begins
from aioinformer.objects.keys import key_and_version
from aioinformer.store.index import Index

SECRET = "hunter2"


class Color(enum.Enum):
    RED = "red"


class One(msgspec.Struct, tag="one", tag_field="kind"):
    pass


class Two(msgspec.Struct, tag="two", tag_field="kind"):
    pass


class Checked(msgspec.Struct):
    word: str

    def __post_init__(self) -> None:
        raise ValueError(f"{self.word} is not allowed")


class Spec(msgspec.Struct):
    color: Color = Color.RED
    either: One | Two | None = None
    checked: Checked | None = None
    count: int = 0
    numbers: dict[str, int] = {}


class Typed(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


class Modelled(pydantic.BaseModel):
    metadata: dict[str, Any]
    count: int = 0
    mode: Literal["a"] = "a"
    either: str = ""

    @pydantic.field_validator("either")
    @classmethod
    def check(cls, either: str) -> str:
        raise ValueError(f"{either} is not allowed")


def of(object_type: Any, **fields: Any) -> str:
    """Return the error about an object that does not fit, and its whole traceback."""
    raw = json.dumps({"kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}, **fields}).encode()
    with pytest.raises(DecodeError) as caught:
        codec_for(object_type).decode(raw)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert "771177" not in shown
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"color": SECRET}, "not a Typed: Invalid enum value - at `$.spec.color`; it is Thing ns/a"),
        ({"either": {"kind": SECRET}}, "Invalid value - at `$.spec.either.kind`"),
        ({"checked": {"word": SECRET}}, "ValueError - at `$.spec.checked`"),
        ({"count": SECRET}, "Expected `int`, got `str` - at `$.spec.count`"),
        ({"numbers": {"key": SECRET}}, "Expected `int`, got `str` - at `$.spec.numbers[...]`"),
    ],
)
def test_error_about_a_struct_names_the_field_and_has_no_value(spec: dict[str, Any], said: str) -> None:
    assert said in of(Typed, spec=spec)


@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"spec": {"count": SECRET}}, "spec.count", "Expected `int`, got `str`"),
        ({}, "spec", "is required"),
        ({"spec": {"either": {"kind": SECRET}}}, "spec.either.kind", "Invalid value"),
        ({"spec": {"checked": {}}}, "spec.checked.word", "is required"),
    ],
)
def test_error_about_a_struct_has_field_and_problem(fields: dict[str, Any], field: str, problem: str) -> None:
    raw = json.dumps({"metadata": {"name": "a"}, **fields}).encode()
    with pytest.raises(DecodeError) as caught:
        codec_for(Typed).decode(raw)
    assert (caught.value.field, caught.value.problem) == (field, problem)
    with pytest.raises(DecodeError) as again:
        codec_for(Typed).decode(caught.value)
    assert (again.value.field, str(again.value)) == (field, str(caught.value))


def test_error_about_a_pydantic_model_names_the_fields_and_has_no_value() -> None:
    said = of(Modelled, count=SECRET, mode=SECRET, either=SECRET)
    assert "count: int_parsing, from a str; mode: literal_error, from a str; either: value_error" in said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"spec": {"priority": SECRET, "containers": []}}, "not a V1Pod: ValueError; it is Thing ns/a"),
        (
            {"metadata": {"name": "a", "creationTimestamp": SECRET}},
            "not a V1Pod: ApiException; it is Thing a",
        ),
        ({"spec": {}}, "not a V1Pod: ValueError for the field containers; it is"),
    ],
)
def test_error_about_a_generated_model_has_no_value(fields: dict[str, Any], said: str) -> None:
    assert said in of(V1Pod, **fields)


def test_error_about_an_object_without_a_key_has_no_value() -> None:
    nameless = {"data": {"password": SECRET}}
    assert str(KeyFuncError(nameless, ValueError("why"))) == "no key for dict {'data': …}: why"
    assert key_and_version(nameless) == ("{'data': …}", "no version")
    for obj, said in (
        ({"metadata": 1, "data": 2}, "{'metadata': …, 'data': …}"),
        (One(), "<One>"),
        (KubeObject.from_dict({"metadata": {"name": "a", "resourceVersion": "5"}}), "<KubeObject a at 5>"),
        ("key/of/many", "'key/of/many'"),
        (None, "None"),
    ):
        assert outline(obj) == said


def _return(value: Any, obj: Any) -> Any:
    return value


def test_error_about_an_index_function_has_no_value() -> None:
    rejected: list[Any] = []
    for returned in (SECRET, [7, SECRET]):
        Index("by-word", partial(_return, returned)).put("ns/a", {}, rejected)
    assert [str(error.cause) for error in rejected] == [
        "it returned a str; it must return a list of strings",
        "it returned a list of int, str; it must return a list of strings",
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"spec":{"type":"hunter2","pin":771177,"kind":"hunter2"}}',
        b'{"type":"ADDED","object":{"kind":"Secret","data":{"a":"hunter2","b":-771177.5e3}}}',
        b'{"resourceVersion":"hunter2","apiVersion":"Hunter2"}',
        b"[771177]",
    ],
)
def test_beginning_of_bytes_is_shown_without_strings_and_numbers(raw: bytes) -> None:
    assert SECRET not in begins(raw).casefold()
    assert "771177" not in begins(raw)
