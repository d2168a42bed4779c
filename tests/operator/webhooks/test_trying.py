"""Unit tests of webhooks, by ``operator.review``."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from aioinformer import Client, ConfigError, KubeObject
from aioinformer.errors import StatusCause
from aioinformer.operator import AdmissionReview, Context, Denied, Operator, Request, UserInfo, Uses
from aioinformer.testing import APIServer
from aioinformer.typed import Metadata

from .kinds import SpecV1, SpecV2, WebsiteV1, WebsiteV2, site


def make_guarded() -> Operator:
    operator = Operator("sites")

    @operator.validate(WebsiteV1, operations=["CREATE", "UPDATE", "DELETE"])
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        spec = review.object.spec
        review.warn(f"{review.user.username} has {spec.replicas} replicas")
        if review.operation == "DELETE" and spec.replicas:
            raise Denied("it has replicas")
        if spec.host == "taken":
            review.deny("is taken", field="spec.host")
        if review.old is not None and review.old.spec.host != spec.host:
            review.deny("cannot change", field="spec.host")

    @operator.mutate(WebsiteV1)
    def fill(review: AdmissionReview[WebsiteV1]) -> None:
        if review.object.spec.host == "refused":
            raise Denied("no")
        review.object.spec.replicas = review.object.spec.replicas or 3
        review.object.metadata.labels["example.com/filled"] = "a/b~c"

    return operator


def site_of_host(host: str, **spec: Any) -> WebsiteV1:
    return WebsiteV1(SpecV1(host=host, **spec), metadata=Metadata(name="a", namespace="default"))


async def test_a_review_says_what_would_be_stored() -> None:
    obj = site_of_host("a")
    outcome = await make_guarded().review(obj, user=UserInfo(username="ann"))
    assert (outcome.allowed, outcome.message, outcome.causes) == (True, "", ())
    assert outcome.warnings == ("ann has 3 replicas",)
    assert (outcome.object.spec.replicas, outcome.object.metadata.labels) == (
        3,
        {"example.com/filled": "a/b~c"},
    )
    assert obj == site_of_host("a"), "the argument stays as it is"


async def test_a_scale_is_reviewed() -> None:
    operator = Operator("sites")

    @operator.validate("deployments", subresource="scale", operations=["UPDATE"])
    def check(review: AdmissionReview[KubeObject]) -> None:
        if review.object["spec"]["replicas"] > 3:
            raise Denied("is too many", field="spec.replicas")

    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", "namespace": "default"},
    }
    for replicas, allowed in ((3, True), (4, False)):
        asked = {**scale, "spec": {"replicas": replicas}}
        outcome = await operator.review(asked, old=asked, subresource="scale")
        assert outcome.allowed is allowed


async def test_a_denial_has_its_causes() -> None:
    outcome = await make_guarded().review(site_of_host("taken"), old=site_of_host("a"))
    assert not outcome.allowed
    assert outcome.message == "spec.host: is taken; spec.host: cannot change"
    assert outcome.causes == (
        StatusCause("spec.host", "FieldValueInvalid", "is taken"),
        StatusCause("spec.host", "FieldValueInvalid", "cannot change"),
    )


async def test_a_deletion_is_reviewed() -> None:
    outcome = await make_guarded().review(site_of_host("a", replicas=1), operation="DELETE")
    assert (outcome.allowed, outcome.message, outcome.object) == (
        False,
        "it has replicas",
        site_of_host("a", replicas=1),
    )
    assert (await make_guarded().review(site_of_host("a"), operation="DELETE")).allowed


async def test_a_mutating_webhook_that_denies_is_the_last_one() -> None:
    outcome = await make_guarded().review(site_of_host("refused"))
    assert (outcome.message, outcome.warnings) == ("no", ())


async def test_objects_are_dicts_too_and_keep_unknown_fields() -> None:
    obj = site(more="x")
    outcome = await make_guarded().review(obj)
    assert outcome.object["spec"] == {"host": "a.example", "replicas": 3, "more": "x"}
    assert "replicas" not in obj["spec"]
    typed = await make_guarded().review(KubeObject.from_dict(obj))
    assert typed.object.metadata.labels == {"example.com/filled": "a/b~c"}


async def test_an_object_that_does_not_fit_is_denied() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        assert review.object.spec.host == "not reached"

    outcome = await operator.review(site(host=1))
    assert [cause.field for cause in outcome.causes] == ["spec.host"]


async def test_a_failure_is_its_own_error() -> None:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await operator.review(site_of_host("a"))


async def test_an_object_that_no_webhook_is_called_for_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="no webhook is called for CREATE of Website"):
        await make_guarded().review(WebsiteV2(SpecV2(hosts=[])))
    with pytest.raises(ConfigError, match="no webhook is called for UPDATE of Website/status"):
        await make_guarded().review(site_of_host("a"), old=site_of_host("a"), subresource="status")


async def test_a_resource_is_named_by_plural_and_group() -> None:
    operator = Operator("sites")

    @operator.validate("websites.hooks.example.com")
    def check(review: AdmissionReview[KubeObject]) -> None:
        raise Denied(review.object["spec"]["host"])

    assert (await operator.review(site())).message == "a.example"
    assert (await operator.review(site_of_host("b"))).message == "b"


async def test_a_context_reads_what_the_operator_declares() -> None:
    operator = Operator("sites", uses=[Uses("configmaps"), Uses("secrets", ("get",))])

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject]) -> None:
        raise AssertionError("controllers do not run")

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1], context: Context) -> None:
        secret = await context.uncached("secrets").get("default/owner")
        for config_map in await context.resource("configmaps").list("default"):
            review.deny(f"{secret.name} has {config_map.name}", field="spec.host")

    with pytest.raises(ConfigError, match=r"operator.review\(obj, client=client\)"):
        await operator.review(site_of_host("a"))
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "secrets", {"metadata": {"name": "owner"}})
        assert (await operator.review(site_of_host("a"), client=client)).allowed
        server.create("v1", "configmaps", {"metadata": {"name": "taken"}})
        outcome = await operator.review(site_of_host("a"), client=client)
    assert outcome.message == "spec.host: owner has taken"


OPTIMISED = """
import asyncio
from aioinformer.operator import Operator
from tests.operator.webhooks.kinds import WebsiteV1, site

operator = Operator("sites")
operator.validate(WebsiteV1, name="check")(lambda review: review.object and None)
reviewed = asyncio.run(operator.review({**site(), "spec": {"host": 1}}))
print(reviewed.message)
"""


def test_an_object_that_does_not_fit_is_denied_without_asserts() -> None:
    run = subprocess.run([sys.executable, "-O", "-c", OPTIMISED], capture_output=True, text=True, check=True)
    assert run.stdout == "spec.host: Expected `str`, got `int`\n"
