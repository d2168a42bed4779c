"""How the real server writes the objects of each resource (its strategies), found by writing an example of each."""

from __future__ import annotations

import uuid
from typing import Any

from tests.e2e.shown import OBJECTS, place
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.probes import Answer, ask

Object = dict[str, Any]

_RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["absent"]}
_MUTATION = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
_VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
_EXAMPLES: dict[str, Object] = {
    **{path: objects[0] for path, objects in OBJECTS.items()},
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies": {
        "spec": {
            "matchConstraints": {"resourceRules": [_RULE]},
            "reinvocationPolicy": "Never",
            "mutations": [_MUTATION],
        }
    },
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings": {"spec": {"policyName": "absent"}},
    "apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "examples.strategies.example.com"},
        "spec": {
            "group": "strategies.example.com",
            "scope": "Cluster",
            "names": {"plural": "examples", "kind": "Example"},
            "versions": [_VERSION],
        },
    },
    "apiregistration.k8s.io/v1/apiservices": {
        "metadata": {"name": "v1.strategies.example.com"},
        "spec": {
            "group": "strategies.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "service": {"name": "absent", "namespace": "default"},
            "insecureSkipTLSVerify": True,
        },
    },
    "autoscaling/v1/horizontalpodautoscalers": {
        "spec": {
            "maxReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "absent"},
        }
    },
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": {
        "spec": {"priorityLevelConfiguration": {"name": "catch-all"}}
    },
    "networking.k8s.io/v1/ipaddresses": {
        "metadata": {"name": "192.0.2.9"},
        "spec": {"parentRef": {"resource": "services", "name": "absent", "namespace": "default"}},
    },
    "networking.k8s.io/v1/servicecidrs": {"spec": {"cidrs": ["192.0.2.0/24"]}},
    "storage.k8s.io/v1/volumeattributesclasses": {"driverName": "example.com", "parameters": {"a": "b"}},
}


class Strategies:
    """Writes examples, in a namespace of its own."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._name = f"strategies-{uuid.uuid4().hex[:8]}"
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self._name}})

    def of(self, api_version: str, plural: str, *, namespaced: bool) -> Object:
        """Return what the server does in writes of a resource, by the names that a ResourceType has for it."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        path = f"{root}/namespaces/{self._name}/{plural}" if namespaced else f"{root}/{plural}"
        warnings = [text.split('"')[1] for text in self._ask("GET", path).warnings]
        example = _EXAMPLES.get(f"{api_version}/{plural}")
        if example is None:  # componentstatuses cannot be created
            return {"warning": "".join(warnings)}
        given = {name: part for name, part in place(example, self._name).items() if name != "status"}
        metadata = {"name": f"{self._name}-example", **given.get("metadata", {})}
        answer = self._ask("POST", path, {**given, "metadata": metadata})
        assert answer.status == 201, answer.body
        created = answer.body
        unversioned = {
            name: value for name, value in created["metadata"].items() if name != "resourceVersion"
        }
        updated = self._ask("PUT", f"{path}/{metadata['name']}", {**created, "metadata": unversioned})
        absent = {**given, "metadata": {**metadata, "name": f"absent-{metadata['name']}"}}
        missed = self._ask("PUT", f"{path}/absent-{metadata['name']}?dryRun=All", absent)
        deleted = self._ask("DELETE", f"{path}/{metadata['name']}", {"propagationPolicy": "Background"})
        return {
            "generation": "generation" in created["metadata"],
            "create_on_update": missed.status != 404,
            "unconditional_update": updated.status == 200,
            "returns_deleted": deleted.body["kind"] != "Status",
            "warning": "".join(warnings),
        }

    def _ask(self, method: str, path: str, body: Object | None = None) -> Answer:
        server = self._control_plane
        return ask(method, f"{server.url}{path}", body, ca_file=server.ca_file, token=server.token)
