"""Declarations of webhooks: mistakes, and the objects for the server."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any, assert_type

import pytest

from aioinformer import ConfigError, KubeObject
from aioinformer.operator import AdmissionReview, Context, CustomResource, Kind, Operator, WebhookApp
from aioinformer.typed import CamelStruct, Scale

from .kinds import SpecV1, WebsiteV1, WebsiteV2

PEM = "-----BEGIN CERTIFICATE-----\n"


def nothing(review: Any) -> None: ...


def up(old: WebsiteV1) -> WebsiteV2:
    raise NotImplementedError


def test_mistakes_are_reported_at_once() -> None:
    operator = Operator("sites")
    options: Any = {"operations": ["CREATE", "PATCH", "DELETE"], "timeout": 31, "failure_policy": "fail"}
    with pytest.raises(ConfigError) as raised:
        operator.mutate(WebsiteV1, **options)(lambda: None)  # type: ignore[arg-type, misc]
    text = str(raised.value)
    for mistake in (
        "sites: mutate(WebsiteV1) <lambda> has",
        "mutate is called with (review)",
        "operations has 'PATCH': use CREATE, UPDATE, DELETE",
        "mutate has the operation DELETE: there is nothing to change; use validate",
        "timeout must be 1 to 30 whole seconds, as the API server asks, not 31",
        "failure_policy must be 'Fail' or 'Ignore', not 'fail'",
    ):
        assert mistake in text


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda operator: operator.validate("leases")(nothing), "can stop every leader election"),
        (lambda operator: operator.validate("leases.coordination.k8s.io")(nothing), "every leader election"),
        (lambda operator: operator.mutate("podz")(nothing), "'podz' is no built-in resource"),
        (lambda operator: operator.validate(3)(nothing), "a resource must be a name or a class, not 3"),
        (
            lambda operator: operator.validate(Kind(WebsiteV1))(nothing),
            "a webhook takes a class or a name, not Kind(WebsiteV1): pass WebsiteV1",
        ),
        (
            lambda operator: operator.mutate(Kind("pods", label_selector="a=b"))(nothing),
            "a webhook takes a class or a name, not Kind('pods', label_selector='a=b'): pass 'pods'",
        ),
        (lambda operator: operator.validate("pods", name="A B")(nothing), "lower-case letters, digits"),
        (
            lambda operator: operator.validate("pods")(lambda review: None),
            "'<lambda>.pods.sites' must have lower",
        ),
        (
            lambda operator: operator.validate(WebsiteV1, subresource="scale")(nothing),
            "the objects of websites/scale are no WebsiteV1: name it by the text 'websites.hooks.example.com'",
        ),
        (
            lambda operator: operator.validate("pods", match_conditions=["a"])(nothing),
            "match_conditions must be a dict, not ['a']",
        ),
        (
            lambda operator: operator.validate("pods", object_selector="a=b")(nothing),
            "object_selector must be a dict, not 'a=b'",
        ),
        (lambda operator: operator.validate("pods", operations="CREATE")(nothing), "must be a list such as"),
        (
            lambda operator: [operator.validate("pods")(nothing) for _ in range(2)],
            "another webhook is named nothing.pods.sites already: pass name=",
        ),
        (lambda operator: operator.convert(WebsiteV1, SpecV1)(up), "takes two CustomResource classes"),
        (lambda operator: operator.convert(WebsiteV1, WebsiteV1)(up), "are the same version v1"),
        (
            lambda operator: [operator.convert(WebsiteV1, WebsiteV2)(up) for _ in range(2)],
            "a conversion from WebsiteV1 to WebsiteV2 already",
        ),
    ],
)
def test_mistakes(declare: Callable[[Operator], object], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        declare(Operator("sites"))
    assert message in str(raised.value)


def test_conversions_of_different_kinds_are_refused() -> None:
    class Other(CustomResource, group="other.example.com", version="v1"):
        spec: SpecV1

    with pytest.raises(ConfigError, match="different kinds: convert between versions of one kind"):
        Operator("sites").convert(WebsiteV1, Other)(lambda old: Other(old.spec))


def test_missing_conversions_are_named() -> None:
    operator = Operator("sites")
    operator.convert(WebsiteV1, WebsiteV2)(up)
    with pytest.raises(
        ConfigError,
        match=r"no way from WebsiteV2 to WebsiteV1: add @operator.convert\(WebsiteV2, WebsiteV1\)",
    ):
        operator.webhook_app()


def test_configurations_leave_out_the_operators_own_namespace() -> None:
    operator = Operator("sites")
    operator.validate(
        WebsiteV1,
        operations=["DELETE"],
        failure_policy="Ignore",
        timeout=3,
        side_effects=True,
        match_conditions={"not-me": "request.userInfo.username != 'me'"},
        object_selector={"matchLabels": {"a": "b"}},
    )(nothing)
    operator.mutate("pods", name="fill", namespace_selector={"matchLabels": {"team": "x"}})(nothing)
    operator.mutate("certificates.cert-manager.io", subresource="status")(nothing)
    mutating, validating = operator.webhook_configurations(
        service="system/sites", ca_bundle=PEM, annotations={"x": "y"}
    )
    own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["system"]}
    both = {**own, "values": ["system", "kube-system"]}
    assert validating == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "sites", "annotations": {"x": "y"}},
        "webhooks": [
            {
                "name": "nothing.websites.hooks.example.com",
                "clientConfig": {
                    "service": {
                        "namespace": "system",
                        "name": "sites",
                        "port": 443,
                        "path": "/validate/nothing.websites.hooks.example.com",
                    },
                    "caBundle": base64.b64encode(PEM.encode()).decode(),
                },
                "rules": [
                    {
                        "apiGroups": ["hooks.example.com"],
                        "apiVersions": ["v1"],
                        "resources": ["websites"],
                        "operations": ["DELETE"],
                        "scope": "Namespaced",
                    }
                ],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "NoneOnDryRun",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 3,
                "namespaceSelector": {"matchExpressions": [own]},
                "objectSelector": {"matchLabels": {"a": "b"}},
                "matchConditions": [{"name": "not-me", "expression": "request.userInfo.username != 'me'"}],
            }
        ],
    }
    pods, certificates = mutating["webhooks"]
    assert pods["name"] == "fill.pods.sites"
    assert pods["namespaceSelector"] == {"matchLabels": {"team": "x"}, "matchExpressions": [both]}
    assert certificates["rules"][0]["apiVersions"] == ["*"]
    assert certificates["rules"][0]["resources"] == ["certificates/status"]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"kubernetes.io/metadata.name": "system"}},
        {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "system"]}
            ]
        },
    ],
)
def test_selecting_the_operators_own_namespace_is_refused(selector: dict[str, Any]) -> None:
    operator = Operator("sites")
    operator.validate(WebsiteV1, namespace_selector=selector)(nothing)
    for reached in ({"service": "system/sites"}, {"url": "https://a", "namespace": "system"}):
        with pytest.raises(ConfigError, match="selects the operator's own namespace system"):
            operator.webhook_configurations(**reached)  # type: ignore[arg-type]


NAME = "kubernetes.io/metadata.name"


@pytest.mark.parametrize(
    ("resource", "options", "excluded"),
    [
        ("pods", {}, ["kube-system"]),
        ("deployments.apps", {}, ["kube-system"]),
        ("networkpolicies.networking.k8s.io", {}, ["kube-system"]),
        ("pods", {"kube_system": True}, []),
        ("pods", {"namespace_selector": {"matchLabels": {NAME: "kube-system"}}}, []),
        (WebsiteV1, {}, []),
        ("certificates.cert-manager.io", {}, []),
        (WebsiteV1, {"kube_system": False}, ["kube-system"]),
    ],
)
def test_webhooks_for_kubernetes_own_kinds_leave_out_kube_system(
    resource: Any, options: Any, excluded: list[str]
) -> None:
    operator = Operator("sites")
    operator.validate(resource, **options)(nothing)
    for reached, own in (({"url": "https://a"}, []), ({"service": "system/sites"}, ["system"])):
        (configuration,) = operator.webhook_configurations(**reached)  # type: ignore[arg-type]
        (webhook,) = configuration["webhooks"]
        expressions = webhook.get("namespaceSelector", {}).get("matchExpressions", [])
        assert [name for expression in expressions for name in expression["values"]] == own + excluded


class ScaledStatus(CamelStruct, kw_only=True):
    replicas: int = 0


class Scaled(CustomResource, group="hooks.example.com", version="v1", scale=Scale()):
    """A kind with a scale subresource."""

    spec: SpecV1
    status: ScaledStatus | None = None


@pytest.mark.parametrize("resource", [Scaled, "deployments.apps"])
def test_a_webhook_that_is_not_asked_about_the_scale_says_so(
    resource: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aioinformer.operator.webhooks")
    operator = Operator("sites")
    operator.validate(resource)(nothing)
    operator.validate("configmaps")(nothing)
    operator.webhook_app()
    (line,) = caplog.messages
    assert "/scale, by which kubectl scale and autoscalers change the replicas" in line
    name = line.partition("validate(")[2].partition(",")[0].strip("'")
    operator.validate(name, subresource="scale", name="scaling")(nothing)
    caplog.clear()
    operator.webhook_app()
    assert not caplog.messages


@pytest.mark.parametrize(
    ("reached", "message"),
    [
        ({}, "give one of them"),
        ({"service": "a/b", "url": "https://a"}, "give one of them"),
        ({"service": "a"}, "service must be 'namespace/name', not 'a'"),
        ({"service": "a/B"}, "service must be a name"),
        ({"url": "http://a"}, "must begin with https://"),
        ({"url": "https://a", "ca_bundle": "/tmp/ca.crt"}, "must be certificates in PEM"),
    ],
)
def test_how_webhooks_are_reached_is_checked(reached: Any, message: str) -> None:
    operator = Operator("sites")
    operator.validate(WebsiteV1)(nothing)
    with pytest.raises(ConfigError, match=message):
        operator.webhook_configurations(**reached)


def test_definitions_have_the_conversion_and_store_the_newest_version() -> None:
    operator = Operator("sites", events=False)
    operator.convert(WebsiteV2, WebsiteV1)(lambda old: WebsiteV1(SpecV1(host=old.spec.hosts[0])))
    operator.convert(WebsiteV1, WebsiteV2)(up)
    (definition,) = operator.definitions(url="https://10.0.0.1:9443/", ca_bundle=PEM.encode())
    assert definition["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "url": "https://10.0.0.1:9443/convert/websites.hooks.example.com",
                "caBundle": base64.b64encode(PEM.encode()).decode(),
            },
            "conversionReviewVersions": ["v1"],
        },
    }
    assert [(version["name"], version["storage"]) for version in definition["spec"]["versions"]] == [
        ("v1", False),
        ("v2", True),
    ]
    (plain,) = operator.definitions()
    assert "conversion" not in plain["spec"]


def test_what_type_checkers_know() -> None:
    operator = Operator("typed")

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        assert_type(review.object, WebsiteV1)
        assert_type(review.old, WebsiteV1 | None)
        assert_type(review.user.groups, list[str])

    @operator.validate("pods", operations=["DELETE"])
    def keep(review: AdmissionReview[KubeObject], context: Context) -> None:
        assert_type(review.object, KubeObject)

    @operator.mutate(WebsiteV1)
    async def fill(review: AdmissionReview[WebsiteV1]) -> WebsiteV1 | None:
        return review.object

    @operator.mutate(WebsiteV1)
    def change(review: AdmissionReview[WebsiteV1], context: Context) -> None:
        review.object.spec.replicas = 1

    @operator.mutate("pods")
    async def label(review: AdmissionReview[KubeObject]) -> dict[str, Any]:
        return review.object.to_dict()

    @operator.convert(WebsiteV1, WebsiteV2)
    async def newer(old: WebsiteV1) -> WebsiteV2:
        raise NotImplementedError

    @operator.convert(WebsiteV2, WebsiteV1)
    def older(old: WebsiteV2) -> WebsiteV1:
        raise NotImplementedError

    @operator.validate(WebsiteV1)  # type: ignore[arg-type]
    def wrong(review: AdmissionReview[WebsiteV2]) -> None: ...

    @Operator("other").convert(WebsiteV1, WebsiteV2)  # type: ignore[arg-type]
    def wrong_way(old: WebsiteV2) -> WebsiteV1:
        raise NotImplementedError

    assert_type(operator.has_webhooks, bool)
    assert WebhookApp is type(Operator("none").webhook_app())
