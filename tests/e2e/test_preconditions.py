"""Server-side apply with preconditions, which ``apply_owned`` and ``--install-crds`` rely on: on both servers."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client, ConflictError, Resource
from aioinformer.operator.owning import ABSENT

from .clusters import Cluster

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Object = dict[str, Any]

PODS = {"containers": [{"name": "web", "image": "example.com/web"}]}
WORKLOAD = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": PODS},
}
KINDS: dict[str, Object] = {
    "configmaps": {},
    "secrets": {},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "pods": {"spec": PODS},
    "deployments": {"spec": WORKLOAD},
    "jobs": {"spec": {"template": {"spec": {**PODS, "restartPolicy": "Never"}}}},
    "leases": {},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "ingresses": {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
    "roles": {},
    "serviceaccounts": {},
}


@pytest.mark.parametrize("plural", KINDS)
async def test_a_version_that_no_object_has_creates_and_never_changes(
    cluster: Cluster, client: Client, plural: str
) -> None:
    resource = Resource(client, plural, dict)
    name = {"name": "first", "namespace": cluster.namespace}
    made = await resource.apply(
        {**KINDS[plural], "metadata": {**name, "resourceVersion": ABSENT}}, force=True
    )
    version = made["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError):
        labels = {**name, "resourceVersion": ABSENT, "labels": {"a": "b"}}
        await resource.apply({**KINDS[plural], "metadata": labels}, force=True)
    changed = {**name, "resourceVersion": version, "labels": {"a": "c"}}
    await resource.apply({**KINDS[plural], "metadata": changed}, force=True)
    with pytest.raises(ConflictError):
        await resource.apply({**KINDS[plural], "metadata": changed}, force=True)


async def test_a_uid_does_not_create(cluster: Cluster, client: Client) -> None:
    metadata = {"name": "missing", "namespace": cluster.namespace, "uid": "gone"}
    with pytest.raises(ConflictError, match=r"uid mismatch: .* no existing object was found"):
        await Resource(client, "secrets").apply({"metadata": metadata}, force=True)
