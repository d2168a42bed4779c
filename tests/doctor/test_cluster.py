"""What is wrong at a server that is reached: lists, watches, webhooks."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
import trustme

from aioinformer import Client
from aioinformer.doctor import Level, Report, examine
from aioinformer.doctor.lists import judge_list
from aioinformer.doctor.versions import judge_version
from aioinformer.testing import APIServer

from .setups import answering, issue, proxy, require, serving

FAULT, WARNING, OK, NOTE = Level.FAULT, Level.WARNING, Level.OK, Level.NOTE


async def test_a_proxy_that_buffers_watches() -> None:
    async with APIServer() as server, proxy(server.url, buffers=True) as url:
        report = await examine(Client.from_url(url))
    finding = require(report, FAULT, "watches", "buffered")
    assert "proxy_buffering" in finding.do


async def test_a_proxy_that_buffers_watches_of_a_server_without_watch_list() -> None:
    async with APIServer(watch_list=False) as server, proxy(server.url, buffers=True) as url:
        report = await examine(Client.from_url(url))
    require(report, FAULT, "watches", "buffered")


async def test_a_proxy_that_ends_watches() -> None:
    async with APIServer() as server, proxy(server.url, ends_watches=True) as url:
        report = await examine(Client.from_url(url))
    require(report, FAULT, "watches", "ended after", "without an event")


async def test_a_proxy_that_passes_all_on_is_no_fault() -> None:
    async with APIServer() as server, proxy(server.url) as url:
        report = await examine(Client.from_url(url))
    require(report, OK, "watches", "bookmarks come")


async def test_a_server_without_watch_list() -> None:
    async with APIServer(watch_list=False) as server:
        report = await examine(Client.from_url(server.url))
    require(report, NOTE, "watches", "WatchList")
    require(report, OK, "watches", "bookmarks come")


async def test_a_server_without_bookmarks() -> None:
    async with APIServer(watch_list=False) as server:
        server.faults.lose_bookmarks()
        report = await examine(Client.from_url(server.url))
    require(report, WARNING, "watches", "no bookmark came")


async def test_slow_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.doctor.lists.SLOW", 0.2)
    async with APIServer() as server:
        server.faults.delay(0.3, verb="list", resource="pods", times=None)
        report = await examine(Client.from_url(server.url))
    require(report, WARNING, "lists", "pods:", "0 objects")


async def test_a_large_list_is_named_with_its_size() -> None:
    async with APIServer() as server:
        for number in range(501):
            server.create("v1", "pods", {"metadata": {"name": f"pod-{number}"}, "spec": {}})
        report = await examine(Client.from_url(server.url))
    require(report, OK, "lists", "pods: 501 objects")
    finding = judge_list("pods", 500, 99_500, 2_000_000, 0.5)
    assert (finding.level, finding.what) == (
        WARNING,
        "pods: 100,000 objects, 400.0 MB, the first page in 500 ms",
    )


@pytest.mark.parametrize(
    ("version", "level"),
    [("v1.21.9", WARNING), ("v1.36.3", OK), ("v1.33.1-gke.100", OK), ("v1.99.0", NOTE), (None, NOTE)],
)
def test_old_and_unknown_versions(version: str | None, level: Level) -> None:
    assert judge_version(version).level is level


def configuration(client_config: dict[str, Any], policy: str = "Fail") -> dict[str, Any]:
    return {
        "metadata": {"name": "hooks"},
        "webhooks": [
            {
                "name": "check.example.com",
                "clientConfig": client_config,
                "failurePolicy": policy,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            }
        ],
    }


async def examine_hook(
    client_config: dict[str, Any], *objects: Any, policy: str = "Fail", in_pod: bool = False
) -> Report:
    async with APIServer() as server:
        server.create(
            "admissionregistration.k8s.io/v1",
            "validatingwebhookconfigurations",
            configuration(client_config, policy),
        )
        for api_version, plural, obj in objects:
            server.create(api_version, plural, obj)
        return await examine(Client.from_url(server.url), in_pod=in_pod)


def bundle(authority: trustme.CA) -> str:
    return base64.b64encode(authority.cert_pem.bytes()).decode()


async def test_a_webhook_that_is_reached() -> None:
    authority = trustme.CA()
    async with answering(200, "", tls=serving(issue(authority))) as url:
        report = await examine_hook({"url": url, "caBundle": bundle(authority)})
    require(report, OK, "webhooks", "hooks: the webhook is reached")


@pytest.mark.parametrize(("policy", "level"), [("Fail", FAULT), ("Ignore", WARNING)])
async def test_a_webhook_that_is_not_reached(policy: str, level: Level) -> None:
    config = {"url": "https://127.0.0.1:1", "caBundle": bundle(trustme.CA())}
    report = await examine_hook(config, policy=policy)
    require(report, level, "webhooks", "refuses connections")


async def test_an_expired_certificate_of_a_webhook() -> None:
    authority = trustme.CA()
    async with answering(200, "", tls=serving(issue(authority, expires=timedelta(hours=-1)))) as url:
        report = await examine_hook({"url": url, "caBundle": bundle(authority)})
    finding = require(report, FAULT, "webhooks", "the webhook's certificate has expired")
    assert "Renew" in finding.do


async def test_a_webhook_with_a_certificate_of_another_authority() -> None:
    async with answering(200, "", tls=serving(issue(trustme.CA()))) as url:
        report = await examine_hook({"url": url, "caBundle": bundle(trustme.CA())})
    require(report, FAULT, "webhooks", "the webhook's certificate is signed by a CA that is not trusted")


async def test_a_webhook_without_a_service() -> None:
    service = {"namespace": "web", "name": "hooks", "port": 443}
    report = await examine_hook({"service": service, "caBundle": bundle(trustme.CA())})
    require(report, FAULT, "webhooks", "there is no Service web/hooks")


async def test_a_webhook_without_pods() -> None:
    service = {"namespace": "web", "name": "hooks", "port": 443}
    spec = {"ports": [{"port": 443}]}
    hooks = ("v1", "services", {"metadata": {"name": "hooks", "namespace": "web"}, "spec": spec})
    report = await examine_hook({"service": service, "caBundle": bundle(trustme.CA())}, hooks)
    require(report, FAULT, "webhooks", "has no ready pods")


async def test_a_webhook_without_an_authority() -> None:
    service = {"namespace": "web", "name": "hooks", "port": 443}
    report = await examine_hook({"service": service})
    require(report, FAULT, "webhooks", "there is no caBundle")


async def test_a_webhook_with_pods_is_reached_from_inside_the_cluster_alone() -> None:
    service = {"namespace": "web", "name": "hooks", "port": 443}
    metadata = {"name": "hooks", "namespace": "web"}
    hooks = ("v1", "services", {"metadata": metadata, "spec": {"ports": [{"port": 443}]}})
    slices = {
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}}],
        "ports": [{"port": 9443}],
    }
    objects = (hooks, ("discovery.k8s.io/v1", "endpointslices", slices))
    config = {"service": service, "caBundle": bundle(trustme.CA())}
    outside = await examine_hook(config, *objects)
    require(outside, OK, "webhooks", "its Service has ready pods")
    inside = await examine_hook(config, *objects, in_pod=True)
    require(inside, FAULT, "webhooks", "hooks.web.svc cannot be resolved")
