"""The state of a server as a file: all objects, with their uids and resourceVersions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.errors import TestingError
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import DEFINITIONS
from aioinformer.testing.storage.codec import load, store

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType

KIND = "EmbeddedServerState"
"""The ``kind`` of the file."""


class _State(msgspec.Struct, rename="camel"):
    kind: str
    resource_version: int
    objects: list[Object]


def is_state(data: bytes) -> bool:
    """Return whether a file's content is a saved state."""
    return data.startswith(b'{"kind":"%s"' % KIND.encode())


def save_state(cluster: Cluster) -> bytes:
    """Return the state of a cluster as JSON, with an object on each line."""
    stored_types = _stored_types(cluster)
    objects = [
        msgspec.json.encode(load(stored_types[name], stored))
        for name, collection in sorted(cluster.storage.collections())
        if name in stored_types
        for stored in map(collection.objects.__getitem__, collection.keys)
    ]
    head = f'{{"kind":"{KIND}","resourceVersion":{cluster.resource_version},"objects":[\n'
    return head.encode() + b",\n".join(objects) + b"\n]}\n"


def restore_state(cluster: Cluster, data: bytes) -> int:
    """Replace the state of a cluster by a saved one.

    Every version before the saved one expires, so that a client with an older cache lists again.

    Returns:
        The number of objects.

    Raises:
        TestingError: The data is no such state, or an object in it is of a kind that the server does not know.
    """
    try:
        state = msgspec.json.decode(data, type=_State)
        if state.kind != KIND:
            raise TestingError(f"its kind is {state.kind!r}, not {KIND!r}")
        objects = sorted(state.objects, key=_rank)
        _check_kinds(cluster, objects)
        _remove_others(cluster, set(map(_place, objects)))
        for obj in objects:
            _put(cluster, _resource_of(cluster, obj), obj)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise TestingError(f"not the state of an embedded API server: {error}") from error
    cluster.storage.resource_version = max(cluster.resource_version, state.resource_version)
    cluster.storage.expire_history(step=False)
    return len(state.objects)


def _stored_types(cluster: Cluster) -> dict[tuple[str, str], ResourceType]:
    return {
        (resource.stored_group, resource.plural): resource.stored_type
        for resource in cluster.registry
        if resource.stored and resource.conversion is None
    }


def _rank(obj: Object) -> tuple[bool, int]:
    """Return a sort key: definitions first, which the others need, then by version."""
    return obj["kind"] != DEFINITIONS.kind, int(obj["metadata"]["resourceVersion"])


def _check_kinds(cluster: Cluster, objects: Iterable[Object]) -> None:
    """Check that the server knows each kind, or has its definition in the state; definitions come first."""
    known = {(resource.group, resource.kind) for resource in cluster.registry}
    for obj in objects:
        group, kind, key = _place(obj)
        if (group, kind) not in known:
            raise TestingError(
                f"{kind} {key.strip('/')}: the server does not know the kind in {obj['apiVersion']}"
            )
        if kind == DEFINITIONS.kind:
            known.add((obj["spec"]["group"], obj["spec"]["names"]["kind"]))


def _place(obj: Object) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    group = obj["apiVersion"].rpartition("/")[0]
    return group, obj["kind"], f"{metadata.get('namespace', '')}/{metadata['name']}"


def _remove_others(cluster: Cluster, wanted: set[tuple[str, str, str]]) -> None:
    """Remove what a new server has and the state has not."""
    for name, resource in _stored_types(cluster).items():
        for stored in list(cluster.storage.collection(*name).objects.values()):
            if (resource.group, resource.kind, f"{stored.namespace}/{stored.name}") not in wanted:
                cluster.remove(resource, stored)


def _resource_of(cluster: Cluster, obj: Object) -> ResourceType:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind, name = obj["kind"], obj["metadata"]["name"]
    for resource in cluster.registry:
        if (resource.group, resource.version, resource.kind) == (group, version, kind):
            return resource
    raise TestingError(f"{kind} {name}: the server does not serve {obj['apiVersion']}")


def _put(cluster: Cluster, resource: ResourceType, obj: Object) -> None:
    """Store an object as it is, with its version."""
    new = store(resource, obj)
    old = cluster.find(resource, new.namespace, new.name)
    cluster.record(resource, new.resource_version, new, old)
