"""The built-in resources are those of the real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aioinformer.testing.storage import builtin
from aioinformer.testing.storage.builtin import BUILTIN, NAMESPACES, PODS
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.resources import resources_of

FILE = Path(builtin.__file__).parents[1] / "schema" / "resources.json"


def test_what_discovery_tells_of_pods() -> None:
    assert (PODS.kind, PODS.namespaced, PODS.short_names, PODS.categories) == ("Pod", True, ("po",), ("all",))
    assert "status" in PODS.subresources
    assert not NAMESPACES.namespaced


def test_every_name_is_that_of_one_resource() -> None:
    assert len({(resource.group_resource, resource.version) for resource in BUILTIN}) == len(BUILTIN)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
def test_file_equals_the_real_servers_discovery(control_plane: ControlPlane) -> None:
    listed = json.loads(FILE.read_bytes())
    groups = {resource["group"] for resource in listed}
    served = [resource for resource in resources_of(control_plane) if resource["group"] in groups]
    assert sorted(listed, key=str) == sorted(served, key=str), "run `make schema`"


def test_verbs_equal_the_real_servers() -> None:
    verbs = {
        (resource["group"], resource["version"], resource["plural"]): resource["verbs"]
        for resource in json.loads(FILE.read_bytes())
    }
    for resource in BUILTIN:
        assert list(resource.verbs) == verbs[resource.group, resource.version, resource.plural]
