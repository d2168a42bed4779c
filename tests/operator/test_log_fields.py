"""Fields of log messages: which object a message is about."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import Client, ForbiddenError, KubeObject
from aioinformer._core.log_fields import log_fields
from aioinformer.operator import AdmissionReview, Context, Operator, Request, TerminalError, in_thread
from aioinformer.testing import APIServer, eventually

from .webhooks.kinds import WebsiteV1, post, review, site


def fields_of(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """Return the fields of the messages that contain a text."""
    return [record.__dict__["fields"] for record in caplog.records if message in record.getMessage()]


async def run_until(operator: Operator, client: Client, server: APIServer, reconciles: int) -> str:
    """Run an operator of configmaps with one object until it was reconciled so often; return the object's uid."""
    made = server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with operator.running(client) as manager:
        await eventually(lambda: manager.state.controllers[0].reconciles >= reconciles)
    return str(made["metadata"]["uid"])


async def test_the_logger_of_the_context_says_what_is_reconciled(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("sites", events=False)
    caplog.set_level(logging.INFO, "sites")

    @operator.controller("configmaps", concurrency=5)
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        context.logger.info("publishing %s", request.name, extra={"bucket": "b"})
        await asyncio.create_task(in_thread(context.logger.info, "from a thread"))
        if len(fields_of(caplog, "publishing")) == 1:
            raise ValueError("no bucket")

    uid = await run_until(operator, client, server, 2)
    first, second = fields_of(caplog, "publishing a")
    assert {name: first[name] for name in ("controller", "namespace", "name", "uid", "attempt")} == {
        "controller": "configmaps", "namespace": "default", "name": "a", "uid": uid, "attempt": 1,
    }  # fmt: skip
    assert second["attempt"] == 2
    assert 0 <= first["duration"] < 10
    assert [fields["uid"] for fields in fields_of(caplog, "from a thread")] == [uid, uid]
    (published, *_) = [record for record in caplog.records if record.getMessage() == "publishing a"]
    assert (published.name, published.__dict__["bucket"]) == ("sites", "b")


async def test_a_failure_says_its_type(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("sites", events=False)

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject]) -> None:
        raise TerminalError("no quota")

    await run_until(operator, client, server, 1)
    assert fields_of(caplog, "no quota") == [{"error_type": "TerminalError"}]


async def test_a_task_that_outlives_its_reconcile_is_about_nothing(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("sites", events=False)
    has_ended = asyncio.Event()
    left_behind: list[asyncio.Task[None]] = []

    async def follow(context: Context) -> None:
        await has_ended.wait()
        context.logger.warning("later")

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        left_behind.append(asyncio.create_task(follow(context)))

    await run_until(operator, client, server, 1)
    has_ended.set()
    await left_behind[0]
    assert fields_of(caplog, "later") == [{}]
    assert log_fields() == {}


async def test_a_webhook_call_says_what_it_reviews(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites", events=False)
    said: list[dict[str, object]] = []

    @operator.validate(WebsiteV1)
    async def check(request: AdmissionReview[WebsiteV1]) -> None:
        said.append(log_fields())

    app = operator.webhook_app()
    await post(app, app.paths[0], review(site(host="a.example")))
    (fields,) = said
    assert (fields["webhook"], fields["operation"]) == (app.paths[0], "CREATE")
    assert {"namespace", "name", "uid"} <= fields.keys()
    assert log_fields() == {}


async def test_the_advice_about_rights_is_said_once(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("sites", events=False)

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject]) -> None:
        raise ForbiddenError(403, "Forbidden", "secrets are forbidden")

    await run_until(operator, client, server, 3)
    failures = [record.getMessage() for record in caplog.records if "are forbidden" in record.getMessage()]
    assert len(failures) >= 3
    assert ["If a right is missing" in failure for failure in failures] == [True] + [False] * (
        len(failures) - 1
    )
