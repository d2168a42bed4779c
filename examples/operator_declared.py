"""An operator as declarations: a ConfigMap for each Website, with the colour that a Secret sets for all.

    python examples/operator_declared.py
    aioinformer run examples.operator_declared:operator --dev

The first runs on an API server inside this process. It prints the rights that follow from the declarations, and the
objects that fail.
"""

from __future__ import annotations

import asyncio

import msgspec

from aioinformer import Client, KubeObject
from aioinformer.operator import (
    Context,
    CustomResource,
    FailingKey,
    FieldsChanged,
    Operator,
    Owned,
    Request,
    Right,
    TerminalError,
    Uses,
    Watched,
)
from aioinformer.operator.definitions import install
from aioinformer.testing import APIServer, eventually

STYLE = "style"


class WebsiteSpec(msgspec.Struct):
    html: str


class Website(CustomResource, group="example.com", version="v1", short_names=("web",)):
    """A page that is served."""

    spec: WebsiteSpec


operator = Operator("websites", uses=[Uses("namespaces", verbs=("get",))])


async def all_websites(secret: KubeObject, context: Context) -> list[Request[Website]]:
    """Return the websites that the style is for."""
    if secret.name != STYLE:
        return []
    return [Request.of(website.key) for website in await context.resource(Website).list(secret.namespace)]


@operator.controller(
    Website,
    owns=[Owned("configmaps", FieldsChanged("data"), verbs=("create", "patch"))],
    watches=[Watched("secrets", all_websites)],
    concurrency=4,
)
async def reconcile(request: Request[Website], context: Context) -> None:
    """Publish a website."""
    site = request.object
    if site is None:
        return  # the ConfigMap goes with its owner
    if not site.spec.html:
        raise TerminalError("the page is empty")
    styles = [
        secret for secret in await context.resource("secrets").list(site.namespace) if secret.name == STYLE
    ]
    colour = styles[0]["data"]["colour"] if styles else "none"
    namespace = await context.uncached("namespaces").get(site.namespace)
    data = {"index.html": site.spec.html, "colour": colour, "namespace": namespace.uid}
    await context.apply_owned(site, "configmaps", {"data": data})
    context.events.event(site, "Normal", "Published", f"its colour is {colour}")


async def main() -> None:
    """Run on an API server inside this process, and make changes as its user."""
    rights: list[Right] = operator.rights()
    for right in rights:
        print(right)

    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, operator)
        for name, html in (("home", "<h1>hi</h1>"), ("empty", "")):
            server.create("example.com/v1", "websites", {"metadata": {"name": name}, "spec": {"html": html}})
        async with operator.running(client) as manager:
            await eventually(lambda: server.get("v1", "configmaps", "home")["data"]["colour"] == "none")
            server.create("v1", "secrets", {"metadata": {"name": STYLE}, "data": {"colour": "Ymx1ZQ=="}})
            await eventually(lambda: server.get("v1", "configmaps", "home")["data"]["colour"] == "Ymx1ZQ==")
            failing: list[FailingKey] = [*manager.controllers[0].failing()]
            print(f"{failing[0].key} fails: {failing[0].error}")


if __name__ == "__main__":
    asyncio.run(main())
