"""The table of built-in resources is the real server's."""

from __future__ import annotations

import pytest

from aioinformer import Client
from aioinformer.objects.api_resources import APIResource, built_in, built_in_resources

from .clusters import KubernetesCluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]


async def test_the_table_of_built_in_resources_is_the_servers(real: KubernetesCluster) -> None:
    groups = (await real.api.do("GET", "/apis"))["groups"]
    preferred = [group["preferredVersion"]["groupVersion"] for group in groups]
    known = {(ours.group, ours.plural): (ours, short) for ours, short in built_in_resources().items()}
    served = set()
    for version in ["v1", *(version for version in preferred if "." not in version or ".k8s.io/" in version)]:
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for listed in (await real.api.do("GET", path))["resources"]:
            if "/" in listed["name"]:
                continue
            resource, short = known[version.rpartition("/")[0], listed["name"]]
            assert resource == APIResource(version, listed["name"], listed["kind"], listed["namespaced"])
            assert list(short) == listed.get("shortNames", [])
            served.add(resource)
    assert {pair for pair in known.values() if pair[0].version == "v1"} == {
        known[resource_type.group, resource_type.plural]
        for resource_type in served
        if resource_type.version == "v1"
    }


@pytest.mark.parametrize(
    "name", ["pods", "ep", "Ingress", "hpa", "crd", "leases", "roles.rbac", "events.events"]
)
async def test_built_in_names_mean_what_discovery_says(real: KubernetesCluster, name: str) -> None:
    async with real.client() as client:
        assert isinstance(client, Client)
        assert await client.discovery.find(name) == built_in(name)
