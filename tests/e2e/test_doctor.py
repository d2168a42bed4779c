"""Broken set-ups at the real kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import trustme

from aioinformer import Client
from aioinformer.doctor import Level, examine
from aioinformer.operator import Context, CustomResource, Operator, Request, RunOptions
from aioinformer.operator.published import published_definition
from aioinformer.testing import APIServer
from aioinformer.typed import CamelStruct, Condition, IntOrString, MapOf, Quantity, SetOf, crd, diff
from tests.doctor.setups import issue, jwt, kubeconfig, proxy, require, serving
from tests.kubernetes.controlplane import ControlPlane

from .clusters import KubernetesCluster
from .test_metrics_tokens import make_account

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about the server's answers, not about sockets

FAULT, WARNING, OK, NOTE = Level.FAULT, Level.WARNING, Level.OK, Level.NOTE


class Part(CamelStruct):
    name: str
    port: IntOrString = 1


class Spec(CamelStruct):
    size: Annotated[int, msgspec.Meta(ge=1, description="How many.")]
    image: str = "nginx"
    maybe: str | None = None
    cpu: Quantity | None = None
    labels: dict[str, str] = {}
    parts: Annotated[list[Part], MapOf("name")] = []
    tags: Annotated[list[str], SetOf] = []
    anything: Any = None
    ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5


class Status(CamelStruct):
    conditions: list[Condition] = []


class Shop(CustomResource, group="doctor.example.com", version="v1"):
    """A class with all that a schema can have."""

    spec: Spec
    status: Status | None = None


class OlderSpec(CamelStruct):
    size: str = ""


class OlderShop(CustomResource, group="doctor.example.com", version="v1", kind="Shop"):
    """The same kind as an older release had it."""

    spec: OlderSpec


shops, older_shops = Operator("shops", events=False), Operator("shops", events=False)
OPTIONS = RunOptions(target="shops:operator")


@shops.controller(Shop)
async def reconcile(request: Request[Shop], context: Context) -> None:
    """Do nothing."""


@older_shops.controller(OlderShop)
async def reconcile_older(request: Request[OlderShop], context: Context) -> None:
    """Do nothing."""


def client_of(plane: ControlPlane, folder: Path, user: Mapping[str, Any]) -> Client:
    return kubeconfig(folder, plane.url, ca=plane.ca_file.read_bytes(), user=user)


async def until_published(client: Client) -> None:
    """Wait until the server publishes the definition, which it does later than it serves it."""
    deadline = asyncio.get_running_loop().time() + 30
    while await published_definition(client, crd(Shop)) is None:
        assert asyncio.get_running_loop().time() < deadline, "the definition is not published"
        await asyncio.sleep(0.1)


async def test_what_the_embedded_server_publishes_is_the_definition() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", crd(Shop))
        published = await published_definition(client, crd(Shop))
    assert published is not None
    assert diff(published["spec"], {**crd(Shop)["spec"], "conversion": {}}) == []


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
class TestReal:
    async def test_an_administrator_has_no_faults(self, control_plane: ControlPlane) -> None:
        report = await examine(Client.from_kubeconfig(path=control_plane.kubeconfig))
        assert report.exit_code == 0, report.findings
        require(report, OK, "tls", "certificate expires in")
        require(report, OK, "watches", "WatchList")
        require(report, OK, "ready", "is ready")

    async def test_a_certificate_of_another_authority(
        self, control_plane: ControlPlane, tmp_path: Path
    ) -> None:
        report = await examine(kubeconfig(tmp_path, control_plane.url, ca=trustme.CA().cert_pem.bytes()))
        require(report, FAULT, "tls", "CA that is not trusted")

    async def test_http_for_the_port_of_https(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        report = await examine(kubeconfig(tmp_path, control_plane.url.replace("https:", "http:")))
        require(report, FAULT, "tls", "speaks TLS")

    async def test_an_expired_token(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        report = await examine(client_of(control_plane, tmp_path, {"token": jwt(-7200 - 60)}))
        require(report, FAULT, "credentials", "token expired 2 h ago")
        require(report, FAULT, "credentials", "does not accept the credentials")

    async def test_an_anonymous_user(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        report = await examine(client_of(control_plane, tmp_path, {}))
        assert any(
            finding.check == "credentials" and finding.level in (WARNING, FAULT)
            for finding in report.findings
        ), report.findings

    async def test_a_user_without_rights(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        client = client_of(control_plane, tmp_path, {"token": control_plane.powerless_token})
        report = await examine(client)
        require(report, NOTE, "watches", "pods may not be watched by this user")

    async def test_a_proxy_that_buffers_watches(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        authority = trustme.CA()
        tls, trusted = serving(issue(authority)), control_plane.ssl_context()
        async with proxy(control_plane.url, tls=tls, buffers=True, trusted=trusted) as url:
            ca = authority.cert_pem.bytes()
            report = await examine(kubeconfig(tmp_path, url, ca=ca, user={"token": control_plane.token}))
        require(report, FAULT, "watches", "buffered")

    async def test_the_operators_account_sees_definitions_and_rights(
        self, real: KubernetesCluster, control_plane: ControlPlane, tmp_path: Path
    ) -> None:
        definition = crd(Shop)
        control_plane.define(definition)
        rules = [
            {"apiGroups": [right.group], "resources": [right.resource], "verbs": [*right.verbs]}
            for right in shops.rights(leader_election=False)
        ]
        extra = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "delete"]}
        token = await make_account(real, "shops", [*rules, extra])
        powerless = await make_account(real, "powerless")
        admin = Client.from_kubeconfig(path=control_plane.kubeconfig)
        async with admin:
            await until_published(admin)

        report = await examine(client_of(control_plane, tmp_path, {"token": token}), shops, OPTIONS)
        require(report, OK, "rights", "has the rights")
        require(report, WARNING, "rights", "delete, get secrets")
        require(report, OK, "definitions", "as the classes say")

        older = await examine(client_of(control_plane, tmp_path, {"token": token}), older_shops, OPTIONS)
        require(older, WARNING, "definitions", "differs from the class OlderShop", "v1 spec.required")
        require(older, WARNING, "rights", "patch, update shops/status.doctor.example.com")

        refused = await examine(client_of(control_plane, tmp_path, {"token": powerless}), shops, OPTIONS)
        require(refused, FAULT, "rights", "may not", "shops.doctor.example.com")
