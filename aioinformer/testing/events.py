"""Validation of Events of events.k8s.io and of the core group (``core/validation/events.go``).

Here they are separate objects; the real server shows each object in both groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.objects.labels import label_key_faults
from aioinformer.testing.errors import cause, field_invalid, field_required, invalid

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

GROUP = "events.k8s.io"

_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128}
_LONGEST_NOTE = 1024
_FIXED = (
    *("regarding", "related", "reason", "note", "type", "action", "eventTime"),
    *("reportingController", "reportingInstance"),
)


def check_event(resource: ResourceType, new: Object, old: Object | None) -> None:
    """Check that an event is complete, and that an update in events.k8s.io changes the series only.

    Raises:
        StatusError: 422 with every cause.
    """
    if resource.group != GROUP:
        causes = _core_faults(new)
    else:
        causes = _faults(new, "regarding", "reportingController", "note") + _faults_of_form(new)
    if old is not None and resource.group == GROUP:
        why = "Invalid value: field is immutable"
        causes += [cause("FieldValueInvalid", why, name) for name in _FIXED if new.get(name) != old.get(name)]
    if causes:
        raise invalid(resource.kind, resource.group, new["metadata"].get("name", ""), causes)


def _core_faults(event: Object) -> list[dict[str, str]]:
    """Return the faults of a core event; an eventTime makes it an event of the new kind."""
    if event.get("eventTime"):
        return _faults(event, "involvedObject", "reportingComponent", "message")
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    namespace = event["metadata"].get("namespace")
    return [] if about == namespace or (not about and namespace == "default") else [_misplaced(about)]


def _misplaced(namespace: str) -> dict[str, str]:
    return field_invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _faults(event: Object, about: str, controller: str, note: str) -> list[dict[str, str]]:
    """Return the faults of an event of the new kind, with its group's field names."""
    faults = [
        field_required(name)
        for name in (controller, "reportingInstance", "action", "reason", "eventTime")
        if not event.get(name)
    ]
    namespace = event["metadata"].get("namespace")
    if not (event.get(about) or {}).get("namespace") and namespace not in ("default", "kube-system"):
        faults.append(_misplaced(""))
    reporter = event.get(controller) or ""
    faults += [field_invalid(controller, reporter, fault) for fault in label_key_faults(reporter)]
    for name, longest in _LONGEST.items():
        if len((event.get(name) or "").encode()) > longest:
            faults.append(field_invalid(name, "", f"can have at most {longest} characters"))
    if len((event.get(note) or "").encode()) > _LONGEST_NOTE:
        faults.append(field_invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    return faults


def _faults_of_form(event: Object) -> list[dict[str, str]]:
    """Return the faults that only events.k8s.io checks."""
    faults = []
    if event.get("type") not in ("Normal", "Warning"):
        faults.append(field_invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    series = event.get("series")
    if series is not None:
        if series.get("count", 0) < 2:
            faults.append(field_invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            faults.append(field_required("series.lastObservedTime"))
    return faults
