"""Spans of an operator: lists, watches, reconciles, writes and webhook calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from aioinformer import Client, ConflictError, KubeObject, ListWatch, NotFoundError, Resource
from aioinformer.operator import AdmissionReview, Context, Operator, Request, Uses
from aioinformer.testing import APIServer, eventually

from .spans import recording
from .webhooks.kinds import WebsiteV1, post, review, site


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {name.rpartition("k8s.")[2]: value for name, value in (span.attributes or {}).items()}


def about(span: ReadableSpan) -> tuple[str, Any, Any]:
    """Return a span's kind of object, namespace and name."""
    given = attributes(span)
    return given.get("object.kind", ""), given.get("namespace.name", ""), given.get("object.name", "")


async def test_a_reconcile_is_the_parent_of_its_writes(server: APIServer, client: Client) -> None:
    operator = Operator("copying", events=False, uses=[Uses("secrets", ("create",))])

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        assert request.object is not None
        await context.uncached("secrets").create({"metadata": {"name": "a", "namespace": "default"}})

    with recording() as spans:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client) as manager:
            await eventually(lambda: manager.state.controllers[0].reconciles == 1)
            server.patch("v1", "configmaps", "a", {"data": {"a": "b"}})
            await eventually(lambda: manager.state.controllers[0].reconciles >= 3)
    first, second, third, *_ = spans.named("reconcile configmaps")
    assert about(first) == ("ConfigMap", "default", "a")
    assert attributes(first)["aioinformer.controller"] == "configmaps"
    assert [attributes(span)["aioinformer.attempt"] for span in (first, second, third)] == [1, 1, 2]
    assert first.kind is SpanKind.INTERNAL
    created, refused, *_ = spans.named("create secrets")
    assert about(created) == ("Secret", "default", "a")
    assert created.parent is not None
    assert first.context is not None
    assert created.parent.span_id == first.context.span_id
    assert (created.status.status_code, refused.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert attributes(refused)["error.type"] == "AlreadyExistsError"
    assert attributes(refused)["http.response.status_code"] == 409
    assert first.status.status_code is StatusCode.UNSET
    assert (second.status.status_code, attributes(second)["error.type"]) == (
        StatusCode.ERROR, "AlreadyExistsError",
    )  # fmt: skip


async def test_lists_and_watches_have_one_span_for_each_request(server: APIServer, client: Client) -> None:
    for number in range(5):
        server.create("apps/v1", "deployments", {"metadata": {"name": f"web-{number}"}, "spec": SPEC})
    subject = ListWatch.for_resource(client, "apps/v1", "deployments", "default")
    with recording() as spans:
        listed = await subject.list()
        assert len(listed.items) == 5
        (listing,) = spans.all
        rule = server.forbid("list", "deployments")
        with pytest.raises(Exception, match="forbidden"):
            await subject.list()
        rule.remove()
    assert listing.name == "list deployments"
    assert about(listing) == ("Deployment", "default", "")
    assert attributes(listing)["resource"] == "deployments.apps"
    refused = spans.all[1]
    assert (refused.status.status_code, attributes(refused)["error.type"]) == (
        StatusCode.ERROR,
        "ApiError",
    )


async def test_a_task_that_runs_for_days_has_no_span(server: APIServer, client: Client) -> None:
    operator = Operator("watching", events=False, uses=[Uses("secrets", ("get",))])
    has_read = asyncio.Event()

    @operator.task("configmaps")
    async def follow(request: Request[KubeObject], context: Context) -> None:
        with pytest.raises(NotFoundError):
            await context.uncached("secrets").get("default/a")
        has_read.set()
        await asyncio.Event().wait()

    with recording() as spans:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await has_read.wait()
    (read,) = spans.named("get secrets")
    assert read.parent is None
    assert [span.name for span in spans.all if span.name.startswith("reconcile")] == []


SPEC = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "example.com/a"}]},
    },
}


async def test_an_update_that_conflicts_is_a_failed_span(server: APIServer, client: Client) -> None:
    maps = Resource(client, "configmaps")
    stale = await maps.create({"metadata": {"name": "a", "namespace": "default"}})
    await maps.patch("default/a", {"data": {"a": "b"}})
    with recording() as spans:
        with pytest.raises(ConflictError):
            await maps.update({**stale.to_dict(), "data": {"a": "c"}})
        await maps.delete("default/a")
    update, delete = spans.named("update configmaps"), spans.named("delete configmaps")
    assert [about(span) for span in (*update, *delete)] == [("ConfigMap", "default", "a")] * 2
    assert attributes(update[0])["http.response.status_code"] == 409


async def test_a_webhook_call_has_a_span() -> None:
    operator = Operator("sites", events=False)

    @operator.validate(WebsiteV1)
    async def check(request: AdmissionReview[WebsiteV1]) -> None:
        assert request.object is not None
        if request.object.spec.host == "broken":
            raise KeyError("secret")

    with recording() as spans:
        app = operator.webhook_app()
        (path,) = app.paths
        assert (await post(app, path, review(site(host="a.example")))).status_code == 200
        assert (await post(app, path, review(site(host="broken")))).status_code == 500
    answered, failed = spans.named(f"webhook {path}")
    assert answered.kind is SpanKind.SERVER
    assert about(answered)[0] == "Website"
    assert attributes(answered)["aioinformer.operation"] == "CREATE"
    assert (answered.status.status_code, failed.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert "secret" not in str(failed.status.description)


async def test_log_messages_have_the_ids_of_the_span(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("logging", events=False)

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        context.logger.warning("here")

    with recording() as spans:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: spans.named("reconcile configmaps"))
    (span,) = spans.named("reconcile configmaps")
    assert span.context is not None
    fields: Any = next(record for record in caplog.records if record.message == "here").__dict__["fields"]
    assert fields["trace_id"] == format(span.context.trace_id, "032x")
    assert fields["span_id"] == format(span.context.span_id, "016x")


PROGRAM = """
import asyncio, json, sys
from aioinformer import Client, Resource
from aioinformer.operator import Operator
from aioinformer.testing import APIServer, eventually

operator = Operator("plain", events=False)

@operator.controller("configmaps")
async def reconcile(request, context): ...

async def main():
    async with APIServer() as server, Client.from_url(server.url) as client:
        await Resource(client, "configmaps").create({"metadata": {"name": "a", "namespace": "default"}})
        async with operator.running(client) as manager:
            await eventually(lambda: manager.state.controllers[0].reconciles)
    print(json.dumps([name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))]))

asyncio.run(main())
"""


def test_a_program_without_an_sdk_imports_nothing_of_opentelemetry() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
