"""The fourth release: in the version v2 the field ``plan`` is called ``tier``."""

from __future__ import annotations

from aioinformer.typed import CamelStruct, CustomResource

from . import third
from .declaring import Host, Status, declare


class Website(third.Website, version="v1", storage=True):
    """A website."""


class Spec(CamelStruct, kw_only=True):
    host: Host
    html: str
    tier: str


class WebsiteV2(CustomResource, group="example.com", version="v2", kind="Website", plural="websites"):
    """A website."""

    spec: Spec
    status: Status | None = None


operator = declare(
    WebsiteV2,
    lambda site: (site.spec.host, {"index.html": site.spec.html, "plan": site.spec.tier}),
    reviewed=Website,  # pods of the third release know no other, and its cache needs no conversion
)


@operator.convert(Website, WebsiteV2)
def newer(old: Website) -> WebsiteV2:
    spec = Spec(host=old.spec.host, html=old.spec.html, tier=old.spec.plan)
    return WebsiteV2(spec, metadata=old.metadata, status=old.status)


@operator.convert(WebsiteV2, Website)
def older(new: WebsiteV2) -> Website:
    spec = third.Spec(host=new.spec.host, html=new.spec.html, plan=new.spec.tier)
    return Website(spec, metadata=new.metadata, status=new.status)
