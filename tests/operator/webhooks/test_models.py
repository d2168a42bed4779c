"""Webhooks of kinds whose specs are pydantic models: admission, conversion, and partial objects."""

from __future__ import annotations

import pytest
from pydantic import Field

from aioinformer.operator import AdmissionReview, CustomResource, Operator, WebhookApp
from aioinformer.typed import Metadata

from ...typed.models import CamelModel, Http, Probe, Tcp
from .kinds import Object, post


class OldSpec(CamelModel):
    domain: str
    size: int = Field(ge=1)
    probe: Probe | None = None
    names: set[str] = set()


class NewSpec(CamelModel):
    host_name: str
    size: int = Field(ge=1)
    probe: Probe | None = None
    names: set[str] = set()
    level: int = 5


class Old(CustomResource, group="models.example.com", version="v1", kind="Page"):
    spec: OldSpec


class New(Old, version="v2"):
    spec: NewSpec  # type: ignore[assignment]


def newer(old: Old) -> New:
    spec = old.spec
    made = NewSpec.model_construct(host_name=spec.domain, size=spec.size, probe=spec.probe, names=spec.names)
    return New(made, metadata=old.metadata)


def older(new: New) -> Old:
    spec = new.spec
    made = OldSpec.model_construct(domain=spec.host_name, size=spec.size, probe=spec.probe, names=spec.names)
    return Old(made, metadata=new.metadata)


@pytest.fixture
def operator() -> Operator:
    operator = Operator("pages")
    operator.convert(Old, New)(newer)
    operator.convert(New, Old)(older)
    return operator


async def convert(app: WebhookApp, spec: Object, version: str = "v1") -> Object:
    """Return the spec in version 2."""
    obj = {
        "apiVersion": f"models.example.com/{version}",
        "kind": "Page",
        "metadata": {"name": "a", "uid": "u"},
        "spec": spec,
    }
    request = {"uid": "u", "desiredAPIVersion": "models.example.com/v2", "objects": [obj]}
    answer = await post(
        app,
        "/convert/pages.models.example.com",
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request},
    )
    response = answer.json()["response"]
    assert response["result"]["status"] == "Success", response
    converted: Object = response["convertedObjects"][0]
    assert converted["apiVersion"] == "models.example.com/v2"
    return converted["spec"]  # type: ignore[no-any-return]


async def test_objects_are_converted(operator: Operator) -> None:
    probe = {"kind": "tcp", "port": 1}
    spec = await convert(
        operator.webhook_app(), {"domain": "a", "size": 2, "probe": probe, "names": ["b", "a"]}
    )
    assert spec == {
        "hostName": "a",
        "size": 2,
        "probe": {"kind": "tcp", "port": 1, "tries": 3},
        "names": ["a", "b"],
        "level": 5,
    }


PARTIAL: list[tuple[Object, Object]] = [
    ({"domain": "a"}, {"hostName": "a", "level": 5}),
    ({"size": 3}, {"size": 3, "level": 5}),
    ({"size": 0, "domain": "a"}, {"size": 0, "hostName": "a", "names": [], "level": 5}),
]


@pytest.mark.parametrize(("old", "new"), PARTIAL, ids=str)
async def test_partial_objects_get_no_invented_fields(operator: Operator, old: Object, new: Object) -> None:
    """The server converts a part of an object in a server-side apply."""
    assert await convert(operator.webhook_app(), old) == new


async def test_a_part_of_a_union_stays_as_it_is(operator: Operator) -> None:
    old = {"domain": "a", "size": 1, "probe": {"kind": "tcp"}}
    assert await convert(operator.webhook_app(), old) == old


async def test_webhooks_change_and_refuse_models() -> None:
    operator = Operator("pages")

    @operator.mutate(New)
    def fill(review: AdmissionReview[New]) -> None:
        review.object.spec.names.add(review.object.spec.host_name)
        review.object.spec.probe = Http(url="u")

    @operator.validate(New)
    def check(review: AdmissionReview[New]) -> None:
        if isinstance(review.object.spec.probe, Tcp):
            review.deny("no TCP", field="spec.probe")

    page = New(NewSpec(host_name="a", size=1), metadata=Metadata(name="a", namespace="b"))
    reviewed = await operator.review(page)
    assert reviewed.allowed
    assert reviewed.object.spec == NewSpec(host_name="a", size=1, names={"a"}, probe=Http(url="u"))
