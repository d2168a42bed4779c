"""Defaults and validation of CustomResourceDefinitions.

The rules are those of apiextensions-apiserver's validation (pkg/apis/apiextensions/validation, v1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
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
from aioinformer.testing.objects import value_at
from aioinformer.testing.rules.naming import is_established
from aioinformer.testing.rules.validation import dns_1035_faults, subdomain_fault
from aioinformer.testing.rules.version_rules import SCHEMA_APART, selectable_field_faults, warning_faults
from aioinformer.testing.rules.webhook_rules import client_config_faults, review_version_faults
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.definition import compile_schema, definition_faults, not_enforced
from aioinformer.testing.schema.node import items_of
from aioinformer.testing.schema.props import Props
from aioinformer.testing.schema.required_fields import value_faults
from aioinformer.testing.storage.builtin import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

_STRATEGIES = ("None", "Webhook")
_SCOPES = ("Cluster", "Namespaced")
_APPROVED = "api-approved.kubernetes.io"
_APPROVAL = "https://github.com/kubernetes/enhancements/pull/1111"

_Fault = dict[str, str]
T = TypeVar("T")


def complete_definition(definition: Object) -> None:
    """Set the names and the stored versions of a decoded definition that its user left out, in place."""
    spec = definition["spec"] = dict(definition["spec"])
    names = spec["names"] = dict(spec["names"])
    names["singular"] = names.get("singular") or names["kind"].lower()
    if names["kind"]:
        names["listKind"] = names.get("listKind") or f"{names['kind']}List"
    status = definition["status"]
    stored = status.get("storedVersions") or []
    added = [
        version["name"] for version in _versions(spec) if version["storage"] and version["name"] not in stored
    ]
    definition["status"] = {**status, "storedVersions": [*stored, *added[:1]]}


def check_definition(new: Object, old: Object | None) -> None:
    """Refuse an invalid definition or a change of its immutable fields.

    Raises:
        StatusError: 400 for a malformed schema, 422 with every cause.
    """
    name, spec = new["metadata"]["name"], new["spec"]
    faults = [*_faults(spec)]
    if old is None:
        if name != f"{spec['names']['plural']}.{spec['group']}":
            why = 'must be spec.names.plural+"."+spec.group'
            faults.insert(0, field_invalid("metadata.name", name, why))
    else:
        faults += _changes(spec, old["spec"], established=is_established(old))
    faults += _conversion_faults(spec["conversion"])
    stored = new["status"]["storedVersions"]
    faults += _stored_faults(spec, None if old is None and not stored else stored)  # Go's nil is null
    faults += _approval_faults(spec["group"], _approval(new), None if old is None else _approval(old))
    if faults:
        raise invalid(DEFINITIONS.kind, DEFINITIONS.group, name, faults)


def not_enforced_in(definition: Object) -> list[str]:
    """Return what the embedded server does not enforce of a definition's schemas, each with its reason."""
    return [
        f"spec.versions[{number}].schema.openAPIV3Schema{text}"
        for number, version in enumerate(definition["spec"]["versions"])
        for text in not_enforced(compile_schema(version["schema"]["openAPIV3Schema"]))
    ]


def _versions(spec: Object) -> list[Object]:
    return spec["versions"] or []


def _faults(spec: Object) -> Iterator[_Fault]:
    group, scope = spec["group"], spec["scope"]
    if not group:
        yield field_required("spec.group")
    elif why := subdomain_fault(group):
        yield field_invalid("spec.group", group, why)
    elif "." not in group:
        yield field_invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield field_required("spec.scope")
    elif scope not in _SCOPES:
        yield field_not_supported("spec.scope", scope, _SCOPES)
    yield from _faults_of_versions(_versions(spec))
    yield from _faults_of_names(spec["names"])


