"""Server-side apply: fields have owners, and applying a field of another owner is a conflict.

An object has `managedFields` from its first apply or its first write by kubectl on. Until then the server only notes
who wrote which version (`Write`), which costs little, and `owners_of` finds the owners when they are needed. Fields
that the Python API has written belong to `before-first-apply`. `kubectl apply --server-side` takes over the fields that
`kubectl apply` owns. Lists merge as the schema says.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.apply.fieldsets import (
    PARENT,
    Path,
    decode,
    encode,
    merge,
    paths,
    remove,
    show,
    with_parents,
)
from aioinformer.testing.apply.last_applied import KUBECTL, find_taken_over
from aioinformer.testing.errors import StatusError, bad_request, cause
from aioinformer.testing.schema.gotext import group_version
from aioinformer.testing.schema.zeros import blank
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.apply.versions import Versions
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.node import Node
    from aioinformer.testing.storage.storage import StoredObject, Write

_APPLY, _UPDATE = "Apply", "Update"


class Owner(NamedTuple):
    """An owner of fields: the identity of a `managedFields` entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


def owners_of(
    resource: ResourceType, node: Node, writes: tuple[Write, ...], current: StoredObject
) -> list[Object]:
    """Return the `managedFields` that come from writes, up to the current object."""
    entries: list[Object] = []
    for number, write in enumerate(writes, 1):
        after = writes[number].before if number < len(writes) else current
        assert after is not None
        new = load(resource, after)
        new["metadata"]["managedFields"] = entries
        old = None if write.before is None else load(resource, write.before)
        owners = _Owners(resource, node, new["metadata"], old, write.time)
        change = _Change(set(), set()) if old is None else _Change.of(paths(node, old), paths(node, new))
        changes = {owner.api_version: change for owner in owners.fields} | {resource.api_version: change}
        entries = _track(
            resource, node, old, new, owners, changes, write.manager, write.subresource, write.time
        )
    return entries


def without_times(obj: Object) -> Object:
    """Return an object without the times of its `managedFields`, which alone are no change."""
    metadata = obj["metadata"]
    entries = [{**entry, "time": None} for entry in metadata.get("managedFields") or ()]
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def is_tracked(obj: Object | None, manager: str) -> bool:
    """Return whether the server tracks the owners of an object in a write by a manager."""
    entries = (() if obj is None else obj["metadata"].get("managedFields")) or ()
    return manager.startswith(KUBECTL) or any(
        entry.get("operation") == _APPLY or entry.get("manager", "").startswith(KUBECTL) for entry in entries
    )


def check_type(applied: Object, api_version: str, kind: str) -> None:
    """Refuse a configuration of another kind or version.

    Raises:
        StatusError: 400.
    """
    given = str(applied.get("apiVersion") or ""), str(applied.get("kind") or "")
    if given != (api_version, kind):
        raise bad_request(f"invalid object type: {group_version(given[0])}, Kind={given[1]}")


