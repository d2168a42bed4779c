"""Events: one object in two groups with other field names, and its validation (``core/validation/events.go``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.objects.labels import label_key_faults
from aioinformer.testing.errors import field_invalid, field_required, invalid

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

GROUP = "events.k8s.io"

_NAMES = {
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""The fields of events.k8s.io, in its order, and their names in the core group."""

_CORE_ORDER = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "series", "action", "related", "reportingComponent", "reportingInstance"),
)
_NEW_NAMES = {core: new for new, core in _NAMES.items()}
_ALWAYS_IN_CORE = ("reportingComponent", "reportingInstance")

_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_FIXED: dict[str, Any] = {
    "involvedObject": {},
    "reason": "",
    "message": "",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 0,
    "type": "",
    "eventTime": None,
    "action": "",
    "related": None,
    "reportingController": "",
    "reportingInstance": "",
}
"""The fields that an update in events.k8s.io cannot change, and their zeros."""


def to_core(event: Object) -> Object:
    """Return an event of events.k8s.io as one of the core group."""
    renamed = {_NAMES.get(name, name): value for name, value in event.items()}
    return _order(renamed, _CORE_ORDER)


def from_core(event: Object) -> Object:
    """Return an event of the core group as one of events.k8s.io."""
    kept = {name: value for name, value in event.items() if value != "" or name not in _ALWAYS_IN_CORE}
    return _order({_NEW_NAMES.get(name, name): value for name, value in kept.items()}, tuple(_NAMES))


def _order(event: Object, order: tuple[str, ...]) -> Object:
    others = {name: value for name, value in event.items() if name not in order}
    return others | {name: event[name] for name in order if name in event}


def check_event(resource: ResourceType, new: Object, old: Object | None) -> None:
    """Check that an event is complete, and that an update in events.k8s.io changes the series only.

    Raises:
        StatusError: 422 with every cause, which names the fields of the core group.
    """
    strict = resource.group == GROUP
    if strict:
        new, old = to_core(new), None if old is None else to_core(old)
    causes = _faults(new, "reportingController" if strict else "reportingComponent")
    if strict:
        causes += _faults_of_create(new) if old is None else _faults_of_update(new, old)
    if causes:
        raise invalid(resource.kind, "", new["metadata"].get("name", ""), causes)


def _faults(event: Object, controller: str) -> list[dict[str, str]]:
    """Return the faults that both groups check; an eventTime makes it an event of the new kind."""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    namespace = event["metadata"].get("namespace")
    if not event.get("eventTime"):
        fits = about == namespace or (not about and namespace == "default")
        return [] if fits else [_namespace_mismatch(about)]
    faults = [] if about or namespace in ("default", "kube-system") else [_namespace_mismatch("")]
    reporter = event.get("reportingComponent") or ""
    if not reporter:
        faults.append(field_required(controller))
    faults += [field_invalid(controller, reporter, fault) for fault in label_key_faults(reporter)]
    faults += [
        field_required(name) for name in ("reportingInstance", "action", "reason") if not event.get(name)
    ]
    for name, longest in _LONGEST.items():
        if len((event.get(name) or "").encode()) > longest:
            faults.append(field_invalid(name, "", f"can have at most {longest} characters"))
    return faults


def _namespace_mismatch(namespace: str) -> dict[str, str]:
    return field_invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _faults_of_create(event: Object) -> list[dict[str, str]]:
    faults = _faults_of_series(event)
    if not event.get("eventTime"):
        faults.append(field_required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        faults.append(field_invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
    deprecated = ("firstTimestamp", "lastTimestamp", "count", "source")
    return faults + [field_invalid(name, "", "needs to be unset") for name in deprecated if event.get(name)]


def _faults_of_update(new: Object, old: Object) -> list[dict[str, str]]:
    faults = [] if new.get("series") == old.get("series") else _faults_of_series(new)
    for name, zero in _FIXED.items():
        here = _NAMES.get(name, name)
        if (value := new.get(here) or zero) != (old.get(here) or zero):
            faults.append(field_invalid(name, value, "field is immutable"))
    return faults


def _faults_of_series(event: Object) -> list[dict[str, str]]:
    series, faults = event.get("series"), []
    if series is not None:
        if (series.get("count") or 0) < 2:
            faults.append(field_invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            faults.append(field_required("series.lastObservedTime"))
    return faults
