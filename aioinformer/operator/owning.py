"""Applying an object that an owner owns, without taking it from another owner."""

from __future__ import annotations

from typing import Any, TypeVar

from ..client.error_mapping import add_detail
from ..errors import AlreadyOwnedError, ConflictError, DecodeError, ForbiddenError, NotFoundError, OwnerError
from ..objects.keys import namespace_of, resource_version_of, uid_of
from ..objects.kube_object import OwnerReference
from ..resources import CachedResource, Resource
from .metadata import NAME, controller_of, owner_reference, read_metadata

T = TypeVar("T")

Object = dict[str, Any]

ABSENT = "1"
"""A resourceVersion that no object has: with it, an apply creates an object, and a server from 1.23 on refuses to
change an existing one."""
TRIES = 5
"""As often as the API server itself tries a patch again whose object changes meanwhile."""


def require_possible_owner(child: str, owner: Any, namespace: str, *, is_namespaced: bool) -> None:
    """Check that an object may have this owner: one in its namespace, or a cluster-scoped one.

    Args:
        child: The object, for the message.
        owner: The owner.
        namespace: The object's namespace.
        is_namespaced: Whether such objects live in namespaces.

    Raises:
        OwnerError: It may not.
    """
    home = namespace_of(owner)
    if not home or (is_namespaced and namespace == home):
        return
    if is_namespaced:
        why = f"its owner is in the namespace {home}, and Kubernetes deletes objects whose owner is in another one"
    else:
        why = (
            f"it is cluster-scoped, its owner {home}/{read_metadata(owner, NAME)} is in a namespace, and Kubernetes "
            "deletes cluster-scoped objects with such an owner"
        )
    raise OwnerError(
        f"{child}: {why}: apply it without an owner, by apply() of its resource, and delete it in a cleanup"
    )


async def apply_as_owner(
    resource: Resource[T] | CachedResource[T],
    stored: Resource[Object],
    obj: Object,
    owner: Any,
    *,
    manager: str,
    adopt: bool,
) -> T:
    """Apply an object, unless another owner controls it, or it has no controller and was made by others.

    The server checks that the object is still at the version at which that was decided, or still missing. While the
    cache is current, this takes one request.

    Args:
        resource: Where to write it.
        stored: The same collection, read at the server with all fields.
        obj: The object.
        owner: The owner.
        manager: The field manager of the writes.
        adopt: Whether to take over an object that has no controller.

    Raises:
        AlreadyOwnedError: It belongs to others.
        ConflictError: It changed during each try.
        AioInformerError: As for ``Resource.apply``.
    """
    metadata = {**obj["metadata"], "ownerReferences": [owner_reference(owner)]}
    key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    version = _version_in_cache(resource, key, uid_of(owner))
    for tries_left in reversed(range(TRIES)):
        if version is None:
            version = await _version_at_server(stored, key, owner, manager, adopt=adopt)
        try:
            return await resource.apply(
                {**obj, "metadata": {**metadata, "resourceVersion": version}}, force=True
            )
        except ConflictError:
            if not tries_left:
                raise
            version = None
    raise AssertionError("unreachable")


def _version_in_cache(resource: Resource[T] | CachedResource[T], key: str, uid: str) -> str | None:
    """Return the version of a cached object that the owner controls, ABSENT for none; None: ask the server."""
    if not isinstance(resource, CachedResource):
        return None
    try:
        child = resource.informer.indexer.get_by_key(key)
    except DecodeError:
        return None
    if child is None:
        return ABSENT
    controller = controller_of(child)
    is_ours = controller is not None and controller.uid == uid
    return (resource_version_of(child) or None) if is_ours else None


async def _version_at_server(
    stored: Resource[Object], key: str, owner: Any, manager: str, *, adopt: bool
) -> str:
    """Return the version of an object that may be applied, ABSENT for a missing one.

    Raises:
        AlreadyOwnedError: It belongs to others.
    """
    try:
        child = await stored.get(key)
    except NotFoundError:
        return ABSENT
    except ForbiddenError as error:
        add_detail(error, "apply_owned reads an object before it changes it: add get to the verbs")
        raise
    controller = controller_of(child)
    is_ours = controller.uid == uid_of(owner) if controller else adopt or _is_applied_by(manager, child)
    if not is_ours:
        raise AlreadyOwnedError(key, child.get("kind", ""), controller, _advice(controller, child, owner))
    return resource_version_of(child)


def _is_applied_by(manager: str, child: Object) -> bool:
    """Return whether a field manager has applied an object: it made it, or took it over."""
    return any(
        (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "")
        == (manager, "Apply", "")
        for entry in child["metadata"].get("managedFields") or ()
    )


def _advice(controller: OwnerReference | None, child: Object, owner: Any) -> str:
    if controller is None:
        managers = {entry.get("manager", "") for entry in child["metadata"].get("managedFields") or ()}
        made_by = f" ({', '.join(sorted(managers))})" if managers else ""
        return f"others made it{made_by}: give yours another name, or take it over by apply_owned(..., adopt=True)"
    if (controller.kind, controller.name) == (owner_reference(owner)["kind"], read_metadata(owner, NAME)):
        return "that is an earlier object of the owner's name: Kubernetes deletes its objects, and a retry makes yours"
    return "two owners must not share it: give one of them an object of another name"
