"""What the server checks about events.k8s.io/v1 Events (kube-apiserver ``core/validation/events.go``).

Core v1 Events are other objects here; the real server shows each in both forms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aioinformer.testing.errors import cause, invalid

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

GROUP = "events.k8s.io"

_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128}
_LONGEST_NOTE = 1024
_CONTROLLER = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
)
_FIXED = (
    *("regarding", "related", "reason", "note", "type", "action", "eventTime"),
    *("reportingController", "reportingInstance"),
)


def check_event(resource: ResourceType, new: Object, old: Object | None) -> None:
    """Refuse an event that is not complete, or one of which more than the series would change.

    Raises:
        StatusError: 422, naming every cause.
    """
    causes = _faults(new)
    if old is not None:
        why = "Invalid value: field is immutable"
        causes += [cause("FieldValueInvalid", why, name) for name in _FIXED if new.get(name) != old.get(name)]
    if causes:
        raise invalid(resource.kind, resource.group, new["metadata"].get("name", ""), causes)


def _faults(event: Object) -> list[dict[str, str]]:
    faults = [
        cause("FieldValueRequired", "Required value", name)
        for name in ("reportingController", "reportingInstance", "action", "reason", "eventTime")
        if not event.get(name)
    ]
    regarding = event.get("regarding") or {}
    namespace = event["metadata"].get("namespace")
    if not regarding.get("namespace") and namespace not in ("default", "kube-system"):
        why = 'Invalid value: "": does not match event.namespace'
        faults.append(cause("FieldValueInvalid", why, "involvedObject.namespace"))
    controller = event.get("reportingController") or ""
    if controller and not _CONTROLLER.fullmatch(controller):
        why = f'Invalid value: "{controller}": name part must consist of alphanumeric characters'
        faults.append(cause("FieldValueInvalid", why, "reportingController"))
    for name, longest in _LONGEST.items():
        if len((event.get(name) or "").encode()) > longest:
            why = f'Invalid value: "": can have at most {longest} characters'
            faults.append(cause("FieldValueInvalid", why, name))
    if len((event.get("note") or "").encode()) > _LONGEST_NOTE:
        why = f'Invalid value: "": can have at most {_LONGEST_NOTE} characters'
        faults.append(cause("FieldValueInvalid", why, "message"))
    if event.get("type") not in ("Normal", "Warning"):
        why = f'Invalid value: "": has invalid value: {event.get("type", "")}'
        faults.append(cause("FieldValueInvalid", why, "type"))
    series = event.get("series")
    if series is not None:
        if series.get("count", 0) < 2:
            why = 'Invalid value: "": should be at least 2'
            faults.append(cause("FieldValueInvalid", why, "series.count"))
        if not series.get("lastObservedTime"):
            faults.append(cause("FieldValueRequired", "Required value", "series.lastObservedTime"))
    return faults
