"""Every object that a real API server stores gets into the cache, whatever it contains."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client import V1ConfigMap, V1ControllerRevision
from lightkube.models.apps_v1 import ControllerRevision
from lightkube.models.core_v1 import ConfigMap

from aioinformer import KubeObject, ListWatch, SharedIndexInformer, wait_for_cache_sync
from aioinformer.client.transport import PROTOBUF, Change
from aioinformer.testing import eventually

from ..objects.protobuf.samples import message
from .clusters import KubernetesCluster
from .conftest import REAL

pytestmark = REAL

DEPTH = 9_000
NESTED = b'{"f:a":' * DEPTH + b"{}" + b"}" * DEPTH


class Named(msgspec.Struct):
    class Metadata(msgspec.Struct):
        name: str
        namespace: str = ""

    metadata: Metadata


CONFIG_MAPS: tuple[Any, ...] = (KubeObject, dict, Named, V1ConfigMap, ConfigMap)

if find_spec("pydantic"):
    import pydantic

    class Managed(pydantic.BaseModel):
        time: datetime | None = None

    class ModelMetadata(pydantic.BaseModel):
        name: str
        namespace: str
        managedFields: list[Managed] = []  # noqa: N815

    class Model(pydantic.BaseModel):
        metadata: ModelMetadata

    CONFIG_MAPS = (*CONFIG_MAPS, Model)


@asynccontextmanager
async def read(
    cluster: KubernetesCluster, api_version: str, plural: str, *object_types: Any
) -> AsyncIterator[list[SharedIndexInformer[Any]]]:
    """Informers of one collection, by each object type, from JSON and from protobuf."""
    async with cluster.client() as client, AsyncExitStack() as stack:
        informers: list[SharedIndexInformer[Any]] = []
        for object_type, protobuf in itertools.product(object_types, (False, True)):
            source = ListWatch.for_resource(
                client, api_version, plural, namespace=cluster.namespace, protobuf=protobuf
            )
            informers.append(await stack.enter_async_context(SharedIndexInformer(source, object_type)))
        assert await wait_for_cache_sync(*informers, timeout=30)
        yield informers


async def until_all_have(informers: list[SharedIndexInformer[Any]], key: str) -> None:
    await eventually(lambda: all(informer.indexer.list_keys() == [key] for informer in informers), within=20)
    assert [informer.state.rejected for informer in informers] == [0] * len(informers)


async def create(cluster: KubernetesCluster, path: str, body: bytes) -> bytes:
    async with cluster.client() as client:
        return await client.send(Change("POST", body), path)


async def delete_all(cluster: KubernetesCluster, path: str) -> None:
    """Delete a collection: other tests read the whole cluster with parsers that fail on these objects."""
    async with cluster.client() as client:
        await client.send(Change("DELETE"), path)


def object_hiding(name: str) -> bytes:
    managed = (
        b'[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":%s}]'
        % NESTED
    )
    return b'{"metadata":{"name":"%s","managedFields":%s}}' % (name.encode(), managed)


async def test_object_nested_deeply_is_in_every_cache(real: KubernetesCluster) -> None:
    path = f"/api/v1/namespaces/{real.namespace}/configmaps"
    async with read(real, "v1", "configmaps", *CONFIG_MAPS) as informers:
        assert (await create(real, path, object_hiding("watched"))).count(b"f:a") == DEPTH
        await until_all_have(informers, f"{real.namespace}/watched")
    async with read(real, "v1", "configmaps", *CONFIG_MAPS) as informers:
        await until_all_have(informers, f"{real.namespace}/watched")
    await delete_all(real, path)


async def test_time_of_the_year_0_in_managed_fields_is_in_every_cache(real: KubernetesCluster) -> None:
    """A server keeps the time of an entry that another manager applied."""
    path = f"/api/v1/namespaces/{real.namespace}/configmaps"
    async with read(real, "v1", "configmaps", *CONFIG_MAPS) as informers, real.client() as client:
        created = KubeObject.from_bytes(
            await create(real, path, b'{"metadata":{"name":"a"},"data":{"x":"1"}}')
        )
        entry = {
            **{"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "0000-01-01T00:00:00Z"},
            **{"fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}},
        }
        managed = [*created["metadata"].get("managedFields", []), entry]
        patch = msgspec.json.encode({"metadata": {"managedFields": managed}})
        change = Change("PATCH", patch, "application/merge-patch+json")
        changed = KubeObject.from_bytes(await client.send(change, f"{path}/a"))
        assert b"0000-01-01" in changed.raw
        for informer in informers:
            assert await informer.wait_for(changed, timeout=20) is not None
        await until_all_have(informers, changed.key)
    await delete_all(real, path)


async def test_annotation_that_is_no_text_is_in_every_cache(real: KubernetesCluster) -> None:
    """Protobuf carries any bytes; in JSON the server writes U+FFFD."""
    metadata = message((1, "a"), (3, real.namespace), (12, message((1, "b"), (2, b"c\xff"))))
    type_meta = message((1, "v1"), (2, "ConfigMap"))
    body = b"k8s\0" + message((1, type_meta), (2, message((1, metadata))))
    path = f"/api/v1/namespaces/{real.namespace}/configmaps"
    async with read(real, "v1", "configmaps", *CONFIG_MAPS) as informers:
        async with real.client() as client:
            await client.send(Change("POST", body, PROTOBUF), path)
        await until_all_have(informers, f"{real.namespace}/a")
        for informer in informers[:4]:
            obj: Any = informer.store.get_by_key(f"{real.namespace}/a")
            assert obj["metadata"]["annotations"] == {"b": "c\ufffd"}
    await delete_all(real, path)


async def test_half_a_surrogate_pair_is_in_every_cache(real: KubernetesCluster) -> None:
    path = f"/apis/apps/v1/namespaces/{real.namespace}/controllerrevisions"
    body = rb'{"metadata":{"name":"a"},"revision":1,"data":{"x":"\ud800\n"}}'
    types = (KubeObject, dict, Named, V1ControllerRevision, ControllerRevision)
    async with read(real, "apps/v1", "controllerrevisions", *types) as informers:
        assert rb"\ud800" in await create(real, path, body)
        await until_all_have(informers, f"{real.namespace}/a")
    await delete_all(real, path)


@pytest.mark.parametrize("name", [b"a\xff", b"b\xff" * 100], ids=["short", "long"])
async def test_name_that_is_no_text_is_in_every_cache(real: KubernetesCluster, name: bytes) -> None:
    """RBAC's names may be anything but ``/`` and ``%``, and protobuf carries any bytes."""
    role = message((1, message((1, name), (3, real.namespace))))
    type_meta = message((1, "rbac.authorization.k8s.io/v1"), (2, "Role"))
    body = b"k8s\0" + message((1, type_meta), (2, role))
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{real.namespace}/roles"
    async with read(real, "rbac.authorization.k8s.io/v1", "roles", KubeObject, dict) as informers:
        async with real.client() as client:
            await client.send(Change("POST", body, PROTOBUF), path)
        await until_all_have(informers, f"{real.namespace}/{name.decode(errors='replace')}")
    await delete_all(real, path)
