"""Release 2.0: a field gets another name in version v2; v1 is still stored."""

from __future__ import annotations

from aioinformer.operator import Context, CustomResource, Operator, Request
from aioinformer.typed import CamelStruct


class SiteStatus(CamelStruct, kw_only=True):
    serves: str = ""


class SpecV1(CamelStruct, kw_only=True):
    domain: str
    replicas: int = 1


class SiteV1(CustomResource, group="changing.example.com", version="v1", kind="Site", storage=True):
    spec: SpecV1
    status: SiteStatus | None = None


class SiteSpec(CamelStruct, kw_only=True):
    host: str
    replicas: int = 1


class Site(CustomResource, group="changing.example.com", version="v2"):
    spec: SiteSpec
    status: SiteStatus | None = None


operator = Operator("sites", events=False)


@operator.controller(Site)
async def reconcile(request: Request[Site], context: Context) -> None:
    site = request.object
    if site is None:
        return
    serves = f"{site.spec.host} x{site.spec.replicas}"
    if site.status is None or site.status.serves != serves:
        await context.resource(Site).patch_status(site, {"status": {"serves": serves}})
    if "checked" not in site.metadata.labels:
        site.metadata.labels["checked"] = "yes"
        await context.resource(Site).update(site)


@operator.convert(SiteV1, Site)
def to_v2(old: SiteV1) -> Site:
    spec = SiteSpec(host=old.spec.domain, replicas=old.spec.replicas)
    return Site(spec=spec, status=old.status, metadata=old.metadata)


@operator.convert(Site, SiteV1)
def to_v1(new: Site) -> SiteV1:
    spec = SpecV1(domain=new.spec.host, replicas=new.spec.replicas)
    return SiteV1(spec=spec, status=new.status, metadata=new.metadata)
