"""The objects that a program follows, and who changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.api import API, CONFIGMAPS, MERGE, PODS, Object, Resource
from tests.e2e.clusters import pod_manifest
from tests.samples import configmap

if TYPE_CHECKING:
    from .worlds import World

Tell = Callable[[str, str | None], None]
"""Takes the name of an object and the version by which a program knows it now; None if it knows that it is gone."""

VARIABLES = 30
"""Environment variables of a pod, of which JupyterHub and Airflow set about so many."""

DELETION: Object = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}


class Objects:
    """Objects of a namespace, which a program knows by their resourceVersions.

    Attributes:
        variables: Environment variables that the program needs besides.
        troubles: What else may happen to this program.
    """

    variables: Mapping[str, str] = {}
    troubles: Mapping[str, Callable[[World], Awaitable[None]]] = {}

    def __init__(self, api: API, namespace: str, resource: Resource, make: Callable[[str], Object]) -> None:
        self._api = api
        self._namespace = namespace
        self._resource = resource
        self._make = make
        self._changes = 0

    async def create(self, name: str) -> str:
        """Create an object; return its version."""
        made = await self._api.do("POST", self._resource.path(self._namespace), self._make(name))
        return _version_of(made)

    async def change(self, name: str) -> str:
        """Change an annotation; return the new version."""
        self._changes += 1
        patch = {"metadata": {"annotations": {"changes": str(self._changes)}}}
        path = self._resource.path(self._namespace, name)
        return _version_of(await self._api.do("PATCH", path, patch, content_type=MERGE))

    async def delete(self, name: str) -> None:
        """Delete an object."""
        await self._api.do("DELETE", self._resource.path(self._namespace, name), DELETION)

    async def versions(self) -> dict[str, str]:
        """Return what the server has: the version of each object by name."""
        items = (await self._api.do("GET", self._resource.path(self._namespace)))["items"]
        versions = {item["metadata"]["name"]: _version_of(item) for item in items}
        versions.pop("kube-root-ca.crt", None)
        return versions

    def telling(self, tell: Tell) -> AbstractAsyncContextManager[Any]:
        """During the block, tell what the program knows, if it does not print that itself."""
        return nullcontext()

    async def give_up(self, names: set[str]) -> None:
        """Expect nothing more of these objects, where a new process of the program cannot know them either."""


def _version_of(made: Object) -> str:
    return str(made["metadata"]["resourceVersion"])


def _pod(name: str) -> Object:
    """Return a pod as KubeSpawner and Airflow select them."""
    made = pod_manifest(name, labels={"component": "singleuser-server", "airflow-worker": "1"})
    made["metadata"]["annotations"] = {"dag_id": "d", "task_id": "t", "run_id": "r", "try_number": "1"}
    env = [{"name": f"VARIABLE_{number}", "value": f"{name}-{number}"} for number in range(VARIABLES)]
    made["spec"]["containers"][0]["env"] = env
    return made


OpenObjects = Callable[[API, str, Path, Path], AbstractAsyncContextManager[Objects]]
"""Takes the API, the namespace, the Python of the program's environment, and a folder for files."""


def _open(resource: Resource, make: Callable[[str], Object]) -> OpenObjects:
    @asynccontextmanager
    async def open_objects(api: API, namespace: str, python: Path, folder: Path) -> AsyncIterator[Objects]:
        yield Objects(api, namespace, resource, make)

    return open_objects


open_configmaps, open_pods = _open(CONFIGMAPS, configmap), _open(PODS, _pod)
