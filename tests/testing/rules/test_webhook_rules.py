"""What the server says against configurations of webhooks, as kube-apiserver 1.36.3 does."""

from __future__ import annotations

import pytest

from aioinformer.testing.objects import Object

from .test_spec_rules import faults

RULE: Object = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
HOOK: Object = {
    "name": "a.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://example.com/x"},
    "rules": [RULE],
}
FORM = "; desired format: https://host[/path]"


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({}, []),
        ({"rules": []}, []),
        ({"sideEffects": "NoneOnDryRun", "timeoutSeconds": 30}, []),
        ({"clientConfig": {"service": {"namespace": "a", "name": "b", "path": "/a/b/"}}}, []),
        ({"name": ""}, ["name: Required value"]),
        (
            {"name": "a.b"},
            ['name: Invalid value: "a.b": should be a domain with at least three segments separated by dots'],
        ),
        ({"sideEffects": ""}, ["sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        (
            {"sideEffects": "Some"},
            ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
        ),
        (
            {"admissionReviewVersions": []},
            ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
        ),
        (
            {"admissionReviewVersions": ["v2"]},
            ['admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1'],
        ),
        (
            {"admissionReviewVersions": ["v1", "v1"]},
            ['admissionReviewVersions[1]: Invalid value: "v1": duplicate version'],
        ),
        (
            {"timeoutSeconds": 31},
            ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        ),
        (
            {"clientConfig": {}},
            ["clientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            {"clientConfig": {"url": "http://example.com"}},
            [f"clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"],
        ),
        (
            {"clientConfig": {"url": "https:///x"}},
            [f'clientConfig.url: Invalid value: "": host must be specified{FORM}'],
        ),
        (
            {"clientConfig": {"url": "https://u:p@x?a=b#f"}},
            [
                'clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL',
                'clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
                'clientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL',
            ],
        ),
        (
            {"clientConfig": {"service": {"namespace": "a", "name": "b", "port": 70000, "path": "/a//b"}}},
            [
                "clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, "
                "inclusive",
                'clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty',
            ],
        ),
        (
            {"rules": [{}]},
            [
                f"rules[0].{name}: Required value"
                for name in ("operations", "apiGroups", "apiVersions", "resources")
            ],
        ),
        (
            {"rules": [RULE | {"apiGroups": ["*", "apps"]}]},
            [
                'rules[0].apiGroups: Invalid value: ["*","apps"]: if \'*\' is present, must not specify other API '
                "groups"
            ],
        ),
        (
            {"rules": [RULE | {"resources": ["pods/*", "pods/status"]}]},
            [
                "rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify "
                "pods/status"
            ],
        ),
        ({"rules": [RULE | {"resources": ["*", "pods/status"]}]}, []),
        (
            {"matchConditions": [{"name": "a", "expression": " "}, {"name": "a", "expression": "true"}]},
            [
                "matchConditions[0].expression: Required value",
                'matchConditions[1].name: Duplicate value: "a"',
            ],
        ),
        (
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            [
                "objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' "
                "or 'NotIn'"
            ],
        ),
    ],
)
def test_webhook_is_refused_with_causes(kind: str, change: Object, causes: list[str]) -> None:
    assert faults(kind, {"webhooks": [HOOK | change]}) == [f"webhooks[0].{cause}" for cause in causes]


def test_match_condition_that_does_not_compile_is_refused() -> None:
    pytest.importorskip("cel_expr_python")
    conditions = [{"name": "number", "expression": "1"}, {"name": "text", "expression": "1 +"}]
    number, text = faults(
        "ValidatingWebhookConfiguration", {"webhooks": [HOOK | {"matchConditions": conditions}]}
    )
    assert number == (
        'webhooks[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int'
    )
    assert text.startswith(
        'webhooks[0].matchConditions[1].expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: '
    )


def test_two_webhooks_with_one_name_are_refused() -> None:
    duplicate = ['webhooks[1].name: Duplicate value: "a.example.com"']
    assert faults("MutatingWebhookConfiguration", {"webhooks": [HOOK, HOOK]}) == duplicate


def test_webhook_of_an_update_is_validated() -> None:
    causes = faults(
        "MutatingWebhookConfiguration", {"webhooks": [HOOK]}, {"webhooks": [HOOK | {"timeoutSeconds": 0}]}
    )
    assert [cause.partition(":")[0] for cause in causes] == ["webhooks[0].timeoutSeconds"]


CONVERSION: Object = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]}


@pytest.mark.parametrize(
    ("conversion", "causes"),
    [
        ({"strategy": "Webhook", "webhook": CONVERSION}, []),
        (
            {"strategy": "X"},
            ['strategy: Unsupported value: "X": supported values: "None", "Webhook"'],
        ),
        (
            {"strategy": "Webhook"},
            [
                "webhookClientConfig: Required value: required when strategy is set to Webhook",
                "conversionReviewVersions: Required value",
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": CONVERSION | {"clientConfig": {}}},
            ["webhookClientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            {"strategy": "None", "webhook": CONVERSION},
            [
                f"{name}: Forbidden: should not be set when strategy is not set to Webhook"
                for name in ("webhookClientConfig", "conversionReviewVersions")
            ],
        ),
    ],
)
def test_conversion_of_a_definition_is_refused_with_causes(conversion: Object, causes: list[str]) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "caves", "kind": "Cave"}
    spec = {
        "group": "b.c",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
        "conversion": conversion,
    }
    faults_found = faults("CustomResourceDefinition", {"metadata": {"name": "caves.b.c"}, "spec": spec})
    assert faults_found == [f"spec.conversion.{cause}" for cause in causes]
