"""Release 1.0: before any change."""

from __future__ import annotations

from aioinformer.operator import Context, CustomResource, Operator, Request
from aioinformer.typed import CamelStruct


class SiteStatus(CamelStruct, kw_only=True):
    serves: str = ""


class SiteSpec(CamelStruct, kw_only=True):
    domain: str


class Site(CustomResource, group="changing.example.com", version="v1"):
    spec: SiteSpec
    status: SiteStatus | None = None


operator = Operator("sites", events=False)


@operator.controller(Site)
async def reconcile(request: Request[Site], context: Context) -> None:
    site = request.object
    if site is None:
        return
    serves = f"{site.spec.domain} x1"
    if site.status is None or site.status.serves != serves:
        await context.resource(Site).patch_status(site, {"status": {"serves": serves}})
    if "checked" not in site.metadata.labels:
        site.metadata.labels["checked"] = "yes"
        await context.resource(Site).update(site)
