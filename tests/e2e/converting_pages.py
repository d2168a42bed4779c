"""An operator whose cache needs its own conversion, once an object of the older version is stored."""

from __future__ import annotations

from aioinformer.operator import CustomResource, Operator, Request
from aioinformer.typed import CamelStruct


class OldSpec(CamelStruct, kw_only=True):
    domain: str


class NewSpec(CamelStruct, kw_only=True):
    host: str


class Old(CustomResource, group="ready.example.com", version="v1alpha1", kind="Page"):
    spec: OldSpec


class New(Old, version="v1"):
    spec: NewSpec  # type: ignore[assignment]


operator = Operator("pages", events=False)


@operator.controller(New)
async def reconcile(request: Request[New]) -> None:
    if request.object is not None:
        print("reconciled", request.object.spec.host, flush=True)  # noqa: T201 - the test reads it


@operator.convert(Old, New)
def newer(old: Old) -> New:
    return New(spec=NewSpec(host=old.spec.domain), metadata=old.metadata)


@operator.convert(New, Old)
def older(new: New) -> Old:
    return Old(spec=OldSpec(domain=new.spec.host), metadata=new.metadata)
