"""Resources of the test's own namespace, on either server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from aioinformer import Client, KubeObject, Resource
from tests import samples

from ..clusters import Cluster

Configmap = Callable[..., dict[str, Any]]


@pytest.fixture
def configmaps(client: Client) -> Resource[KubeObject]:
    return Resource(client, "v1", "configmaps", kind="ConfigMap")


@pytest.fixture
def configmap(cluster: Cluster) -> Configmap:
    """Makes a config map of the test's namespace."""
    return partial(samples.configmap, namespace=cluster.namespace)
