"""Validation of metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aioinformer._core.checks import LABEL, is_subdomain
from aioinformer.objects.labels import SUBDOMAIN_RULE, label_key_faults
from aioinformer.testing.errors import (
    bad_request,
    field_forbidden,
    field_invalid,
    field_required,
    field_too_long,
    invalid,
    unknown_conversion,
)
from aioinformer.testing.objects import value_at
from aioinformer.testing.schema.selectors import label_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_ANNOTATIONS = 256 * 1024
"""The limit of an object's annotations, in bytes."""

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS_1035 = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_OWNER_ORDER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_STANDARD_FINALIZERS = frozenset(["foregroundDeletion", "kubernetes", "orphan"])

# Kinds whose names are DNS labels, and kinds whose names are path segments.
_LABEL_NAMES = frozenset(["Namespace", "Service", "StatefulSet"])
_PATH_SEGMENT_NAMES = frozenset(["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"])

# Kinds whose names must leave room for a suffix.
_SHORT_NAMES = {"CronJob": 52}

# Built-in kinds whose finalizers need no qualified name; neither do those of custom resources.
_PLAIN_FINALIZERS = frozenset(["CustomResourceDefinition", "Lease", "PodDisruptionBudget"])


def check_kind(resource: ResourceType, obj: Object, *, strict: bool = False) -> None:
    """Refuse what is no object, and an object of another kind.

    An object without a kind is accepted, except for custom resources with `strict`.

    Raises:
        StatusError: 400, or 422 for the kind of a custom resource.
    """
    if not isinstance(obj, dict):
        raise bad_request(
            "the object provided is unrecognized (must be of type object): it is no JSON object"
        )
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if strict and resource.custom:
        if not kind:
            raise bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
            )
        api_version = api_version or ""
        if kind != resource.kind:
            name = value_at(obj, ("metadata", "name")) or ""
            causes = [field_invalid("kind", kind, f"must be {resource.kind}")]
            raise invalid(str(kind), resource.group, name, causes)
    if kind and kind != resource.kind:
        raise unknown_conversion(kind, api_version, resource)
    if api_version is not None and api_version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )


def check_place(resource: ResourceType, metadata: Object, namespace: str, name: str | None) -> None:
    """Refuse an object whose namespace or name differs from the request.

    Raises:
        StatusError: 400.
    """
    given = metadata.get("namespace")
    if given and given != namespace and resource.namespaced:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name is not None and not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if name is not None and metadata["name"] != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )


def check_object(resource: ResourceType, metadata: Object, faults: Sequence[dict[str, str]]) -> None:
    """Refuse invalid names, labels, annotations, owners and finalizers, and an object with further faults.

    Raises:
        StatusError: 422 with every cause.
    """
    name, base = metadata.get("name", ""), metadata.get("generateName", "")
    causes: list[dict[str, str]] = []
    # A generateName gets a suffix, so it may end with a dash.
    if base:
        prefix = re.sub(r"(?<=.)-$", "a", base)
        causes += [
            field_invalid("metadata.generateName", base, why) for why in _name_faults(resource, prefix)
        ]
    if not name:
        causes.append(field_required("metadata.name", "name or generateName is required"))
    else:
        causes += [field_invalid("metadata.name", name, why) for why in _name_faults(resource, name)]
    causes += label_faults("metadata.labels", metadata.get("labels") or {})
    if annotations := metadata.get("annotations"):
        causes += _annotation_faults(annotations)
    if owners := metadata.get("ownerReferences"):
        causes += _owner_faults(owners)
    if finalizers := metadata.get("finalizers"):
        causes += _finalizer_faults(resource, finalizers)
    causes += faults
    if causes:
        raise invalid(resource.kind, resource.group, name, causes)


def check_immutable(resource: ResourceType, old: Object, new: Object) -> None:
    """Refuse a change of immutable metadata that the server does not restore silently.

    Raises:
        StatusError: 422.
    """
    causes = [
        field_invalid(f"metadata.{name}", new[name], "field is immutable")
        for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if name in new and new[name] != old.get(name) and not (name == "deletionTimestamp" and name in old)
    ]
    if causes:
        raise invalid(resource.kind, resource.group, old["name"], causes)


