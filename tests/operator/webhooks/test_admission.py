"""Webhooks for admission, asked as the API server asks."""

from __future__ import annotations

import asyncio
import logging
import time
from unittest.mock import Mock

import pytest

from aioinformer import Client, ConfigError, KubeObject
from aioinformer.operator import AdmissionReview, Context, Denied, Operator, Uses
from aioinformer.testing import APIServer
from aioinformer.typed import crd

from .kinds import Object, SpecV1, SpecV2, WebsiteV1, WebsiteV2, apply_patch, ask_review, post, review, site


async def test_a_validator_gets_typed_objects_and_who_asks() -> None:
    operator = Operator("sites")
    seen: list[AdmissionReview[WebsiteV1]] = []

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        seen.append(review)
        review.warn("hosts in .example do not exist")

    asked = review(
        site(host="b.example"), old=site(), operation="UPDATE", dryRun=True, options={"fieldManager": "me"}
    )
    response = await ask_review(operator, asked)
    assert response == {"uid": "u-1", "allowed": True, "warnings": ["hosts in .example do not exist"]}
    (got,) = seen
    assert got.old is not None
    assert (got.object.spec.host, got.old.spec.host) == ("b.example", "a.example")
    assert (got.operation, got.name, got.namespace, got.dry_run) == ("UPDATE", "a", "default", True)
    assert (got.user.username, got.user.groups, got.user.extra) == ("ann", ["people"], {"scope": ["a"]})
    assert got.options == {"fieldManager": "me"}


async def test_a_denial_with_fields_is_invalid_and_has_causes() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        review.deny("must be above 0", field="spec.replicas")
        raise Denied("is taken", field="spec.host")

    response = await ask_review(operator, review(site()))
    assert response["allowed"] is False
    assert response["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "spec.replicas: must be above 0; spec.host: is taken",
        "details": {
            "name": "a",
            "group": "hooks.example.com",
            "kind": "Website",
            "causes": [
                {"reason": "FieldValueInvalid", "message": "must be above 0", "field": "spec.replicas"},
                {"reason": "FieldValueInvalid", "message": "is taken", "field": "spec.host"},
            ],
        },
    }


async def test_an_answer_of_texts_that_json_cannot_hold_is_no_failure() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        review.warn("\ud800 warns")
        review.deny("\ud800 is denied", field="spec[\ud800]")
        raise Denied("\ud800")

    response = await ask_review(operator, review(site()))
    assert response["warnings"] == ["? warns"]
    assert response["status"]["message"] == "spec[?]: ? is denied; ?"


async def test_a_denial_without_fields_is_forbidden() -> None:
    operator = Operator("sites")

    @operator.validate("pods", operations=["DELETE"])
    def keep(review: AdmissionReview[KubeObject]) -> None:
        raise Denied(f"{review.object.name} has to stay")

    pod: Object = {"metadata": {"name": "p", "namespace": "default"}}
    response = await ask_review(operator, review(None, old=pod, operation="DELETE"))
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "p has to stay",
    }


async def test_an_object_that_does_not_fit_its_class_is_denied() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1, operations=["CREATE", "UPDATE", "DELETE"])
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.operation != "DELETE":
            assert review.object.spec.host

    response = await ask_review(operator, review(site(replicas="many")))
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.replicas"
    assert cause["message"].startswith("Expected `int")
    response = await ask_review(operator, review(site(), old=site(replicas="many"), operation="UPDATE"))
    assert response["allowed"], "a stored object that does not fit can be corrected"
    response = await ask_review(operator, review(None, old=site(replicas="many"), operation="DELETE"))
    assert response["allowed"], "and deleted"


@pytest.mark.parametrize("returns", [True, False], ids=["returned", "in place"])
async def test_a_patch_has_the_changes_of_a_struct_and_keeps_unknown_fields(returns: bool) -> None:
    operator = Operator("sites")

    @operator.mutate(WebsiteV1)
    async def fill(review: AdmissionReview[WebsiteV1]) -> WebsiteV1 | None:
        website = review.object
        website.spec.replicas = 3
        website.metadata.labels = {"example.com/a~b": "c"}
        return website if returns else None

    asked = site(unknown={"kept": [1]})
    asked["metadata"]["annotations"] = {"a": "b"}
    response = await ask_review(operator, review(asked))
    wanted = site(unknown={"kept": [1]}, replicas=3)
    wanted["metadata"] |= {"annotations": {"a": "b"}, "labels": {"example.com/a~b": "c"}}
    assert apply_patch(asked, response) == wanted


