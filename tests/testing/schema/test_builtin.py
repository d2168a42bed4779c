"""The schemas of the built-in kinds say what Kubernetes' own code says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from aioinformer.testing.schema import builtin as module
from aioinformer.testing.schema.builtin import conditional_defaults, kubernetes_version, node_of
from aioinformer.testing.schema.node import Node
from aioinformer.testing.storage.builtin import BUILTIN
from tests.kubernetes.binaries import MODULE
from tests.kubernetes.controlplane import ControlPlane

from .minimal import MINIMAL


def node_at(api_version: str, kind: str, path: str) -> Node:
    node = node_of(api_version, kind)
    for name in path.split("."):
        assert node is not None
        node = (node.items or node).properties[name]
    assert node is not None
    return node


def test_schemas_are_of_the_kubernetes_version_in_go_mod() -> None:
    wanted = re.search(r"k8s.io/kubernetes v(\S+)", (MODULE / "go.mod").read_text())
    assert wanted is not None
    assert kubernetes_version() == wanted[1], "run `make schema`"


def test_file_equals_what_kubernetes_code_says(kubernetes_binaries: Path) -> None:
    said = subprocess.check_output([kubernetes_binaries / "builtin-schema"])
    assert Path(module.__file__).with_name("types.json").read_bytes() == said, "run `make schema`"


@pytest.mark.parametrize("resource", BUILTIN, ids=lambda resource: f"{resource.group}.{resource.kind}")
def test_every_built_in_kind_has_a_schema(resource: Any) -> None:
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    node = node_of(version, resource.kind)
    assert node is not None
    assert {"apiVersion", "kind", "metadata"} <= set(node.properties)


def test_other_kinds_have_none() -> None:
    assert node_of("v1", "Cave") is node_of("example.com/v1", "Pod") is None


def test_fields_of_a_deployment() -> None:
    replicas = node_at("apps/v1", "Deployment", "spec.replicas")
    assert (replicas.type, replicas.format, replicas.go) == ("integer", "int32", "int32")
    assert replicas.default == 1
    assert replicas.nullable
    template = node_at("apps/v1", "Deployment", "spec.template")
    assert template.go == "v1.PodTemplateSpec"
    assert template.zero == {}
    containers = template.properties["spec"].properties["containers"]
    assert (containers.go, containers.merge_key, containers.merges) == ("[]v1.Container", "name", True)
    assert (containers.list_type, containers.list_keys) == ("map", ("name",))
    assert "containers" in template.properties["spec"].required
    assert containers.items is not None
    assert containers.items.properties["resources"].zero == {}


def test_fields_with_forms_of_their_own() -> None:
    assert node_at("v1", "Service", "spec.ports.targetPort").format == "int-or-string"
    assert node_at("v1", "Pod", "metadata.creationTimestamp").format == "time"
    assert node_at("v1", "Secret", "data").go == "map[string][]uint8"
    assert node_at("v1", "PersistentVolumeClaim", "spec.resources.requests").go == "v1.ResourceList"
    assert node_at("coordination.k8s.io/v1", "Lease", "spec.renewTime").format == "microTime"
    assert node_at("v1", "Pod", "spec.volumes").retains_keys
    assert node_at("rbac.authorization.k8s.io/v1", "Role", "rules").zero is None
    assert node_at("v1", "Pod", "spec.volumes.emptyDir").within == "VolumeSource"
    assert "TCP" in node_at("v1", "Service", "spec.ports.protocol").enum


def test_types_that_contain_themselves() -> None:
    path = "spec.versions.schema.openAPIV3Schema"
    node = node_at("apiextensions.k8s.io/v1", "CustomResourceDefinition", path)
    items = node.properties["properties"].items
    assert items is not None
    assert items.properties is node.properties


def test_a_default_of_one_kind_is_not_one_of_others() -> None:
    assert node_at("v1", "Pod", "spec.enableServiceLinks").default is True
    assert node_at("apps/v1", "Deployment", "spec.template.spec.enableServiceLinks").default is msgspec.UNSET
    assert node_at("batch/v1", "Job", "spec.suspend").default is False
    assert node_at("batch/v1", "CronJob", "spec.jobTemplate.spec.suspend").default is msgspec.UNSET


def test_defaults_with_conditions_are_only_named() -> None:
    assert "imagePullPolicy" in conditional_defaults()["core/v1.Container"]
    assert node_at("v1", "Pod", "spec.containers.imagePullPolicy").default is msgspec.UNSET


def unknown_fields(node: Node, value: Any, path: str) -> Iterator[str]:
    """Yield the paths in a value that have no Node, or one of another type."""
    expected = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    if value is not None and not isinstance(value, expected.get(node.type, object)):
        yield f"{path}: {value!r} is not of type {node.type}"
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            yield from unknown_fields(node.items, item, path)
    elif isinstance(value, dict) and node.type:
        for name, inner in value.items():
            field = node.properties.get(name) or node.items
            if field is None:
                yield f"{path}.{name} is unknown"
            else:
                yield from unknown_fields(field, inner, f"{path}.{name}")


def test_schemas_know_all_fields_of_kubernetes_own_examples(kubernetes_testdata: Path) -> None:
    known = 0
    for path in sorted((kubernetes_testdata / "HEAD").glob("*.json")):
        example = json.loads(path.read_bytes())
        node = node_of(example.get("apiVersion", ""), example.get("kind", ""))
        if node is not None:
            assert not list(unknown_fields(node, example, example["kind"]))
            known += 1
    assert known > 50


def missing_values(node: Node, value: Any, sent: Any, path: str) -> Iterator[str]:
    """Yield the fields that the schema says the server fills in, and that it did not."""
    if isinstance(value, list) and node.items is not None:
        known = sent if isinstance(sent, list) and len(sent) == len(value) else [None] * len(value)
        for item, item_sent in zip(value, known, strict=True):
            yield from missing_values(node.items, item, item_sent, path)
    if not isinstance(value, dict):
        return
    for name, field in node.properties.items():
        below, field_sent = f"{path}.{name}", sent.get(name) if isinstance(sent, dict) else None
        if name not in value:
            if field.default is not msgspec.UNSET or field.zero is not msgspec.UNSET:
                yield f"{below} is missing"
        elif field.default is not msgspec.UNSET and field_sent is None and value[name] != field.default:
            yield f"{below}: {value[name]!r} is not the default {field.default!r}"
        else:
            yield from missing_values(field, value[name], field_sent, below)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.parametrize("plural", MINIMAL)
async def test_real_server_fills_in_the_defaults_and_zeros(
    plural: str, control_plane: ControlPlane, kubernetes_namespace: str
) -> None:
    sent = MINIMAL[plural]
    version, kind = sent["apiVersion"], sent["kind"]
    prefix = f"apis/{version}" if "/" in version else f"api/{version}"
    resource = next(
        resource_type
        for resource_type in BUILTIN
        if resource_type.kind == kind and version.endswith(resource_type.version)
    )
    scope = f"namespaces/{kubernetes_namespace}/" if resource.namespaced else ""
    url = f"{control_plane.url}/{prefix}/{scope}{plural}?dryRun=All"
    headers = {"Authorization": f"Bearer {control_plane.token}"}
    connector = aiohttp.TCPConnector(ssl=control_plane.ssl_context())
    async with (
        aiohttp.ClientSession(connector=connector, headers=headers) as http,
        http.post(url, json=sent) as answer,
    ):
        created = await answer.json()
        assert answer.status == 201, created["message"]
    node = node_of(version, kind)
    assert node is not None
    assert not list(missing_values(node, created, sent, kind))
