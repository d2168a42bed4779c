"""Conversion of objects that their class cannot hold: partial ones, and values that no Python object has."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest

from aioinformer.operator import CustomResource, Operator, WebhookApp
from aioinformer.typed import CamelStruct

from .kinds import Object, post


class Colour(Enum):
    RED = "red"


class Part(CamelStruct, kw_only=True):
    key: str
    at: datetime | None = None


class OldSpec(CamelStruct, kw_only=True):
    domain: str
    at: datetime
    on: bool
    count: Annotated[int, msgspec.Meta(ge=1)]
    ratio: float
    colour: Colour
    size: Literal["small", "large"]
    day: date
    id: UUID
    hosts: list[str]
    labels: dict[str, str]
    part: Part
    note: str | None = None
    parts: list[Part] = msgspec.field(default_factory=list)
    more: Any = None


class NewSpec(CamelStruct, kw_only=True):
    host: str
    shout: str
    at: datetime
    on: bool
    count: int
    ratio: float
    colour: Colour
    size: Literal["small", "large"]
    day: date
    id: UUID
    hosts: list[str]
    labels: dict[str, str]
    part: Part
    note: str | None = None
    parts: list[Part] = msgspec.field(default_factory=list)
    more: Any = None
    level: int = 5


class Old(CustomResource, group="unfit.example.com", version="v1", kind="Page"):
    spec: OldSpec


class New(Old, version="v2"):
    spec: NewSpec  # type: ignore[assignment]


def newer(old: Old) -> New:
    spec = old.spec
    if spec.note == "compute":
        spec.at += timedelta(days=1)
    if spec.note == "first":
        spec.domain = spec.hosts[0]
    return New(
        spec=NewSpec(
            host=spec.domain,
            shout=spec.domain.upper(),
            **{name: getattr(spec, name) for name in OldSpec.__struct_fields__ if name != "domain"},
        ),
        metadata=old.metadata,
    )


def older(new: New) -> Old:
    names = [name for name in OldSpec.__struct_fields__ if name != "domain"]
    return Old(
        spec=OldSpec(domain=new.spec.host, **{name: getattr(new.spec, name) for name in names}),
        metadata=new.metadata,
    )


WHOLE: Object = {
    "domain": "a.example",
    "at": "2026-01-01T00:00:00Z",
    "on": True,
    "count": 2,
    "ratio": 0.5,
    "colour": "red",
    "size": "small",
    "day": "2026-01-01",
    "id": "705ab4f5-6393-11e8-b7cc-42010a800002",
    "hosts": ["a"],
    "labels": {"a": "b"},
    "part": {"key": "k"},
}
CONVERTED = {
    **{name: value for name, value in WHOLE.items() if name != "domain"},
    "host": "a.example",
    "shout": "A.EXAMPLE",
}
DEFAULTS = {"parts": [], "level": 5}


HEAD: Object = {"kind": "Page", "metadata": {"name": "a", "uid": "1"}}


def make_converting() -> WebhookApp:
    operator = Operator("pages")
    operator.convert(Old, New)(newer)
    operator.convert(New, Old)(older)
    return operator.webhook_app()


def conversion(to: str, *objects: Object) -> Object:
    request = {"uid": "u-2", "desiredAPIVersion": f"unfit.example.com/{to}", "objects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def convert(*specs: Any, to: str = "v2", kept: int = 0) -> list[Any]:
    """Return what a conversion makes of the specs of objects; ``...`` stands for no spec.

    Args:
        *specs: The specs.
        to: The version.
        kept: How many objects stay as they are.
    """
    app = make_converting()
    head = {"apiVersion": f"unfit.example.com/{'v1' if to == 'v2' else 'v2'}", **HEAD}
    answer = await post(
        app,
        app.paths[0],
        conversion(to, *(head if spec is ... else {**head, "spec": spec} for spec in specs)),
    )
    assert answer.status_code == 200, answer.text
    made = answer.json()["response"]["convertedObjects"]
    for obj in made:
        assert {**obj, "spec": 0} == {**HEAD, "apiVersion": f"unfit.example.com/{to}", "spec": 0}
    (counts,) = [count for count in app.counts if count.operation == "CONVERT"]
    assert counts.state.unconverted == kept
    return [obj.get("spec", ...) for obj in made]


async def test_a_whole_object_is_converted_as_ever() -> None:
    assert await convert(WHOLE) == [CONVERTED | DEFAULTS]


async def test_what_is_missing_is_left_out() -> None:
    for name in WHOLE:
        (spec,) = await convert({key: value for key, value in WHOLE.items() if key != name})
        missing = {"host", "shout"} if name == "domain" else {name}
        assert spec == {key: value for key, value in CONVERTED.items() if key not in missing} | {
            "level": 5
        }, name


async def test_partial_objects_without_a_spec_or_with_little_of_it() -> None:
    specs = await convert(..., {}, {"domain": "x"}, {"part": {"at": "2026-01-01T00:00:00Z"}})
    assert specs[:2] == [..., ...]
    assert specs[2] == {"host": "x", "shout": "X", "level": 5}
    assert specs[3] == {"part": {"at": "2026-01-01T00:00:00Z"}, "level": 5}
    assert await convert(..., {"host": "x"}, to="v1") == [..., {"domain": "x"}]


async def test_zero_values_that_are_there_stay() -> None:
    assert await convert({"on": False, "ratio": 0.0, "hosts": [], "labels": {}}) == [
        {"on": False, "ratio": 0.0, "hosts": [], "labels": {}, "parts": [], "level": 5}
    ]


async def test_a_time_that_python_cannot_hold_is_moved() -> None:
    parts = [{"key": "a", "at": "0000-02-03T04:05:06Z"}, {"key": "b"}]
    (spec,) = await convert({**WHOLE, "at": "0000-01-01T00:00:00Z", "parts": parts})
    assert spec == CONVERTED | {"at": "0000-01-01T00:00:00Z", "parts": parts, "level": 5}


@pytest.mark.parametrize(
    "changed",
    [
        {"note": "compute", "at": "0000-01-01T00:00:00Z"},
        {"hosts": "a text"},
        {"count": "many"},
        {"part": []},
        {"day": "0000-01-01"},
    ],
    ids=["a time that is read", "a list", "a number", "an object", "a day"],
)
async def test_an_object_that_no_function_can_convert_keeps_its_fields(
    changed: Object, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {**WHOLE, **changed}
    assert await convert(WHOLE, spec, WHOLE, kept=1) == [
        CONVERTED | DEFAULTS,
        spec,
        CONVERTED | DEFAULTS,
    ]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "keeps the fields of a as they are" in record.getMessage()
    assert "0000" not in record.getMessage().replace("the year 0000", "")


async def test_a_function_that_needs_what_is_missing_leaves_the_object_as_it_is() -> None:
    assert await convert({"note": "first"}, kept=1) == [{"note": "first"}]


@pytest.mark.parametrize("levels", [1_100, 9_995])
@pytest.mark.parametrize("extra", [{}, {"at": "0000-01-01T00:00:00Z"}], ids=["fits", "has the year 0"])
async def test_nested_objects_are_converted(levels: int, extra: Object) -> None:
    app = make_converting()
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    obj = {**HEAD, "apiVersion": "unfit.example.com/v1", "spec": {**WHOLE, **extra, "more": "?"}}
    body = json.dumps(conversion("v2", obj)).encode().replace(b'"?"', deep)
    answer = await post(app, app.paths[0], body)
    (made,) = json.loads(answer.content.replace(deep, b'"?"'))["response"]["convertedObjects"]
    made["spec"].pop("parts", None)
    assert made["spec"] == CONVERTED | extra | {"more": "?", "level": 5}


async def test_an_object_that_is_nested_too_deeply_for_the_answer_does_not_fail_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = make_converting()
    head = {**HEAD, "apiVersion": "unfit.example.com/v1"}
    deep = b'{"a":' * 9_998 + b"1" + b"}" * 9_998  # an object of 10,000 levels
    review = conversion("v2", {**head, "spec": {**WHOLE, "more": "?"}}, {**head, "spec": WHOLE})
    answer = await post(app, app.paths[0], json.dumps(review).encode().replace(b'"?"', deep))
    made = answer.json()["response"]["convertedObjects"]
    assert [obj.get("spec") for obj in made] == [None, CONVERTED | DEFAULTS]
    assert "it is nested more than 9997 levels deep" in caplog.text


async def test_managed_fields_that_are_nested_too_deeply_for_the_answer_are_left_to_the_server() -> None:
    app = make_converting()
    metadata = {**HEAD["metadata"], "labels": {"a": "b"}, "managedFields": "?"}
    obj = {**HEAD, "apiVersion": "unfit.example.com/v1", "metadata": metadata, "spec": WHOLE}
    body = json.dumps(conversion("v2", obj)).encode().replace(b'"?"', b"[" * 9_998 + b"]" * 9_998)
    (made,) = (await post(app, app.paths[0], body)).json()["response"]["convertedObjects"]
    assert made["metadata"] == {**HEAD["metadata"], "labels": {"a": "b"}}
    assert made["spec"] == CONVERTED | DEFAULTS
