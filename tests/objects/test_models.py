"""pydantic models inside of Structs: reading, writing, and merging with the server's object."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, field_serializer

from aioinformer import field, set_status_condition
from aioinformer.errors import AmbiguousEditError, ConfigError, DecodeError
from aioinformer.objects.decoders import decoder_of
from aioinformer.objects.encoding import fields_of
from aioinformer.resources.merging import with_unknown_fields
from aioinformer.typed import CamelStruct, CustomResource

from ..typed.models import Http, Port, Site, SiteSpec, SiteStatus, Tcp

HEAD = {
    "apiVersion": "models.example.com/v1",
    "kind": "Site",
    "metadata": {"name": "a", "resourceVersion": "1"},
}


class NullSpec(BaseModel):
    host: str | None
    colour: str | None = "red"
    marks: dict[str, str | None] = {}
    nothing: str | None = None


class NullThing(CustomResource, group="example.com", version="v1"):
    spec: NullSpec


class FailingSpec(BaseModel):
    @classmethod
    def model_validate(cls, *_: Any, **__: Any) -> Any:
        raise KeyError("secret")


class FailingThing(CustomResource, group="example.com", version="v1"):
    spec: FailingSpec


class Names(RootModel[set[str]]): ...


class RootSpec(BaseModel):
    names: Names
    level: int

    @field_serializer("level")
    def text(self, level: int) -> int:
        return level * 2


class RootThing(CustomResource, group="example.com", version="v1"):
    spec: RootSpec


class Inner(CamelStruct):
    port_number: int


class Middle(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: Annotated[list[Inner], Field(max_length=2)]


class MixedThing(CustomResource, group="example.com", version="v1"):
    spec: Middle


def body(**spec: Any) -> bytes:
    return msgspec.json.encode({**HEAD, "spec": {"host": "a.example", **spec}})


def read(raw: bytes) -> Site:
    site = decoder_of(Site)(raw, None)
    assert isinstance(site, Site)
    return site


def test_a_strict_model_reads_json() -> None:
    site = read(
        body(
            ports=[{"number": 1, "hostName": "h"}],
            tags=[2, 1],
            size="large",
            since="2020-01-01T00:00:00Z",
            wait="PT1H",
            probe={"kind": "tcp", "port": 5},
            home="https://a.example/",
        )
    )
    assert site.spec.ports == [Port(number=1, host_name="h")]
    assert site.spec.tags == {1, 2}
    assert site.spec.since == datetime(2020, 1, 1, tzinfo=UTC)
    assert isinstance(site.spec.probe, Tcp)
    assert site.spec.home == AnyUrl("https://a.example/")


def test_what_is_read_is_written_again() -> None:
    raw = body(
        tags=[3, 1, 2], probe={"kind": "http", "url": "u"}, open={"level": 2, "more": {"a": None}}, mode=None
    )
    spec = fields_of(read(raw))["spec"]
    assert spec["tags"] == [1, 2, 3]
    assert spec["probe"] == {"kind": "http", "url": "u", "tries": 3}
    assert spec["open"] == {"level": 2, "more": {"a": None}}
    assert spec["price"] == "1.50"
    assert "mode" not in spec  # None is its default
    assert "title" not in spec  # computed
    assert fields_of(read(msgspec.json.encode(fields_of(read(raw)))))["spec"] == spec


def test_none_is_null_if_it_is_not_the_default() -> None:
    thing = NullThing(NullSpec(host=None, colour=None, marks={"k": None}))
    assert fields_of(thing)["spec"] == {"host": None, "colour": None, "marks": {"k": None}}


def test_unknown_fields_are_dropped_on_reading_and_kept_on_writing() -> None:
    """A newer release wrote them; the model forbids them."""
    raw = body(
        future=1, ports=[{"number": 1, "next": 1}, {"number": 2, "next": 2}], open={"level": 1, "x": 1}
    )
    site = read(raw)
    site.spec.ports.reverse()
    site.spec.ports[0].host_name = "h"
    site.spec.open.level = 5
    spec = with_unknown_fields(raw, site)["spec"]
    assert spec["future"] == 1
    assert spec["ports"] == [{"number": 2, "next": 2, "hostName": "h"}, {"number": 1, "next": 1}]
    assert spec["open"] == {"level": 5, "x": 1}


def test_other_fields_of_an_open_model_can_be_edited() -> None:
    raw = body(open={"level": 1, "x": 1, "y": 2})
    site = read(raw)
    others = site.spec.open.model_extra or {}
    assert others == {"x": 1, "y": 2}
    others["x"] = 3
    del others["y"]
    assert with_unknown_fields(raw, site)["spec"]["open"] == {"level": 1, "x": 3}


def test_a_changed_item_without_a_key_is_refused() -> None:
    raw = body(probes=[{"kind": "tcp", "port": 1, "later": 1}])
    site = read(raw)
    site.spec.probes = [Tcp(port=2)]
    with pytest.raises(AmbiguousEditError, match=r"spec\.probes.*Tcp lacks a field of item 0.*later"):
        with_unknown_fields(raw, site)


def test_another_class_of_a_union_does_not_take_over_unknown_fields() -> None:
    raw = body(probe={"kind": "tcp", "port": 1, "later": 1})
    site = read(raw)
    site.spec.probe = Http(url="u")
    with pytest.raises(AmbiguousEditError, match="it was a Tcp and is a Http now"):
        with_unknown_fields(raw, site)


UNFIT: list[tuple[dict[str, Any], str, str]] = [
    ({"host": "secret.example"}, "spec.host", "value_error, from a str"),
    ({"ports": [{"number": 1}, {"protocol": "TCP"}]}, "spec.ports[1].number", "is required"),
    ({"probe": {"kind": "http"}}, "spec.probe.url", "is required"),
    ({"probe": {"kind": "other"}}, "spec.probe", "union_tag_invalid, from a dict"),
    ({"replicas": 12}, "spec.replicas", "less_than_equal, from a int"),
    ({"env": []}, "spec.env", "dict_type, from a list"),
]


@pytest.mark.parametrize(("spec", "path", "problem"), UNFIT, ids=[path for _, path, _ in UNFIT])
def test_errors_name_the_field_and_not_the_value(spec: dict[str, Any], path: str, problem: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read(body(**spec))
    assert (raised.value.field, raised.value.problem) == (path, problem)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_spec_that_is_no_object_does_not_fit() -> None:
    with pytest.raises(DecodeError) as raised:
        read(msgspec.json.encode({**HEAD, "spec": []}))
    assert raised.value.field == "spec"


def test_a_failing_validator_is_a_mismatch() -> None:
    with pytest.raises(DecodeError) as raised:
        decoder_of(FailingThing)(msgspec.json.encode({**HEAD, "spec": {}}), None)
    assert "secret" not in str(raised.value)


def test_root_models_and_serializers_are_written_as_they_say() -> None:
    thing = RootThing(RootSpec(names=Names({"b", "a"}), level=2))
    assert fields_of(thing)["spec"] == {"names": ["a", "b"], "level": 4}


def test_values_that_are_nested_deeply_are_read() -> None:
    deep: Any = 1
    for _ in range(2_000):
        deep = [deep]
    raw = b'{"metadata":{"name":"a"},"spec":{"host":"a.example","settings":{"deep":%s}}}' % (
        b"[" * 2_000 + b"1" + b"]" * 2_000
    )
    site = read(raw)
    with pytest.raises(RecursionError, match="SiteSpec is nested too deeply"):
        fields_of(site)


def test_conditions_stand_in_the_status_of_a_model() -> None:
    site = Site(SiteSpec(host="a.example"), SiteStatus())
    ready, changed = set_status_condition(site, "Ready", "True", "Deployed")
    assert changed
    assert ready.status is not None
    assert ready.status.conditions[0].reason == "Deployed"
    again, changed = set_status_condition(ready, "Ready", "True", "Deployed")
    assert not changed
    assert fields_of(again)["status"]["conditions"][0]["type"] == "Ready"
    assert copy.deepcopy(ready) == ready


def test_fields_of_models_are_read_by_path() -> None:
    site = read(body(ports=[{"number": 1, "hostName": "h"}]))
    assert field("spec.ports[*].hostName")(site) == ["h"]
    field("spec.ports[*].hostName").require_known(Site)
    field("spec.open.anything").require_known(Site)
    with pytest.raises(ConfigError, match=r"Port has no nothing"):
        field("spec.ports[*].nothing").require_known(Site)


def test_a_struct_inside_of_a_model_inside_of_a_struct_is_read() -> None:
    raw = msgspec.json.encode({**HEAD, "spec": {"inner": [{"portNumber": 1, "x": 1}]}})
    thing = decoder_of(MixedThing)(raw, None)
    assert thing.spec.inner == [Inner(1)]
    assert with_unknown_fields(raw, thing)["spec"] == {"inner": [{"portNumber": 1, "x": 1}]}
    with pytest.raises(DecodeError, match=r"spec\.inner\[0\]"):
        decoder_of(MixedThing)(msgspec.json.encode({**HEAD, "spec": {"inner": [{"portNumber": "x"}]}}), None)
