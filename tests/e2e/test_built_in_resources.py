"""The table of built-in resources is the real server's."""

from __future__ import annotations

import pytest

from aioinformer import Client
from aioinformer.objects.api_resources import APIResource, built_in, built_in_resources

from .clusters import KubernetesCluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]


async def test_the_table_of_built_in_resources_is_the_servers(real: KubernetesCluster) -> None:
    groups = (await real.api.do("GET", "/apis"))["groups"]
    preferred = [each["preferredVersion"]["groupVersion"] for each in groups]
    known = {(each.group, each.plural): (each, short) for each, short in built_in_resources().items()}
    served = set()
    for version in ["v1", *(each for each in preferred if "." not in each or ".k8s.io/" in each)]:
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for each in (await real.api.do("GET", path))["resources"]:
            if "/" in each["name"]:
                continue
            resource, short = known[version.rpartition("/")[0], each["name"]]
            assert resource == APIResource(version, each["name"], each["kind"], each["namespaced"])
            assert list(short) == each.get("shortNames", [])
            served.add(resource)
    assert {each for each in known.values() if each[0].version == "v1"} == {
        known[each.group, each.plural] for each in served if each.version == "v1"
    }


@pytest.mark.parametrize(
    "name", ["pods", "ep", "Ingress", "hpa", "crd", "leases", "roles.rbac", "events.events"]
)
async def test_built_in_names_mean_what_discovery_says(real: KubernetesCluster, name: str) -> None:
    async with real.client() as client:
        assert isinstance(client, Client)
        assert await client.discovery.find(name) == built_in(name)
