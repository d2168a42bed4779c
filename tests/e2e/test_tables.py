"""The embedded server shows an object in `kubectl get` as the real one does: columns, cells and their order."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from aioinformer.testing import APIServer
from aioinformer.testing.cluster.seeds import seeded_objects
from aioinformer.testing.storage.builtin import BUILTIN

from .api import API, Object, Resource
from .clusters import KubernetesCluster
from .conftest import REAL
from .shown import OBJECTS, place

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]  # no code of ours asks

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # in the selector of a Job
AGE = re.compile(r"\b(\d+[smhdy])+\b|\d{4}-\d\d-\d\dT[0-9:]+Z")
SERVED = {
    f"{resource_type.api_version}/{resource_type.plural}": resource_type
    for resource_type in BUILTIN
    if resource_type.stored
}
WITHOUT_ENDPOINT = ("v1/endpoints", "discovery.k8s.io/v1/endpointslices")  # of the session's server
SEEDED = seeded_objects("2020-01-01T00:00:00Z")


class Pair:
    """The real server, and an embedded one that gets the same objects."""

    def __init__(self, server: APIServer, embedded: API, real: KubernetesCluster) -> None:
        self.server = server
        self.embedded = embedded
        self.real = real

    async def add(self, resource: Resource, obj: Object, number: int) -> str:
        """Create an object on the real server, and copy it from there."""
        namespace = self.real.namespace
        name = f"{namespace}-{number}" if not resource.namespaced else f"shown-{number}"
        metadata = {"name": name, **obj.get("metadata", {})}
        await self.real.create(resource, {**place(obj, namespace), "metadata": metadata})
        if "status" in obj:
            await self.real.patch(resource, name, {"status": obj["status"]}, subresource="/status")
        self.copy(resource, await self.real.api.do("GET", resource.path(namespace, name)))
        return name

    def copy(self, resource: Resource, obj: Object) -> None:
        metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
        self.server.create(resource.api_version, resource.plural, {**obj, "metadata": metadata})

    async def tables(self, path: str, **query: str) -> tuple[Object, Object]:
        ours = await self.embedded.do("GET", path, query=query, accept=TABLE)
        return _mask(ours), _mask(await self.real.api.do("GET", path, query=query, accept=TABLE))


@pytest.fixture
async def pair(real: KubernetesCluster) -> AsyncIterator[Pair]:
    async with (
        APIServer(token="administrator", control_plane=False) as server,
        API(server.url, server.token, None) as embedded,
    ):
        yield Pair(server, embedded, real)


@pytest.mark.parametrize("path", OBJECTS)
async def test_objects_are_shown_alike(path: str, pair: Pair) -> None:
    resource = _resource(path)
    for number, obj in enumerate(OBJECTS[path]):
        name = await pair.add(resource, obj, number)
        ours, theirs = await pair.tables(resource.path(pair.real.namespace, name), includeObject="None")
        assert ours == theirs, obj


@pytest.mark.parametrize("path", SEEDED)
async def test_seeded_objects_are_shown_alike(path: str, pair: Pair) -> None:
    resource = _resource(path)
    ours, theirs = await pair.tables(resource.path(), includeObject="None")
    names = [row["cells"][0] for row in ours["rows"]]
    theirs["rows"] = [row for row in theirs["rows"] if row["cells"][0] in names]
    if path in WITHOUT_ENDPOINT:
        del ours["rows"], theirs["rows"]
    assert ours == theirs


def _resource(path: str) -> Resource:
    api_version, _, plural = path.rpartition("/")
    return Resource(api_version, plural, SERVED[path].namespaced)


def _mask(table: Object) -> Object:
    """Return a table without versions and with ages masked."""
    for row in table["rows"]:
        row["cells"] = [
            AGE.sub("AGE", UID.sub("UID", cell)) if isinstance(cell, str) else cell for cell in row["cells"]
        ]
    return {name: value for name, value in table.items() if name != "metadata"}