async def apply_configuration(
    resource: ResourceType,
    node: Node,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    subresource: str,
    force: bool,
    now: str,
    versions: Versions,
) -> Object:
    """Return an object with a configuration applied.

    Fields that the manager applied before and omits now are removed, unless they have another owner.

    Args:
        resource: The object's type.
        live: The object; None to create it.
        applied: The configuration.
        manager: The field manager.
        subresource: The subresource of the request.
        force: Take over fields of other owners.
        now: The time.
        versions: The versions of the kind.

    Raises:
        StatusError: 409 with the fields of other owners; 500 if a conversion webhook fails.
    """
    wanted = {path for path, value in paths(node, applied).items() if value is not PARENT}
    me = Owner(manager, _APPLY, resource.api_version, subresource)
    current = {} if live is None else paths(node, live)
    owners = _Owners(resource, node, {} if live is None else live["metadata"], live, now)
    former, fields_before = owners.remove_applier(me)
    owners.fields[me] = wanted
    merged: Object = dict(applied) if live is None else merge(node, live, applied)
    if live is None:
        result = merged
    elif former == resource.api_version and all(owner.api_version == former for owner in owners.fields):
        kept = with_parents(path for owned in owners.fields.values() for path in owned)
        result = remove(node, merged, fields_before - wanted - kept, kept) or {}
    else:
        by_version = [(owner.api_version, fields) for owner, fields in owners.fields.items()]
        result = await versions.prune(resource, merged, (former, fields_before), by_version)
    changes = await _changes(resource, node, live, result, owners, versions, me)
    # A value in place of fields conflicts with their owners, too.
    touched = {name: change.modified for name, change in changes.items()}
    touched[resource.api_version] = _find_differing(current, paths(node, merged))
    conflicts = [
        (owner, path)
        for owner, owned in owners.fields.items()
        if owner != me
        for path in sorted(touched[owner.api_version] & owned)
    ]
    if conflicts and not force and live is not None:
        allowed = find_taken_over(resource, node, live, current) if manager == KUBECTL else set()
        if remaining := [(owner, path) for owner, path in conflicts if path not in allowed]:
            raise _conflict(remaining)
    for owner, path in conflicts:
        owners.fields[owner].discard(path)
    for owner, owned in owners.fields.items():
        owned -= changes[owner.api_version].removed
    if result != live:
        owners.times[me] = now
    result["metadata"] = {**result["metadata"], "managedFields": owners.entries()}
    return result


async def track_write(
    resource: ResourceType,
    node: Node,
    old: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str,
    now: str,
    versions: Versions,
) -> list[Object]:
    """Return the `managedFields` after a create or an update: the manager becomes the only owner of changed fields.

    Args:
        resource: The object's type.
        node: Its schema.
        old: The object before; None if it is created.
        new: The object with the `managedFields` that the client sent, or else the old ones.
        manager: The field manager.
        subresource: The subresource of the request.
        now: The time.
        versions: The versions of the kind.

    Raises:
        StatusError: 500 if a conversion webhook fails.
    """
    owners = _Owners(resource, node, new["metadata"], old, now)
    changes = await _changes(resource, node, old, new, owners, versions)
    return _track(resource, node, old, new, owners, changes, manager, subresource, now)


def _track(
    resource: ResourceType,
    node: Node,
    old: Object | None,
    new: Object,
    owners: _Owners,
    changes: Mapping[str, _Change],
    manager: str,
    subresource: str,
    now: str,
) -> list[Object]:
    change = changes[resource.api_version]
    for owner, owned in owners.fields.items():
        owned -= changes[owner.api_version].touched
    changed = _fields_of_create(node, new, with_status=False) if old is None else change.modified
    if changed:
        me = Owner(manager, _UPDATE, resource.api_version, subresource)
        owners.fields.setdefault(me, set()).update(changed)
        owners.times[me] = now
    return owners.entries()


class _Change(NamedTuple):
    """What a write does to fields, in one version."""

    modified: set[Path]
    removed: set[Path]

    @property
    def touched(self) -> set[Path]:
        return self.modified | self.removed

    @classmethod
    def of(cls, before: dict[Path, Any], after: dict[Path, Any]) -> _Change:
        return cls(_find_differing(before, after) & after.keys(), before.keys() - after.keys())


async def _changes(
    resource: ResourceType,
    node: Node,
    old: Object | None,
    new: Object,
    owners: _Owners,
    versions: Versions,
    me: Owner | None = None,
) -> dict[str, _Change]:
    """Return what a write does in the version of each owner. Owners in versions that are gone are removed."""
    if old is None:
        return defaultdict(lambda: _Change(set(), set()))
    changes = {resource.api_version: _Change.of(paths(node, old), paths(node, new))}
    for owner in [*owners.fields]:
        if owner.api_version in changes or owner == me:
            continue
        if versions.has(owner.api_version):
            changes[owner.api_version] = _Change.of(
                *await versions.fields_before_and_after(resource, owner.api_version, old, new)
            )
        else:
            del owners.fields[owner]
    return changes


