"""Reviews of objects that do not fit their class, or are being deleted, or nested deeply."""

from __future__ import annotations

import json
import logging
from typing import Any, Literal

import pytest

from aioinformer import KubeObject
from aioinformer.errors import DecodeError
from aioinformer.operator import AdmissionReview, CustomResource, Denied, Operator
from aioinformer.typed import CamelStruct

from .kinds import Object, WebsiteV1, apply_patch, ask_review, post, review, site


def label(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}


def strict(**options: Any) -> tuple[Operator, list[str]]:
    """Return an operator whose webhook reads the object, and the hosts that it has read."""
    operator = Operator("sites")
    read: list[str] = []

    @operator.validate(WebsiteV1, **options)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        read.append(review.object.spec.host)
        if review.object.spec.host == "refused":
            raise Denied("no")

    return operator, read


async def test_a_webhook_that_reads_only_the_name_takes_objects_that_do_not_fit() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.name == "refused":
            raise Denied("no")

    @operator.mutate(WebsiteV1)
    def fill(review: AdmissionReview[WebsiteV1]) -> None:
        assert review.raw

    app = operator.webhook_app()
    for path in app.paths:
        answer = await post(app, path, review(site(host=1)))
        assert answer.json()["response"] == {"uid": "u-1", "allowed": True}


async def test_a_label_may_change_on_an_object_that_does_not_fit() -> None:
    operator, read = strict()
    unfit = site(host=1)
    assert (await ask_review(operator, review(label(unfit), old=unfit, operation="UPDATE")))["allowed"]
    status = {**unfit, "status": {"a": 1}}
    assert not (await ask_review(operator, review(status, old=unfit, operation="UPDATE")))["allowed"]
    assert not (await ask_review(operator, review(unfit)))["allowed"]
    assert not read


async def test_a_denial_names_the_field_and_quotes_no_value() -> None:
    operator, _ = strict()
    missing = {**site(), "spec": {}}
    response = await ask_review(operator, review(missing))
    (cause,) = response["status"]["details"]["causes"]
    assert (cause["field"], cause["message"]) == ("spec.host", "is required")

    class Coloured(CustomResource, group="hooks.example.com", version="v1", kind="Colour", plural="colours"):
        spec: dict[str, Literal["red"]]

    colours = Operator("colours")

    @colours.validate(Coloured)
    def check(review: AdmissionReview[Coloured]) -> None:
        assert review.object.spec

    kind = {"group": "hooks.example.com", "version": "v1", "kind": "Colour"}
    for value in ("s3cret", 5):
        obj = {**site(), "kind": "Colour", "spec": {"a": value}}
        answer = json.dumps(await ask_review(colours, review(obj, kind=kind)))
        assert "s3cret" not in answer


async def test_a_policy_that_swallows_the_error_does_not_pass() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        try:
            assert review.object
        except Exception:
            return

    assert not (await ask_review(operator, review(site(host=1))))["allowed"]


async def test_a_stored_object_that_does_not_fit_is_the_webhooks_choice() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        try:
            assert review.old
        except DecodeError:
            if review.object.spec.host == "strict":
                raise

    repairing = review(site(), old=site(host=1), operation="UPDATE")
    assert (await ask_review(operator, repairing))["allowed"]
    response = await ask_review(operator, review(site(host="strict"), old=site(host=1), operation="UPDATE"))
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.host"
    assert cause["message"].endswith("(in the object as it is stored)")


async def test_an_error_about_another_object_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    operator = Operator("sites")
    caplog.set_level(logging.CRITICAL, "aioinformer")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise DecodeError("an object in a cache")

    (path,) = operator.webhook_app().paths
    answer = await post(operator.webhook_app(), path, review(site(), old=site(), operation="UPDATE"))
    assert answer.status_code == 500


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_only_metadata_of_an_object_that_is_being_deleted_changes_unasked(subresource: str) -> None:
    operator, read = strict(subresource=subresource)
    old = site()
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    freed = {**old, "metadata": {**old["metadata"], "finalizers": []}}
    assert (await ask_review(operator, review(freed, old=old, operation="UPDATE")))["allowed"]
    assert not read
    for changed in ({**freed, "spec": {"host": "refused"}}, {**old, "spec": {"host": "refused"}}):
        assert not (await ask_review(operator, review(changed, old=old, operation="UPDATE")))["allowed"]
    assert (await ask_review(operator, review({**old, "status": {}}, old=old, operation="UPDATE")))["allowed"]
    assert read == ["refused", "refused", "a.example"]


async def test_a_mark_of_deletion_in_the_new_object_alone_counts_for_nothing() -> None:
    operator, _ = strict()
    marked = site(host="refused")
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for old in (None, site(host="refused")):
        assert not (await ask_review(operator, review(marked, old=old, operation="UPDATE")))["allowed"]


def nest(levels: int, **fields: Any) -> bytes:
    """Return a review of an object with an open field that is nested."""
    body = json.dumps(review({**site(), "more": "?", **fields})).encode()
    return body.replace(b'"?"', b'{"a":' * levels + b"1" + b"}" * levels)


@pytest.mark.parametrize("levels", [1_100, 9_999])
async def test_nesting_is_no_way_around_a_policy(levels: int) -> None:
    operator, read = strict()
    (path,) = operator.webhook_app().paths
    for host in ("refused", "a.example"):
        answer = await post(operator.webhook_app(), path, nest(levels, spec={"host": host}))
        assert answer.json()["response"]["allowed"] is (host == "a.example")
    assert read == ["refused", "a.example"]


class OpenSpec(CamelStruct, kw_only=True):
    host: str
    more: Any = None


class Open(WebsiteV1, version="v3"):
    spec: OpenSpec  # type: ignore[assignment]


@pytest.mark.parametrize("levels", [1_100, 9_999])
@pytest.mark.parametrize("resource", [Open, "websites.hooks.example.com"], ids=["class", "name"])
async def test_nested_objects_are_patched(levels: int, resource: Any) -> None:
    operator = Operator("sites")

    @operator.mutate(resource)
    def fill(review: AdmissionReview[Any]) -> Any:
        obj = review.object
        if isinstance(obj, KubeObject):
            fields = obj.to_dict()
            fields["spec"]["host"] = "b.example"
            return fields
        obj.spec.host = "b.example"
        return obj

    (path,) = operator.webhook_app().paths
    asked = review(
        {**site(), "apiVersion": "hooks.example.com/v3", "spec": {"host": "a.example", "more": "?"}}
    )
    body = json.dumps(asked).encode().replace(b'"?"', b'{"a":' * levels + b"1" + b"}" * levels)
    response = (await post(operator.webhook_app(), path, body)).json()["response"]
    wanted = apply_patch(asked["request"]["object"], response)
    assert wanted["spec"] == {"host": "b.example", "more": "?"}, "it patches nothing else"
