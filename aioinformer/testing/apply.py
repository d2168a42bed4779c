"""Server-side apply: fields have owners, and applying a field of another owner is a conflict.

The server tracks the owners of an object from its first apply or its first write by kubectl on, which saves work for
all other objects. `kubectl apply --server-side` takes over the fields that `kubectl apply` owns. Fields that exist
when tracking begins belong to `before-first-apply`, as on the real server, except zeros in the status, which the server
added itself. Lists merge as the schema says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.errors import StatusError, bad_request, cause
from aioinformer.testing.fieldsets import (
    Path,
    decode,
    encode,
    merge,
    paths,
    remove,
    show,
    with_parents,
)
from aioinformer.testing.last_applied import KUBECTL, taken_over

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.node import Node

_APPLY, _UPDATE = "Apply", "Update"
_MISSING = object()


class Owner(NamedTuple):
    """An owner of fields: the identity of a `managedFields` entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


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
        group_version = given[0] if "/" in given[0] else f"/{given[0]}"
        raise bad_request(f"invalid object type: {group_version}, Kind={given[1]}")


def apply_configuration(
    resource: ResourceType,
    node: Node,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    subresource: str,
    force: bool,
    now: str,
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

    Raises:
        StatusError: 409 with the fields of other owners.
    """
    wanted = paths(node, applied)
    me = Owner(manager, _APPLY, resource.api_version, subresource)
    current = {} if live is None else paths(node, live)
    owners = _Owners(resource, live, current)
    result: Object = merge(node, live, applied) if live is not None else dict(applied)
    touched = _differing(current, paths(node, result))
    conflicts = [
        (owner, path)
        for owner, owned in owners.fields.items()
        if owner != me
        for path in sorted(touched & owned)
    ]
    if conflicts and not force and live is not None:
        allowed = taken_over(resource, node, live, current) if manager == KUBECTL else set()
        if remaining := [(owner, path) for owner, path in conflicts if path not in allowed]:
            raise _conflict(remaining)
    for owner, path in conflicts:
        owners.fields[owner].discard(path)
    left_out = owners.fields.get(me, set()) - set(wanted)
    owners.fields[me] = set(wanted)
    kept = with_parents(path for owned in owners.fields.values() for path in owned)
    for path in sorted(
        left_out - kept, key=lambda path: (path[-1] != ".", path)
    ):  # items before their fields
        result = remove(result, path, kept) or {}
    gone = with_parents(current) - with_parents(paths(node, result))
    for owned in owners.fields.values():
        owned -= gone
    result["metadata"] = {**result["metadata"], "managedFields": owners.entries(now)}
    return result


def track_write(
    resource: ResourceType,
    node: Node,
    old: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str,
    now: str,
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
    """
    before, after = {} if old is None else paths(node, old), _set_by_clients(paths(node, new))
    touched = _differing(before, after)
    changed = touched & set(after)
    owners = _Owners(resource, new, before)
    for owned in owners.fields.values():
        owned -= touched
    if changed:
        me = Owner(manager, _UPDATE, resource.api_version, subresource)
        owners.fields.setdefault(me, set()).update(changed)
    return owners.entries(now)


def _differing(before: dict[Path, Any], after: dict[Path, Any]) -> set[Path]:
    """Return the fields that differ between two states, with parents that only one state has.

    An empty object that gets fields does not differ itself.
    """
    both = before.keys() | after.keys()
    differing = {
        path
        for path in both
        if before.get(path, _MISSING) != after.get(path, _MISSING)
        and not (before.get(path) == {} and path not in after)
    }
    return differing | (with_parents(before) ^ with_parents(after))


def _set_by_clients(fields: dict[Path, Any]) -> dict[Path, Any]:
    """Return the fields without the zeros in the status, which the server adds."""
    return {path: value for path, value in fields.items() if value or path[0] != "f:status"}


class _Owners:
    """The parsed `managedFields` of an object; without any, its fields belong to `before-first-apply`."""

    def __init__(self, resource: ResourceType, obj: Object | None, current: dict[Path, Any]) -> None:
        self.fields: dict[Owner, set[Path]] = {}
        self._before: dict[Owner, Object] = {}
        metadata = {} if obj is None else obj["metadata"]
        for entry in metadata.get("managedFields") or ():
            owner = Owner(
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("apiVersion", ""),
                entry.get("subresource", ""),
            )
            self.fields[owner] = decode(entry.get("fieldsV1") or {})
            self._before[owner] = entry
        if not self.fields and current:
            before = Owner("before-first-apply", _UPDATE, resource.api_version)
            self.fields[before] = set(_set_by_clients(current))

    def entries(self, now: str) -> list[Object]:
        """Return the entries of all owners with fields; an unchanged entry keeps its time."""
        found = []
        for owner, owned in self.fields.items():
            if not owned:
                continue
            fields = encode(owned)
            before = self._before.get(owner)
            if before is not None and before.get("fieldsV1") == fields:
                found.append(before)
                continue
            entry: dict[str, Any] = {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": owner.api_version,
                "time": now,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
            if owner.subresource:
                entry["subresource"] = owner.subresource
            found.append(entry)
        return sorted(found, key=lambda entry: (entry["operation"], entry.get("time", ""), entry["manager"]))


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
