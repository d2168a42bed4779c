"""What webhooks count: metrics and the state of a manager."""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import Client
from aioinformer.operator import AdmissionReview, Denied, Operator
from aioinformer.testing import APIServer, eventually

from .kinds import WebsiteV1, post, review, site

PATH = "/validate/check.websites.hooks.example.com"


def make_counting(entered: asyncio.Event) -> Operator:
    operator = Operator("sites", events=False)

    @operator.validate(WebsiteV1, timeout=1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        match review.object.spec.host:
            case "denied":
                raise Denied("no")
            case "broken":
                raise KeyError("a secret")
            case "slow":
                entered.set()
                await asyncio.Event().wait()

    return operator


async def test_answers_are_counted_by_operation_and_result() -> None:
    entered = asyncio.Event()
    operator = make_counting(entered)
    async with APIServer() as server, Client.from_url(server.url) as client:
        manager = operator.manager(client)
        app = operator.webhook_app(manager)
        created, updated = manager.state.webhooks
        assert (created.operation, updated.operation, created.calls) == ("CREATE", "UPDATE", 0)

        async def ask(host: str, **more: Any) -> int:
            return (await post(app, PATH, review(site(host=host), **more))).status_code

        assert await ask("a.example") == 200
        assert await ask("denied") == 200
        assert await ask("broken") == 500
        assert await ask("b.example", operation="UPDATE", old=site()) == 200
        assert (await post(app, PATH, b"garbage")).status_code == 400
        slow = asyncio.create_task(ask("slow"))
        await entered.wait()
        assert manager.state.webhooks[0].running == 1
        assert await slow == 500
        created, updated, garbage = manager.state.webhooks
        assert (created.allowed, created.denied, created.failed, created.timed_out) == (1, 1, 1, 1)
        assert (created.running, created.calls) == (0, 4)
        assert created.last_error == "took longer than 0.9 s"
        assert created.last_error_seconds is not None
        assert (updated.allowed, updated.calls, updated.last_error) == (1, 1, None)
        assert (garbage.operation, garbage.failed) == ("", 1)
        text = manager.metrics()
    labels = f'operation="CREATE",result="{{}}",webhook="{PATH}"'
    for result in ("allowed", "denied", "failed", "timed_out"):
        assert f"aioinformer_webhook_reviews_total{{{labels.format(result)}}} 1.0\n" in text
    labels = f'operation="CREATE",webhook="{PATH}"'
    assert f"controller_runtime_webhook_requests_in_flight{{{labels}}} 0.0\n" in text
    assert f'controller_runtime_webhook_requests_total{{code="200",{labels}}} 2.0\n' in text
    assert f'controller_runtime_webhook_requests_total{{code="500",{labels}}} 2.0\n' in text
    assert f'controller_runtime_webhook_latency_seconds_bucket{{le="+Inf",{labels}}} 4.0\n' in text
    assert f'controller_runtime_webhook_latency_seconds_bucket{{le="0.5",{labels}}} 3.0\n' in text


async def test_cancelled_requests_are_no_longer_running() -> None:
    entered = asyncio.Event()
    operator = make_counting(entered)
    async with APIServer() as server, Client.from_url(server.url) as client:
        manager = operator.manager(client)
        app = operator.webhook_app(manager)
        asking = asyncio.create_task(post(app, PATH, review(site(host="slow"))))
        await entered.wait()
        asking.cancel()
        await eventually(lambda: manager.state.webhooks[0].running == 0)
        await asyncio.wait([asking])
        assert asking.cancelled()


async def test_task_group_that_fails_inside_a_webhook_is_a_failure_and_no_cancellation() -> None:
    async def fail() -> None:
        raise KeyError("a secret")

    operator = Operator("sites", events=False)

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        except* KeyError:
            if review.object.spec.host != "caught":
                raise

    async with APIServer() as server, Client.from_url(server.url) as client:
        app = operator.webhook_app(operator.manager(client))
        assert (await post(app, PATH, review(site(host="caught")))).status_code == 200
        assert (await post(app, PATH, review(site(host="raised")))).status_code == 500
