"""Owners of fields in several versions of a kind: what a write means in each of them, as in structured-merge-diff.

A configuration that was applied in one version, and is applied again in another, is pruned in the first. So a
conversion webhook gets partial objects: without the fields that were applied, and perhaps without its spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.apply.fieldsets import PARENT, Path, paths, remove, with_parents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.node import Node

    Convert = Callable[[ResourceType, ResourceType, Object], Awaitable[Object | None]]


class Versioned(NamedTuple):
    """An object in a version of its kind."""

    resource: ResourceType
    obj: Object


class Versions:
    """The versions of a kind.

    Args:
        resources: The kind's resource in each version, by apiVersion.
        schema_of: Returns the schema of a resource.
        convert: Converts an object.
    """

    def __init__(
        self,
        resources: Mapping[str, ResourceType],
        schema_of: Callable[[ResourceType], Node],
        convert: Convert,
    ) -> None:
        self._resources = resources
        self._schema_of = schema_of
        self._convert = convert

    def has(self, api_version: str) -> bool:
        """Return whether the server has a version."""
        return api_version in self._resources

    async def fields_before_and_after(
        self, resource: ResourceType, api_version: str, old: Object, new: Object
    ) -> tuple[dict[Path, Any], dict[Path, Any]]:
        """Return the fields of an object before and after a write, in a version.

        Raises:
            StatusError: 500 if the conversion webhook fails.
        """
        before = await self._in(api_version, Versioned(resource, without_owners(old)))
        after = await self._in(api_version, Versioned(resource, without_owners(new)))
        return self._paths(before), self._paths(after)

    async def prune(
        self,
        resource: ResourceType,
        merged: Object,
        last: tuple[str, set[Path]],
        owned: Iterable[tuple[str, set[Path]]],
    ) -> Object:
        """Return a merged object without the fields that its manager no longer applies, and that no other owns.

        Args:
            resource: The object's type.
            merged: The object, with the configuration.
            last: The version in which the manager applied before, and the fields.
            owned: The fields of all owners, and their versions; also of this configuration.

        Raises:
            StatusError: 500 if the conversion webhook fails.
        """
        version, applied = last
        if not self.has(version):
            return merged
        metadata = merged["metadata"]
        whole = await self._in(version, Versioned(resource, without_owners(merged)))
        pruned = self._without(whole, with_parents(applied))
        by_version: dict[str, set[Path]] = {version: set()}
        for owner_version, fields in owned:
            by_version.setdefault(owner_version, set()).update(fields)
        there = whole
        for name, fields in by_version.items():
            if self.has(name):
                there, pruned = await self._in(name, there), await self._in(name, pruned)
                kept = self._members(pruned) | with_parents(fields)
                pruned = self._without(there, self._members(there) - kept, kept)
        pruned = await self._in(version, pruned)
        dangling = (self._members(whole) - self._members(pruned)) & with_parents(applied)
        pruned = await self._in(resource.api_version, self._without(whole, dangling))
        return {
            **pruned.obj,
            "metadata": {**pruned.obj["metadata"], "managedFields": metadata.get("managedFields")},
        }

    async def _in(self, api_version: str, versioned: Versioned) -> Versioned:
        resource, obj = versioned
        if resource.api_version == api_version:
            return versioned
        wanted = self._resources[api_version]
        return Versioned(wanted, await self._convert(resource, wanted, obj) or obj)

    def _paths(self, versioned: Versioned) -> dict[Path, Any]:
        return paths(self._schema_of(versioned.resource), versioned.obj)

    def _members(self, versioned: Versioned) -> set[Path]:
        """Return an object's fields, with the named ones that they are in."""
        return with_parents(path for path, value in self._paths(versioned).items() if value is not PARENT)

    def _without(
        self, versioned: Versioned, fields: set[Path], kept: set[Path] | frozenset[Path] = frozenset()
    ) -> Versioned:
        node = self._schema_of(versioned.resource)
        obj = remove(node, versioned.obj, fields, kept) or {}
        return versioned._replace(
            obj={**obj, "metadata": {**_identity(versioned.obj), **obj.get("metadata", {})}}
        )


def without_owners(obj: Object) -> Object:
    """Return an object without its `managedFields`, as it is converted and compared."""
    return {
        **obj,
        "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"},
    }


def _identity(obj: Object) -> Object:
    """Return the metadata that has no owners."""
    metadata = obj["metadata"]
    return {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
