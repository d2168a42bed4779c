"""Resources of the test's own namespace, on either server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import Client, KubeObject, Resource

from ..clusters import Cluster

Configmap = Callable[..., dict[str, Any]]


@pytest.fixture
def configmaps(client: Client) -> Resource[KubeObject]:
    return Resource(client, "v1", "configmaps", kind="ConfigMap")


@pytest.fixture
def configmap(cluster: Cluster) -> Configmap:
    """Makes a config map of the test's namespace."""

    def make(name: str, *finalizers: str, **data: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "namespace": cluster.namespace}
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        return {"metadata": metadata, "data": data}

    return make
