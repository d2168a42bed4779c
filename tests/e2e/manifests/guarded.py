"""An operator with webhooks of all kinds."""

from __future__ import annotations

import msgspec

from aioinformer.operator import AdmissionReview, CustomResource, Denied, Operator, Request


class SiteSpec(msgspec.Struct):
    host: str
    replicas: int = 0


class Site(CustomResource, group="guarded.example.com", version="v1", storage=True):
    spec: SiteSpec


class SiteV2Spec(msgspec.Struct):
    hosts: list[str]


class SiteV2(Site, version="v2", kind="Site", plural="sites"):
    spec: SiteV2Spec  # type: ignore[assignment]


operator = Operator("guarded")


@operator.controller(Site)
async def reconcile(request: Request[Site]) -> None: ...


@operator.validate(Site)
async def check(review: AdmissionReview[Site]) -> None:
    if review.object.spec.host == "taken":
        raise Denied("is taken", field="spec.host")


@operator.mutate(Site)
def fill(review: AdmissionReview[Site]) -> None:
    review.object.spec.replicas = review.object.spec.replicas or 3


@operator.convert(Site, SiteV2)
def newer(old: Site) -> SiteV2:
    return SiteV2(SiteV2Spec([old.spec.host]), metadata=old.metadata)


@operator.convert(SiteV2, Site)
def older(old: SiteV2) -> Site:
    return Site(SiteSpec(old.spec.hosts[0]), metadata=old.metadata)
