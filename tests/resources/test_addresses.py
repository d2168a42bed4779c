"""Paths of objects; no target can change the path's collection."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject
from aioinformer.listwatch.collection import Collection
from aioinformer.resources.addresses import Addresses

PODS = Addresses(Collection("v1", "pods"), True)
CAVES = Addresses(Collection("example.com/v1", "caves"), True)
NODES = Addresses(Collection("v1", "nodes"), False)


def test_paths() -> None:
    assert PODS.of("default/a") == "/api/v1/namespaces/default/pods/a"
    assert CAVES.of("default/a", "status") == "/apis/example.com/v1/namespaces/default/caves/a/status"
    assert NODES.of("system:node") == "/api/v1/nodes/system%3Anode"
    assert PODS.of("default/a", "../b") == "/api/v1/namespaces/default/pods/a/..%2Fb"
    assert PODS.within("") == "/api/v1/pods"


def test_keys_of_keys_and_objects() -> None:
    obj = {"metadata": {"name": "a", "namespace": "default"}}
    assert (
        PODS.key_of(obj) == PODS.key_of(KubeObject.from_dict(obj)) == PODS.key_of("default/a") == "default/a"
    )
    assert PODS.for_new(obj) == ("/api/v1/namespaces/default/pods", "default/a")
    generated = {"metadata": {"generateName": "a-", "namespace": "default"}}
    assert PODS.for_new(generated) == ("/api/v1/namespaces/default/pods", "default/")
    assert NODES.for_new({"metadata": {"generateName": "a-"}}) == ("/api/v1/nodes", "")


def test_a_missing_namespace_is_advised_for_keys_and_for_objects() -> None:
    with pytest.raises(ConfigError, match=r"'a' has no namespace: pass 'namespace/name';"):
        PODS.key_of("a")
    obj = {"metadata": {"name": "a"}}
    for ask in (PODS.key_of, PODS.for_new):
        with pytest.raises(ConfigError, match=r"'a' has no namespace: set its metadata\.namespace;"):
            ask(obj)


@pytest.mark.parametrize(
    "target",
    [
        "a",
        "/a",
        "default/",
        "a/b/c",
        "default/..",
        "default/.",
        "../a",
        "default/a%2f",
        "default/\ud800",
        "default/a\nb",
        "",
        {},
        {"metadata": {}},
        None,
    ],
)
def test_invalid_pod_names_are_refused(target: Any) -> None:
    with pytest.raises(ConfigError, match=r"pods"):
        PODS.key_of(target)


def test_cluster_scoped_custom_resources_need_namespaced_false() -> None:
    for ask in (CAVES.key_of, CAVES.for_new):
        with pytest.raises(ConfigError, match=r"caves\S* are namespaced, and 'a' .* with namespaced=False$"):
            ask({"metadata": {"name": "a"}})
    elsewhere = Addresses(CAVES.collection, False)
    with pytest.raises(ConfigError, match=r"caves\S* are cluster-scoped \(namespaced=False\), but 'a' has"):
        elsewhere.key_of("default/a")
    with pytest.raises(ConfigError, match=r"nodes are cluster-scoped, but 'a' has the namespace 'default'"):
        NODES.key_of("default/a")


@pytest.mark.parametrize("target", ["default/a", "..", "", "a/b/c"])
def test_invalid_node_names_are_refused(target: str) -> None:
    with pytest.raises(ConfigError, match=r"nodes"):
        NODES.key_of(target)


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "..", "namespace": "x"}},
        {"metadata": {"name": "a", "namespace": ".."}},
    ],
)
def test_objects_are_created_in_their_own_collection(obj: Any) -> None:
    with pytest.raises(ConfigError):
        PODS.for_new(obj)
