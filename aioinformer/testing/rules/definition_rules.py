"""Defaults and validation of CustomResourceDefinitions.

The rules are those of apiextensions-apiserver's validation (pkg/apis/apiextensions/validation, v1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from aioinformer.testing.errors import (
    bad_request,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
    invalid,
)
from aioinformer.testing.rules.naming import is_established
from aioinformer.testing.rules.validation import dns_1035_faults, subdomain_fault
from aioinformer.testing.rules.webhook_rules import client_config_faults, review_version_faults
from aioinformer.testing.schema.definition import compiled, definition_faults, not_enforced
from aioinformer.testing.schema.props import Props
from aioinformer.testing.storage.builtin import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

_STRATEGIES = ("None", "Webhook")
_SCOPES = ("Cluster", "Namespaced")
_APPROVED = "api-approved.kubernetes.io"
_APPROVAL = "https://github.com/kubernetes/enhancements/pull/1111"

_Fault = dict[str, str]


class _Names(msgspec.Struct, rename="camel"):
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _Schema(msgspec.Struct):
    schema: Props | None = msgspec.field(name="openAPIV3Schema", default=None)


class _Version(msgspec.Struct, rename="camel"):
    name: str = ""
    served: bool = False
    storage: bool = False
    schema: _Schema | None = None
    subresources: dict[str, Any] | None = None
    additional_printer_columns: list[dict[str, Any]] | None = None
    selectable_fields: list[dict[str, Any]] | None = None


class _Spec(msgspec.Struct):
    group: str = ""
    scope: str = ""
    names: _Names = msgspec.field(default_factory=_Names)
    versions: list[_Version] = []


def _parsed(definition: Object) -> _Spec:
    spec = definition.get("spec") or {}
    return msgspec.convert({name: value for name, value in spec.items() if value is not None}, _Spec)


def complete_definition(definition: Object) -> None:
    """Set the defaults of a definition in place: names and stored versions.

    Raises:
        StatusError: 400 for a malformed spec.
    """
    try:
        parsed = _parsed(definition)
    except msgspec.ValidationError as error:
        raise bad_request(f"CustomResourceDefinition cannot be handled: {error}") from error
    spec = definition["spec"] = dict(definition.get("spec") or {})
    names = spec["names"] = dict(spec.get("names") or {})
    names["singular"] = parsed.names.singular or parsed.names.kind.lower()
    if parsed.names.kind:
        names["listKind"] = parsed.names.list_kind or f"{parsed.names.kind}List"
    spec.setdefault("conversion", {"strategy": "None"})
    status = definition.get("status") or {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    stored = status.get("storedVersions") or []
    added = [each.name for each in parsed.versions if each.storage and each.name not in stored]
    definition["status"] = {**status, "storedVersions": [*stored, *added[:1]]}


def check_definition(new: Object, old: Object | None) -> None:
    """Refuse an invalid definition or a change of its immutable fields.

    Raises:
        StatusError: 422 with every cause.
    """
    name, spec = new["metadata"]["name"], _parsed(new)
    faults = [*_faults(spec)]
    if old is None:
        if name != f"{spec.names.plural}.{spec.group}":
            why = 'must be spec.names.plural+"."+spec.group'
            faults.insert(0, field_invalid("metadata.name", name, why))
    else:
        faults += _changes(spec, _parsed(old), established=is_established(old))
    faults += _conversion_faults(new["spec"]["conversion"])
    faults += _unstored(spec, new["status"]["storedVersions"])
    faults += _unapproved(spec.group, _approval(new), None if old is None else _approval(old))
    if faults:
        raise invalid(DEFINITIONS.kind, DEFINITIONS.group, name, faults)


def not_enforced_in(definition: Object) -> list[str]:
    """Return what the embedded server does not enforce of a definition's schemas, each with its reason."""
    return [
        f"spec.versions[{number}].schema.openAPIV3Schema{text}"
        for number, version in enumerate(definition["spec"]["versions"])
        for text in not_enforced(compiled(version["schema"]["openAPIV3Schema"]))
    ]


def _faults(spec: _Spec) -> Iterator[_Fault]:
    if not spec.group:
        yield field_required("spec.group")
    elif why := subdomain_fault(spec.group):
        yield field_invalid("spec.group", spec.group, why)
    elif "." not in spec.group:
        yield field_invalid("spec.group", spec.group, "should be a domain with at least one dot")
    if not spec.scope:
        yield field_required("spec.scope")
    elif spec.scope not in _SCOPES:
        yield field_not_supported("spec.scope", spec.scope, _SCOPES)
    yield from _faults_of_versions(spec.versions)
    yield from _faults_of_names(spec.names)