def _faults_of_versions(versions: list[Object]) -> Iterator[_Fault]:
    schemas = [_schema(version) for version in versions]
    for number, schema in enumerate(schemas):
        if schema is None:
            yield field_required(f"spec.versions[{number}].schema.openAPIV3Schema")
    yield from _faults_of_schemas(schemas)
    names = [version["name"] for version in versions]
    for number, name in enumerate(names):
        yield from _label_faults(f"spec.versions[{number}].name", name)
    if len({*names}) < len(names):
        yield field_invalid("spec.versions", names, "must contain unique version names")
    if sum(version["storage"] for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield field_invalid("spec.versions", names, why)
    yield from _faults_of_views(versions)
    for number, version in enumerate(versions):
        yield from warning_faults(version, f"spec.versions[{number}].deprecationWarning")
    fields = [version.get("selectableFields") or [] for version in versions]
    places = [*_place(fields, "selectableFields", "selectableFields")]
    is_schema_apart = len(places) > 1 and len([*_place(schemas, "schema", "schema")]) == 1
    for number, (path, chosen) in enumerate(places):
        if chosen and is_schema_apart:  # upstream keeps the one schema where it does not look for it
            yield field_invalid(path, "", SCHEMA_APART)
        else:
            yield from selectable_field_faults(chosen, schemas[number], path)


def _faults_of_views(versions: list[Object]) -> Iterator[_Fault]:
    node = node_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert node is not None
    version_node = items_of(node.properties["spec"].properties["versions"])
    for name in ("subresources", "selectableFields", "additionalPrinterColumns"):
        for path, part in _place([version.get(name) for version in versions], name, name):
            yield from value_faults(version_node.properties[name], part, path)


def _schema(version: Object) -> Props | None:
    try:
        return msgspec.convert(value_at(version, ("schema", "openAPIV3Schema")), Props | None)
    except msgspec.ValidationError as error:
        raise bad_request(f"CustomResourceDefinition cannot be handled: {error}") from error


def _faults_of_schemas(schemas: list[Props | None]) -> Iterator[_Fault]:
    for path, schema in _place(schemas, "schema", "validation"):
        if schema is not None:
            yield from (fault.cause for fault in definition_faults(schema, f"{path}.openAPIV3Schema"))


def _place(parts: list[T], name: str, shared: str) -> Iterator[tuple[str, T]]:
    """Yield a part of each version with its path; upstream keeps one that all versions share in one place."""
    is_shared = all(part == parts[0] for part in parts)
    for number, part in enumerate(parts[:1] if is_shared else parts):
        yield f"spec.{shared}" if is_shared else f"spec.versions[{number}].{name}", part


def _faults_of_names(names: Object) -> Iterator[_Fault]:
    single = {field: names.get(field, "") for field in ("plural", "singular", "kind", "listKind")}
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
    for field in ("shortNames", "categories"):
        for number, name in enumerate(names.get(field) or ()):
            yield from _label_faults(f"spec.names.{field}[{number}]", name)
    if single["kind"] and single["kind"] == single["listKind"]:
        yield field_invalid("spec.names.listKind", single["kind"], "kind and listKind may not be the same")


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


def _changes(new: Object, old: Object, *, established: bool) -> Iterator[_Fault]:
    """Yield the faults of changed immutable fields."""
    for field in (*(("scope", "names.kind") if established else ()), "group", "names.plural"):
        steps = field.split(".")
        if (value := value_at(new, steps)) != value_at(old, steps):
            yield field_invalid(f"spec.{field}", value, "field is immutable")


def _stored_faults(spec: Object, stored: list[str] | None) -> Iterator[_Fault]:
    """Yield the faults of removed versions that may still have stored objects."""
    if not stored:
        yield field_invalid("status.storedVersions", stored, "must have at least one stored version")
    known = {version["name"] for version in _versions(spec)}
    for number, version in enumerate(stored or ()):
        if version not in known:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            yield field_invalid(f"status.storedVersions[{number}]", version, why)


def _approval(definition: Object) -> str:
    return str((definition["metadata"].get("annotations") or {}).get(_APPROVED, ""))


def _approval_faults(group: str, approval: str, before: str | None) -> Iterator[_Fault]:
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
