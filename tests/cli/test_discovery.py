"""Which resource a name means."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioinformer import ApiError, Client, ConfigError
from aioinformer.cli.discovery import find_resource
from aioinformer.testing import APIServer, ResourceType

GROUP = "gateway.example.com"


@pytest.fixture
async def client(server: APIServer) -> AsyncIterator[Client]:
    async with Client.from_url(server.url) as opened:
        yield opened


@pytest.fixture
def gateways(server: APIServer) -> None:
    """A group whose preferred version has not all that its other one has."""
    for version, plural, kind in (
        ("v1", "gateways", "Gateway"),
        ("v1alpha2", "gateways", "Gateway"),
        ("v1alpha2", "tcproutes", "TCPRoute"),
    ):
        server.register(ResourceType(GROUP, version, plural, kind))


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gateways", "v1 gateways"),
        (f"gateways.{GROUP}", "v1 gateways"),
        (f"gateways.v1alpha2.{GROUP}", "v1alpha2 gateways"),
        ("tcproutes", "v1alpha2 tcproutes"),
        ("TCPRoute", "v1alpha2 tcproutes"),
        (f"tcproutes.{GROUP}", "v1alpha2 tcproutes"),
        (f"tcproutes.v1alpha2.{GROUP}", "v1alpha2 tcproutes"),
    ],
)
async def test_a_group_s_preferred_version_counts_first_its_others_then(
    client: Client, name: str, found: str
) -> None:
    resource = await find_resource(client, name)
    assert f"{resource.api_version} {resource.plural}" == f"{GROUP}/{found}"


@pytest.mark.usefixtures("gateways")
async def test_a_version_that_lacks_a_resource(client: Client) -> None:
    with pytest.raises(ConfigError, match=f"has no resource 'tcproutes.v1.{GROUP}'"):
        await find_resource(client, f"tcproutes.v1.{GROUP}")


@pytest.mark.parametrize("status", [403, 429, 500, 503])
@pytest.mark.parametrize("name", ["pods", "pods.v1", "events"])
async def test_a_core_that_does_not_answer_is_said(
    server: APIServer, client: Client, status: int, name: str
) -> None:
    server.faults.fail(status, message="etcd is away", matching=lambda request: request.path == "/api/v1")
    with pytest.raises(ApiError, match=rf"/api/v1: {status} \w+: etcd is away"):
        await find_resource(client, name)


@pytest.mark.usefixtures("gateways")
async def test_a_group_that_does_not_answer_hides_no_other(server: APIServer, client: Client) -> None:
    server.faults.fail(503, times=None, matching=lambda request: request.path == f"/apis/{GROUP}/v1")
    assert (await find_resource(client, "deploy")).plural == "deployments"
    assert (await find_resource(client, "tcproutes")).plural == "tcproutes"
    with pytest.raises(
        ConfigError, match=rf"'podz'\. Did you mean 'pods'\? .*failed: get /apis/{GROUP}/v1: 503"
    ):
        await find_resource(client, "podz")
    with pytest.raises(ApiError, match=f"get /apis/{GROUP}/v1: 503"):
        await find_resource(client, f"gateways.{GROUP}")
