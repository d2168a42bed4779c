"""Objects of built-in kinds as Go reads and writes them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing.objects import Object
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.decode import read_object
from aioinformer.testing.schema.node import Node
from aioinformer.testing.schema.scalars import UnreadableError


def schema(api_version: str, kind: str) -> Node:
    node = node_of(api_version, kind)
    assert node is not None
    return node


def container(**fields: Any) -> Object:
    """Return a container as it is read."""
    obj = {"spec": {"containers": [{"name": "a", **fields}]}}
    read, _ = read_object(schema("v1", "Pod"), obj)
    (only,) = read["spec"]["containers"]
    return dict(only)


def test_defaults_and_zeros_are_filled_in() -> None:
    assert container(ports=[{"containerPort": 80}]) == {
        "name": "a",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def test_an_empty_value_is_a_missing_one_except_for_pointers() -> None:
    read, _ = read_object(
        schema("apps/v1", "Deployment"),
        {"spec": {"replicas": 0, "minReadySeconds": 0, "paused": False, "selector": {}}},
    )
    spec = read["spec"]
    assert (spec["replicas"], spec["selector"]) == (0, {})
    assert {"minReadySeconds", "paused"}.isdisjoint(spec)


def test_null_is_a_missing_value() -> None:
    assert container(image=None, tty=None, ports=None) == container()
    assert container(env=[None])["env"] == [{"name": ""}]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (0.5, "500m"),
        (1, "1"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000", "1k"),
        ("0.0000000001", "1m"),
        ("500Ki", "500Ki"),
        ("0.5Ki", "512"),
        ("12e6", "12e6"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("-1500m", "-1500m"),
        ("-0.0000000001", "-1m"),
        ("100E", "100E"),
        ("8Ei", "9223372036854775807"),
        ("1e30", "1e30"),
        ("9.3e18", "9300e15"),
        ("123456789012345678901", "123456789012345678901"),
    ],
)
def test_quantities_are_canonical(given: object, written: str) -> None:
    assert container(resources={"limits": {"x": given}})["resources"] == {"limits": {"x": written}}


def test_only_quantities_of_resources_are_rounded_to_thousandths() -> None:
    volume = {"name": "a", "emptyDir": {"sizeLimit": "0.0000000001"}}
    read, _ = read_object(schema("v1", "Pod"), {"spec": {"volumes": [volume]}})
    assert read["spec"]["volumes"][0]["emptyDir"] == {"sizeLimit": "1n"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": 5}, "number into Go struct field Container.spec.containers.name of type string"),
        ({"ports": "x"}, "field Container.spec.containers.ports of type []v1.ContainerPort"),
        (
            {"ports": [{"containerPort": "80"}]},
            "field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        ({"ports": [{"containerPort": 80.5}]}, "cannot unmarshal number 80.5 into"),
        ({"ports": [{"containerPort": 2**31}]}, "cannot unmarshal number 2147483648 into"),
        ({"tty": "true"}, "of type bool"),
        ({"resources": {"limits": {"cpu": "x"}}}, "quantities must match the regular expression"),
        ({"resources": {"limits": {"cpu": "1kk"}}}, "unable to parse quantity's suffix"),
        ({"resources": {"limits": {"cpu": "1e999999999"}}}, "unable to parse quantity's suffix"),
        ({"env": [{"valueFrom": "x"}]}, "field EnvVar.spec.containers.env.valueFrom of type v1.EnvVarSource"),
        ({"env": ["x"]}, "field Container.spec.containers.env of type v1.EnvVar"),
    ],
)
def test_values_of_the_wrong_type_are_refused(fields: Object, why: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        container(**fields)
    assert why in str(refused.value)


def test_unknown_fields_are_dropped() -> None:
    obj = {"spec": {"containers": [{"name": "a", "imag": "x"}]}}
    read, unknown = read_object(schema("v1", "Pod"), obj)
    assert "imag" not in read["spec"]["containers"][0]
    assert [*unknown] == ["spec.containers[0].imag"]


def test_unknown_fields_of_metadata_are_found_in_an_object_without_others() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controler": True}
    _, unknown = read_object(schema("v1", "Pod"), {"metadata": {"ownerReferences": [owner]}, "spec": {}})
    assert [*unknown] == ["metadata.ownerReferences[0].controler"]


def test_reading_again_changes_nothing() -> None:
    for api_version, kind in (
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("batch/v1", "CronJob"),
    ):
        once, _ = read_object(schema(api_version, kind), {"metadata": {"name": "a"}})
        assert read_object(schema(api_version, kind), once)[0] == once