def check_finalizers(resource: ResourceType, old: Object, new: Object) -> None:
    """Refuse new finalizers on a terminating object.

    Raises:
        StatusError: 422.
    """
    if "deletionTimestamp" not in old:
        return
    added = [entry for entry in new.get("finalizers") or [] if entry not in (old.get("finalizers") or [])]
    if added:
        listed = ", ".join(f'"{entry}"' for entry in added)
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        causes = [field_forbidden("metadata.finalizers", why)]
        raise invalid(resource.kind, resource.group, old["name"], causes)


def _annotation_faults(annotations: dict[str, str]) -> list[dict[str, str]]:
    field = "metadata.annotations"
    size = sum(len((key + value).encode()) for key, value in annotations.items())
    faults = [] if size <= _ANNOTATIONS else [field_too_long(field, _ANNOTATIONS)]
    return faults + [
        field_invalid(field, key, fault) for key in annotations for fault in label_key_faults(key.lower())
    ]


def _owner_faults(owners: list[Object]) -> list[dict[str, str]]:
    field = "metadata.ownerReferences"
    faults = []
    for owner in owners:
        group, _, version = (api_version := owner.get("apiVersion") or "").rpartition("/")
        if not version or "/" in group:
            why = "version must not be empty"
            faults.append(field_invalid(f"{field}.apiVersion", api_version, why))
        faults += [
            field_invalid(f"{field}.{name}", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not owner.get(name)
        ]
        if (api_version, owner.get("kind")) == ("v1", "Event"):
            why = "/v1, Kind=Event is disallowed from being an owner"
            faults.append(field_invalid(field, _owner(owner), why))
    first, *others = [owner for owner in owners if owner.get("controller")] or [{}]
    for other in others:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first.get('kind')}/{first.get('name')} and {other.get('kind')}/{other.get('name')}"
        )
        faults.append(field_invalid(field, [_owner(owner) for owner in owners], why))
    return faults


def _owner(owner: Object) -> Object:
    """Return an owner reference in the real server's form."""
    return {name: owner[name] for name in _OWNER_ORDER if name in owner}


def _finalizer_faults(resource: ResourceType, finalizers: list[str]) -> list[dict[str, str]]:
    causes = [
        field_invalid("metadata.finalizers", finalizer, fault)
        for finalizer in finalizers
        for fault in label_key_faults(finalizer)
    ]
    if not resource.custom and resource.kind not in _PLAIN_FINALIZERS:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        causes += [
            field_invalid(f"metadata.finalizers[{index}]", finalizer, why)
            for index, finalizer in enumerate(finalizers)
            if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
        ]
    return causes


def _name_faults(resource: ResourceType, name: str) -> list[str]:
    if resource.kind in _PATH_SEGMENT_NAMES:
        return ["may not contain '/'"] if "/" in name or "%" in name or name in (".", "..") else []
    if resource.kind in _LABEL_NAMES:
        return dns_1123_faults(name)
    longest = None if resource.custom else _SHORT_NAMES.get(resource.kind)
    if longest is not None and len(name) > longest:
        return [f"must be no more than {longest} characters"]
    fault = subdomain_fault(name)
    return [] if fault is None else [fault]


def dns_1123_faults(name: str) -> list[str]:
    """Return why a name in a spec is no DNS label."""
    faults = ["must be no more than 63 characters"] if len(name) > 63 else []
    if not LABEL.fullmatch(name):
        faults.append("must not contain dots" if is_subdomain(name) else _LABEL_RULE)
    return faults


def dns_1035_faults(name: str) -> list[str]:
    """Return why a name is no label that begins with a letter."""
    faults = ["must be no more than 63 characters"] if len(name) > 63 else []
    return faults if _DNS_1035.fullmatch(name) else [*faults, _DNS_1035_RULE]


def subdomain_fault(name: str) -> str | None:
    """Return why a name is no DNS subdomain, or None if it is valid."""
    if len(name) > 253:
        return "must be no more than 253 characters"
    return None if is_subdomain(name) else SUBDOMAIN_RULE
