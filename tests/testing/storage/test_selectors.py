"""Label and field selectors."""

from __future__ import annotations

import pytest

from aioinformer.testing import FieldLabel, ResourceType, StatusError
from aioinformer.testing.storage.builtin import BUILTIN, NAMESPACES, PODS
from aioinformer.testing.storage.selectors import FieldSelector

CONFIGMAPS = next(resource for resource in BUILTIN if resource.kind == "ConfigMap")
JOBS = next(resource for resource in BUILTIN if resource.kind == "Job")
LABELS = {"app": "web", "tier": "front", "size": "5", "example.com/empty": ""}


def matches(selector: str, namespace: str = "ns", name: str = "a", phase: str = "Running") -> bool:
    values = {"spec.nodeName": "n1", "status.phase": phase}
    fields = tuple(values.get(field.label, field.default) for field in PODS.fields)
    return FieldSelector.parse(selector, PODS).matches(namespace, name, fields)


def test_field_selectors_compare_names_and_fields() -> None:
    assert matches("")
    assert matches("metadata.name=a,metadata.namespace=ns")
    assert not matches("metadata.name=b")
    assert matches("spec.nodeName==n1,status.phase!=Failed")
    assert not matches("status.phase!=Running")
    assert matches("spec.hostNetwork=false")
    assert matches("spec.nodeName=") is False


def test_field_values_are_unescaped() -> None:
    selector = FieldSelector.parse(r"metadata.name=a\,b\=c\\", CONFIGMAPS)
    assert selector.matches("", "a,b=c\\", ())
    assert selector.exact("metadata.name") == "a,b=c\\"


@pytest.mark.parametrize(
    ("resource", "selector", "message"),
    [
        (PODS, "spec.nope=1", "field label not supported: spec.nope"),
        (NAMESPACES, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (
            CONFIGMAPS,
            "data.a=1",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (JOBS, "nope=1", 'field label "nope" not supported for Job'),
        (PODS, "nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        (PODS, "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
        (PODS, "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        (PODS, "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_field_selectors_that_are_refused(resource: ResourceType, selector: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        FieldSelector.parse(selector, resource)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_a_custom_resource_offers_the_fields_that_it_names() -> None:
    caves = ResourceType("example.com", "v1", "caves", "Cave", fields=(FieldLabel("spec.depth"),))
    assert FieldSelector.parse("spec.depth=3", caves).matches("ns", "a", ("3",))
    assert FieldSelector.parse("metadata.namespace=ns", caves).matches("ns", "a", ("3",))
    with pytest.raises(StatusError, match=r"field label not supported: spec\.width"):
        FieldSelector.parse("spec.width=3", caves)
