"""Server-side apply: fields have owners, and whoever applies a field that another one owns is told so.

An object is followed from its first apply on: until then nobody owns anything, which spares all others the
bookkeeping. What is there at the first apply belongs to `before-first-apply`, as on the real server, but for zeros
of the status, which the server itself has put in. Lists merge by the keys that a strategic merge patch uses; but
for metadata, lists of custom resources are replaced as a whole, as without a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.errors import StatusError, bad_request, cause
from aioinformer.testing.fieldsets import Path, decode, encode, merge, paths, remove, show, with_parents

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_APPLY, _UPDATE = "Apply", "Update"
_MISSING = object()


class Owner(NamedTuple):
    """Who owns fields: one entry of `managedFields`."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


def is_followed(obj: Object) -> bool:
    """Whether somebody has applied the object, so that owners are kept."""
    entries = obj["metadata"].get("managedFields") or ()
    return any(entry.get("operation") == _APPLY for entry in entries)


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
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    subresource: str,
    force: bool,
    now: str,
) -> Object:
    """An object with a configuration applied.

    What the manager applied before and leaves out now is removed, unless somebody else owns it too.

    Args:
        resource: The object's type.
        live: The object; None if it is to be created.
        applied: The configuration.
        manager: Who applies it.
        subresource: Through which subresource.
        force: Take over what others own.
        now: The time.

    Raises:
        StatusError: 409 that names what others own, 500 for a list that has a key twice.
    """
    wanted = paths(resource, applied)
    _check_unique(resource, applied["metadata"], wanted)
    me = Owner(manager, _APPLY, resource.api_version, subresource)
    owners, current = _Owners(live), {} if live is None else paths(resource, live)
    if live is not None and not owners.fields:
        before = {path for path, value in current.items() if value or path[0] != "f:status"}
        owners.fields[Owner("before-first-apply", _UPDATE, resource.api_version)] = before
    result: Object = merge(resource, live, applied) if live is not None else dict(applied)
    touched = _differing(current, paths(resource, result))
    conflicts = [
        (owner, path)
        for owner, owned in owners.fields.items()
        if owner != me
        for path in sorted(touched & owned)
    ]
    if conflicts and not force:
        raise _conflict(conflicts)
    for owner, path in conflicts:
        owners.fields[owner].discard(path)
    left_out = owners.fields.get(me, set()) - set(wanted)
    owners.fields[me] = set(wanted)
    kept = with_parents(path for owned in owners.fields.values() for path in owned)
    for path in sorted(
        left_out - kept, key=lambda path: (path[-1] != ".", path)
    ):  # items before their fields
        result = remove(result, path, kept) or {}
    gone = with_parents(current) - with_parents(paths(resource, result))
    for owned in owners.fields.values():
        owned -= gone
    result["metadata"] = {**result["metadata"], "managedFields": owners.entries(now)}
    return result


def _check_unique(resource: ResourceType, metadata: Object, wanted: dict[Path, Any]) -> None:
    """Refuse lists that merge by a key and have it twice."""
    for path, count in wanted.items():
        if path[-1] == "." and count > 1:
            group_version = resource.api_version if resource.group else f"/{resource.version}"
            raise StatusError(
                500,
                "",
                f"failed to create typed patch object ({metadata.get('namespace', '')}/{metadata['name']}; "
                f"{group_version}, Kind={resource.kind}): {show(path[:-2])}: duplicate entries for key "
                f"{show(path[-2:-1])}",
            )


def follow_update(
    resource: ResourceType, old: Object, new: Object, *, manager: str, subresource: str, now: str
) -> list[Object]:
    """The `managedFields` after an update: whoever changes a field owns it alone."""
    before, after = paths(resource, old), paths(resource, new)
    touched = _differing(before, after)
    changed = touched & set(after)
    owners = _Owners(old)
    for owned in owners.fields.values():
        owned -= touched
    if changed:
        me = Owner(manager, _UPDATE, resource.api_version, subresource)
        owners.fields.setdefault(me, set()).update(changed)
    return owners.entries(now)


def _differing(before: dict[Path, Any], after: dict[Path, Any]) -> set[Path]:
    """The fields that two states of an object differ in, with those around them that only one of them has.

    That an empty one has got fields is no difference in it.
    """
    both = before.keys() | after.keys()
    differing = {
        path
        for path in both
        if before.get(path, _MISSING) != after.get(path, _MISSING)
        and not (before.get(path) == {} and path not in after)
    }
    return differing | (with_parents(before) ^ with_parents(after))


class _Owners:
    """The `managedFields` of an object, opened."""

    def __init__(self, obj: Object | None) -> None:
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

    def entries(self, now: str) -> list[Object]:
        """The entries of those who own anything; one that is unchanged keeps its time."""
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
