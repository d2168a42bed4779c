"""The second release: the field ``plan`` is added, and may be missing."""

from __future__ import annotations

from aioinformer.typed import CamelStruct, CustomResource

from .declaring import Host, Status, declare


class Spec(CamelStruct, kw_only=True):
    host: Host
    html: str
    plan: str | None = None


class Website(CustomResource, group="example.com", version="v1"):
    """A website."""

    spec: Spec
    status: Status | None = None


operator = declare(
    Website, lambda site: (site.spec.host, {"index.html": site.spec.html, "plan": site.spec.plan or "free"})
)
