"""The registration of webhooks by the leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import Client
from aioinformer._core.tasks import finish
from aioinformer.objects.kube_object import KubeObject
from aioinformer.operator import AdmissionReview, Operator, Request, webhook_registration
from aioinformer.operator.manifests import rules
from aioinformer.operator.webhook_registration import keep_registered, register, registration_rights
from aioinformer.operator.webhooks import Reached
from aioinformer.testing import APIServer, eventually

GROUP = "admissionregistration.k8s.io/v1"
PLURAL = "validatingwebhookconfigurations"
RBAC = "rbac.authorization.k8s.io"

operator = Operator("sites")


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject]) -> None: ...


@operator.validate("configmaps")
def check(review: AdmissionReview[KubeObject]) -> None: ...


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_registration, "CHECK_EVERY", 0.01)
    monkeypatch.setattr(webhook_registration, "POLL", 0.01)


class Process:
    """A process that serves the webhooks."""

    def __init__(self) -> None:
        self.leads = True
        self.authority = b"-----BEGIN CERTIFICATE-----"

    def address(self) -> Reached:
        return {"service": "home/sites-webhook", "ca_bundle": self.authority}


@asynccontextmanager
async def registering(client: Client, process: Process, **options: Any) -> AsyncIterator[None]:
    work = keep_registered(
        client,
        operator,
        process.address,
        lambda: process.leads,
        **{"delay": 0.0, "name": "pages", "only": (), **options},
    )
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await finish(task)


@asynccontextmanager
async def installed(**options: Any) -> AsyncIterator[tuple[APIServer, Client]]:
    async with APIServer(**options) as server, Client.from_url(server.url, server.token) as client:
        server.create(GROUP, PLURAL, {"metadata": {"name": "pages"}})
        yield server, client


def registered(server: APIServer) -> list[dict[str, Any]]:
    return server.get(GROUP, PLURAL, "pages").get("webhooks") or []


async def test_only_the_leader_registers() -> None:
    process = Process()
    process.leads = False
    async with installed() as (server, client), registering(client, process, only=("a",)):
        await asyncio.sleep(0.1)
        assert registered(server) == []
        process.leads = True
        (webhook,) = await eventually(lambda: registered(server))
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["clientConfig"]["service"]["name"] == "sites-webhook"
        assert {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]} in webhook[
            "namespaceSelector"
        ]["matchExpressions"]


async def test_a_registration_that_others_remove_comes_back_and_one_that_is_right_is_not_written() -> None:
    async with installed() as (server, client), registering(client, Process()):
        await eventually(lambda: registered(server))
        version = server.get(GROUP, PLURAL, "pages")["metadata"]["resourceVersion"]
        before = server.count("patch", PLURAL)
        await eventually(lambda: server.count("patch", PLURAL) > before + 3)
        assert server.get(GROUP, PLURAL, "pages")["metadata"]["resourceVersion"] == version
        server.patch(GROUP, PLURAL, "pages", {"webhooks": None})
        await eventually(lambda: registered(server))


async def test_a_changed_authority_is_registered() -> None:
    process = Process()
    async with installed() as (server, client), registering(client, process):
        await eventually(lambda: registered(server))
        first = registered(server)[0]["clientConfig"]["caBundle"]
        process.authority += b"\nanother"
        await eventually(lambda: registered(server)[0]["clientConfig"]["caBundle"] != first)


async def test_the_registration_stays_when_the_process_ends() -> None:
    async with installed() as (server, client):
        async with registering(client, Process()):
            await eventually(lambda: registered(server))
        assert registered(server)


async def test_without_the_right_it_warns_once_and_registers_when_it_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger=webhook_registration.__name__)
    async with installed(rbac=True, token="admin") as (server, _):
        server.users["robot-token"] = "robot"
        async with Client.from_url(server.url, "robot-token") as robot, registering(robot, Process()):
            await eventually(lambda: server.count("patch", PLURAL) > 3)
            (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
            assert "cannot patch resource" in warning.getMessage()
            granted = rules(registration_rights(operator, "pages"))
            role = {"metadata": {"name": "webhooks"}, "rules": granted}
            server.create(f"{RBAC}/v1", "clusterroles", role)
            binding = {
                "metadata": {"name": "webhooks"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "webhooks"},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "robot"}],
            }
            server.create(f"{RBAC}/v1", "clusterrolebindings", binding)
            await eventually(lambda: registered(server))
            await eventually(lambda: "the API server calls the webhooks" in caplog.text)


async def test_a_configuration_that_is_missing_is_not_created_without_the_right_to() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        await register(client, operator, name="other", **Process().address())
        assert server.get(GROUP, PLURAL, "other")["webhooks"]
    assert [right.verbs for right in registration_rights(operator, "pages")] == [("patch",)]