async def test_without_a_change_there_is_no_patch() -> None:
    operator = Operator("sites")

    @operator.mutate(WebsiteV1)
    def fill(review: AdmissionReview[WebsiteV1]) -> WebsiteV1:
        return review.object

    assert await ask_review(operator, review(site())) == {"uid": "u-1", "allowed": True}


async def test_a_patch_of_a_dict() -> None:
    operator = Operator("pods")

    @operator.mutate("pods")
    def fill(review: AdmissionReview[KubeObject]) -> dict[str, object]:
        fields = review.object.to_dict()
        del fields["spec"]["old"]
        fields["spec"]["containers"].append({"name": "b"})
        fields["metadata"]["labels"]["x/y"] = "2"
        return fields

    pod: Object = {
        "metadata": {"name": "p", "labels": {"x/y": "1"}},
        "spec": {"containers": [{"name": "a"}], "old": 1, "flag": 1},
    }
    response = await ask_review(operator, review(pod))
    assert apply_patch(pod, response) == {
        "metadata": {"name": "p", "labels": {"x/y": "2"}},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "flag": 1},
    }


async def test_a_failure_is_never_an_allowance(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")
    caplog.set_level(logging.CRITICAL, "aioinformer")

    @operator.validate(WebsiteV1)
    async def fails(review: AdmissionReview[WebsiteV1]) -> None:
        raise KeyError("a secret")

    @operator.validate(WebsiteV1)
    async def cancels(review: AdmissionReview[WebsiteV1]) -> None:
        raise asyncio.CancelledError

    @operator.validate(WebsiteV1)
    def returns(review: AdmissionReview[WebsiteV1]) -> None:
        return False  # type: ignore[return-value]

    @operator.mutate(WebsiteV1)
    def confuses(review: AdmissionReview[WebsiteV1]) -> WebsiteV1:
        return review.object.spec  # type: ignore[return-value]

    app = operator.webhook_app()
    answers = {path.split("/")[2].split(".")[0]: await post(app, path, review(site())) for path in app.paths}
    assert {
        name: (answer.status_code, answer.text.split(" failed: ")[1]) for name, answer in answers.items()
    } == {
        "fails": (500, "KeyError; see the operator's log\n"),
        "cancels": (500, "AioInformerError; see the operator's log\n"),
        "returns": (500, "InvalidResultError; see the operator's log\n"),
        "confuses": (500, "InvalidResultError; see the operator's log\n"),
    }


async def test_a_failure_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise KeyError("a secret")

    await post(operator.webhook_app(), "/validate/check.websites.hooks.example.com", review(site()))
    (record,) = caplog.records
    assert record.getMessage().startswith("check.websites.hooks.example.com failed: KeyError")
    assert record.exc_info is not None


async def test_a_slow_function_is_cancelled_before_the_server_gives_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = Operator("sites")
    cancelled: list[str] = []

    @operator.validate(WebsiteV1, timeout=30)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(review.name)

    (path,) = operator.webhook_app().paths
    answer = await post(operator.webhook_app(), path, review(site()), query="?timeout=0.1s")
    assert (answer.status_code, answer.text) == (
        500,
        "check.websites.hooks.example.com took longer than 0.09 s\n",
    )
    assert cancelled == ["a"]
    assert "took longer than 0.09 s and was cancelled" in caplog.text


async def test_a_function_that_blocks_the_event_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        time.sleep(0.15)  # noqa: ASYNC251 - it blocks

    (path,) = operator.webhook_app().paths
    await post(operator.webhook_app(), path, review(site()))
    (warning,) = caplog.messages
    assert warning.startswith("check.websites.hooks.example.com blocked the event loop for 1")
    assert "on default/a, with 0 waiting" in warning
    assert "in_thread" in warning


async def test_a_function_with_a_context_reads_through_the_manager() -> None:
    operator = Operator("sites", uses=[Uses("namespaces", verbs=("get",))], events=False)

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1], context: Context) -> None:
        namespace = await context.uncached("namespaces").get(review.namespace)
        raise Denied(f"{namespace.name} is known to {context.name}")

    with pytest.raises(ConfigError, match=r"check.websites\S+ takes a context: pass the manager"):
        operator.webhook_app()
    async with APIServer() as server, Client.from_url(server.url) as client:
        app = operator.webhook_app(operator.manager(client))
        answer = await post(app, app.paths[0], review(site()))
    assert answer.json()["response"]["status"]["message"] == "default is known to sites"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "text"),
    [
        (b"garbage", "application/json", 400, "cannot read the review: JSON is malformed"),
        (b"", "application/json", 400, "cannot read the review"),
        (b"\xff\xfe", "application/json", 400, "cannot read the review"),
        (b"[" * 100_000, "application/json", 400, "cannot read the review"),
        ({"apiVersion": "v1", "request": None}, "application/json", 400, "cannot read the review: Expected"),
        ({**review(site()), "apiVersion": "admission.k8s.io/v1beta1"}, "application/json", 400, "v1beta1"),
        (review(site(), operation="CONNECT"), "application/json", 400, "Invalid enum value"),
        (review(site()), "text/plain", 415, "reads application/json only"),
        (b" " * (7 * 1024 * 1024 + 1), "application/json", 413, "at most 7,340,032 bytes"),
    ],
    ids=["text", "empty", "no UTF-8", "deep", "no request", "version", "operation", "type", "large"],
)
async def test_garbage_is_refused(body: bytes, content_type: str, status: int, text: str) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise AssertionError("not reached")

    (path,) = operator.webhook_app().paths
    answer = await post(operator.webhook_app(), path, body, content_type=content_type)
    assert answer.status_code == status
    assert text in answer.text


