# part: tests
"""The operator of examples/website on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioinformer import Client, Resource
from aioinformer.testing import APIServer, assert_rbac_covers, eventually
from aioinformer.typed import Metadata, crd
from examples.website.operator import Website, WebsiteSpec, operator

from .dns import DNS


def site(name: str, host: str) -> Website:
    metadata = Metadata(name=name, namespace="default")
    return Website(WebsiteSpec(host=host, image="nginx:1", html="hi"), metadata=metadata)


@pytest.fixture
async def dns(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DNS]:
    async with DNS() as running:
        monkeypatch.setenv("DNS_URL", running.url)
        yield running


async def test_a_website_is_published_corrected_and_removed(dns: DNS) -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.users["robot"] = "operator"
        await Resource(client, "crds").create(crd(Website))
        sites, maps = Resource(client, Website), Resource(client, "configmaps")
        async with Client.from_url(server.url, token="robot") as own, operator.running(own):
            await sites.create(site("a", "a.example.com"))
            await eventually(lambda: "a.example.com" in dns.records)
            await maps.patch("default/a", {"data": {"index.html": "defaced"}})

            async def is_corrected() -> bool:
                return bool((await maps.get("default/a"))["data"] == {"index.html": "hi"})

            await eventually(is_corrected)
            dns.failures = 2
            await sites.delete("default/a")
            await eventually(lambda: not server.snapshot("example.com/v1", "websites"))
        assert dns.records == set()
        reasons = {event["reason"] for event in server.list("events.k8s.io/v1", "events")}
        assert reasons == {"Created", "DNSFailed"}
        assert_rbac_covers(server, operator.rights(leader_election=False), user="operator")


# part: end