def _find_differing(before: dict[Path, Any], after: dict[Path, Any]) -> set[Path]:
    """Return the fields that differ between two states.

    An empty object that gets fields does not differ itself, nor does one that loses its last field.
    """
    differing = before.keys() ^ after.keys()
    for path in before.keys() & after.keys():
        old, new = before[path], after[path]
        if old is PARENT or new is PARENT:
            if old is not new and (new if old is PARENT else old):
                differing.add(path)
        elif old != new:
            differing.add(path)
    return differing


def _fields_of_create(node: Node, obj: Object, *, with_status: bool) -> set[Path]:
    """Return the fields that a create sets: those that Go does not write for an object without values."""
    fields = paths(node, obj)
    set_ = _find_differing(paths(node, blank(node)), fields) & fields.keys()
    return {path for path in set_ if path[0] != "f:status" or (with_status and fields[path])}


class _Owners:
    """The parsed `managedFields` of metadata; without any, the live object's fields belong to `before-first-apply`.

    Attributes:
        fields: The fields of each owner.
        times: The time of each owner's latest write, if it changed anything.
    """

    def __init__(
        self, resource: ResourceType, node: Node, metadata: Object, live: Object | None, now: str
    ) -> None:
        self.fields: dict[Owner, set[Path]] = {}
        self.times: dict[Owner, str] = {}
        for entry in metadata.get("managedFields") or ():
            owner = Owner(
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("apiVersion", ""),
                entry.get("subresource", ""),
            )
            self.fields[owner] = decode(entry.get("fieldsV1") or {})
            if time := entry.get("time"):
                self.times[owner] = time
        if not self.fields and live is not None:
            before = Owner("before-first-apply", _UPDATE, resource.api_version)
            self.fields[before] = _fields_of_create(node, live, with_status=True)
            self.times[before] = now

    def remove_applier(self, me: Owner) -> tuple[str, set[Path]]:
        """Remove the owner that applies as another one does; return its version and its fields.

        A manager that applies in another version than before stays the same owner.
        """
        for owner in self.fields:
            if owner.operation == _APPLY and owner._replace(api_version=me.api_version) == me:
                time = self.times.pop(owner, None)
                if time is not None:
                    self.times[me] = time
                return owner.api_version, self.fields.pop(owner)
        return me.api_version, set()

    def entries(self) -> list[Object]:
        """Return the entries of all owners with fields."""
        entries = []
        for owner, owned in self.fields.items():
            if not owned:
                continue
            entry: dict[str, Any] = {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": owner.api_version,
            }
            if owner in self.times:
                entry["time"] = self.times[owner]
            entry |= {"fieldsType": "FieldsV1", "fieldsV1": encode(owned)}
            if owner.subresource:
                entry["subresource"] = owner.subresource
            entries.append(entry)
        return sorted(
            entries, key=lambda entry: (entry["operation"], entry.get("time", ""), entry["manager"])
        )


def _conflict(conflicts: list[tuple[Owner, Path]]) -> StatusError:
    causes = [
        cause("FieldManagerConflict", f"conflict with {_name(owner)}", show(path))
        for owner, path in conflicts
    ]
    if len(conflicts) == 1:
        ((owner, path),) = conflicts
        message = f"Apply failed with 1 conflict: conflict with {_name(owner)}: {show(path)}"
    else:
        lines = []
        for owner in dict(conflicts):
            lines.append(f"conflicts with {_name(owner)}:")
            lines += [f"- {show(path)}" for other, path in conflicts if other == owner]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, details={"causes": causes})


def _name(owner: Owner) -> str:
    name = f'"{owner.manager}"'
    if owner.subresource:
        name += f' with subresource "{owner.subresource}"'
    return f"{name} using {owner.api_version}" if owner.operation == _UPDATE else name