async def test_other_paths_are_not_found() -> None:
    app = Operator("sites").webhook_app()
    assert (await post(app, "/validate/none", b"")).status_code == 404


async def test_an_operation_that_is_not_declared_fails(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1, operations=["CREATE"])
    def check(review: AdmissionReview[WebsiteV1]) -> None: ...

    (path,) = operator.webhook_app().paths
    answer = await post(operator.webhook_app(), path, review(site(), old=site(), operation="UPDATE"))
    assert answer.status_code == 500
    assert "was called for UPDATE, which it does not declare" in caplog.text


async def test_a_review_of_another_kind_fails(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None: ...

    (path,) = operator.webhook_app().paths
    scale = review(site(), kind={"group": "autoscaling", "version": "v1", "kind": "Scale"})
    assert (await post(operator.webhook_app(), path, scale)).status_code == 500
    assert "was called for a Scale, not a Website" in caplog.text


async def test_updates_of_objects_that_are_being_deleted_are_allowed_without_a_call() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise Denied("no")

    going = site(host=1)  # nor need it fit its class
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await ask_review(operator, review(going, old=going, operation="UPDATE")) == {
        "uid": "u-1",
        "allowed": True,
    }
    assert not (await ask_review(operator, review(site(), old=site(), operation="UPDATE")))["allowed"]


async def test_a_webhook_may_ask_for_objects_that_are_being_deleted() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1, deleting=True)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise Denied(f"deleted since {review.object.metadata.deletion_timestamp:%Y}")

    going = site()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    response = await ask_review(operator, review(going, old=going, operation="UPDATE"))
    assert response["status"]["message"] == "deleted since 2026"


async def test_answer_to_a_review_builds_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise Denied("is taken", field="spec.host")

    app = operator.webhook_app()
    built = Mock(side_effect=crd)
    monkeypatch.setattr("aioinformer.operator.kinds.crd", built)
    answer = await post(app, app.paths[0], review(site()))
    assert answer.json()["response"]["status"]["code"] == 422
    assert not built.called


async def test_a_validator_gets_objects_of_a_version_that_the_former_release_registered() -> None:
    operator = Operator("sites")
    seen: list[AdmissionReview[WebsiteV2]] = []

    @operator.validate(WebsiteV2)
    def check(review: AdmissionReview[WebsiteV2]) -> None:
        seen.append(review)
        raise Denied("are taken", field="spec.hosts")

    @operator.convert(WebsiteV1, WebsiteV2)
    def newer(old: WebsiteV1) -> WebsiteV2:
        return WebsiteV2(SpecV2(hosts=[old.spec.host]), metadata=old.metadata)

    @operator.convert(WebsiteV2, WebsiteV1)
    def older(new: WebsiteV2) -> WebsiteV1:
        return WebsiteV1(SpecV1(host=new.spec.hosts[0]), metadata=new.metadata)

    path = "/validate/check.websites.hooks.example.com"
    asked = review(site(host="b.example"), old=site(), operation="UPDATE")
    answer = await post(operator.webhook_app(), path, asked)
    (got,) = seen
    assert got.old is not None
    assert (got.object.spec.hosts, got.old.spec.hosts) == (["b.example"], ["a.example"])
    assert (got.version, got.object.metadata.name) == ("v2", "a")
    assert answer.json()["response"]["status"]["message"] == "spec.hosts: are taken"


async def test_a_webhook_fails_for_a_version_that_it_cannot_read(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")

    @operator.mutate(WebsiteV2)
    def fill(review: AdmissionReview[WebsiteV2]) -> None: ...

    answer = await post(operator.webhook_app(), "/mutate/fill.websites.hooks.example.com", review(site()))
    assert answer.status_code == 500
    assert "was called for v1, not v2: another release registered it" in caplog.text