def _faults_of_versions(versions: list[_Version]) -> Iterator[_Fault]:
    for number, version in enumerate(versions):
        if version.schema is None or version.schema.schema is None:
            yield field_required(f"spec.versions[{number}].schema.openAPIV3Schema")
    yield from _faults_of_schemas(versions)
    for number, version in enumerate(versions):
        yield from _label_faults(f"spec.versions[{number}].name", version.name)
    names = [version.name for version in versions]
    if len({*names}) < len(names):
        yield field_invalid("spec.versions", names, "must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield field_invalid("spec.versions", names, why)


def _faults_of_schemas(versions: list[_Version]) -> Iterator[_Fault]:
    schemas = [None if version.schema is None else version.schema.schema for version in versions]
    is_shared = all(schema == schemas[0] for schema in schemas)  # then upstream keeps it in one place
    for number, schema in enumerate(schemas[:1] if is_shared else schemas):
        if schema is not None:
            place = "validation" if is_shared else f"versions[{number}].schema"
            faults = definition_faults(schema, f"spec.{place}.openAPIV3Schema")
            yield from (fault.cause for fault in faults)


def _faults_of_names(names: _Names) -> Iterator[_Fault]:
    single = {
        "plural": names.plural,
        "singular": names.singular,
        "kind": names.kind,
        "listKind": names.list_kind,
    }
    for field, name in single.items():
        if not name:
            yield field_required(f"spec.names.{field}")
    for field, name in single.items():
        if not name:
            continue
        if field in ("kind", "listKind"):
            mixed = "may have mixed case, but should otherwise match: "
            yield from _label_faults(f"spec.names.{field}", name, name.lower(), mixed)
        else:
            yield from _label_faults(f"spec.names.{field}", name)
    for field, listed in (("shortNames", names.short_names), ("categories", names.categories)):
        for number, name in enumerate(listed or ()):
            yield from _label_faults(f"spec.names.{field}[{number}]", name)
    if names.kind and names.kind == names.list_kind:
        yield field_invalid("spec.names.listKind", names.kind, "kind and listKind may not be the same")


def _conversion_faults(conversion: Object) -> Iterator[_Fault]:
    webhook, place = conversion.get("webhook") or {}, "spec.conversion"
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    if not (strategy := conversion.get("strategy")):
        yield field_required(f"{place}.strategy")
    elif strategy not in _STRATEGIES:
        yield field_not_supported(f"{place}.strategy", strategy, _STRATEGIES)
    if strategy == "Webhook":
        if config is None:
            why = "required when strategy is set to Webhook"
            yield field_required(f"{place}.webhookClientConfig", why)
        else:
            yield from client_config_faults(f"{place}.webhookClientConfig", config)
        if not versions:
            yield field_required(f"{place}.conversionReviewVersions")
        yield from review_version_faults(f"{place}.conversionReviewVersions", versions or [])
        return
    for name, given in (("webhookClientConfig", config), ("conversionReviewVersions", versions)):
        if given:
            why = "should not be set when strategy is not set to Webhook"
            yield field_forbidden(f"{place}.{name}", why)


def _changes(new: _Spec, old: _Spec, *, established: bool) -> Iterator[_Fault]:
    """Yield the faults of changed immutable fields."""
    fixed = [("group", new.group, old.group), ("names.plural", new.names.plural, old.names.plural)]
    if established:
        named = ("names.kind", new.names.kind, old.names.kind)
        fixed = [("scope", new.scope, old.scope), named, *fixed]
    for field, value, before in fixed:
        if value != before:
            yield field_invalid(f"spec.{field}", value, "field is immutable")


def _unstored(spec: _Spec, stored: list[str]) -> Iterator[_Fault]:
    """Yield the faults of removed versions that may still have stored objects."""
    if not stored:
        yield field_invalid("status.storedVersions", stored, "must have at least one stored version")
    known = {version.name for version in spec.versions}
    for number, version in enumerate(stored):
        if version not in known:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            yield field_invalid(f"status.storedVersions[{number}]", version, why)


def _approval(definition: Object) -> str:
    return str((definition["metadata"].get("annotations") or {}).get(_APPROVED, ""))


def _unapproved(group: str, approval: str, before: str | None) -> Iterator[_Fault]:
    """Yield the faults of Kubernetes' own groups without an approval annotation."""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    state = _approval_state(approval)
    if before is not None and state == _approval_state(before):
        return
    field = f"metadata.annotations[{_APPROVED}]"
    must = f'protected groups must have approval annotation "{_APPROVED}"'
    if state == "missing":
        yield field_required(field, f"{must}, see {_APPROVAL}")
    elif state == "invalid":
        why = f'{must} with either a URL or a reason starting with "unapproved", see {_APPROVAL}'
        yield field_invalid(field, approval, why)


def _approval_state(approval: str) -> str:
    if not approval:
        return "missing"
    if approval.startswith("unapproved"):
        return "bypassed"
    try:
        url = urlsplit(approval)
    except ValueError:
        return "invalid"
    return "approved" if url.scheme and url.netloc and " " not in url.netloc else "invalid"


def _label_faults(field: str, name: str, label: str | None = None, prefix: str = "") -> Iterator[_Fault]:
    if faults := dns_1035_faults(name if label is None else label):
        yield field_invalid(field, name, prefix + ",".join(faults))
