"""Values of built-in kinds, normalized or refused as by Go's types, and written without zeros.

This covers the fields that operators write: data of ConfigMaps and Secrets, times, and counters in a status.
"""

from __future__ import annotations

import base64
import re
import string
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from aioinformer.testing import errors
from aioinformer.testing.custom import read_custom
from aioinformer.testing.objects import wrong_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

    _Read = Callable[[Any, str], Any]


class _UnreadableError(Exception):
    """A value does not fit the type of its field; the message is Go's."""


def decoded(
    resource: ResourceType, obj: Object, refused: Callable[[str], errors.StatusError] | None = None
) -> Object:
    """Return an object with its values in the form that the real server returns.

    Args:
        resource: The object's type.
        obj: The object; it is not modified.
        refused: Builds the error from Go's message; by default the error of writing a whole object.

    Raises:
        StatusError: A value does not fit the type of its field.
    """
    if resource.custom:
        return read_custom(resource, obj)[0]
    expected = _FIELDS.get(resource.kind) or (_FIELDS_OF_ANY if resource.has_status else {})
    try:
        taken: Object = _taken(obj, expected, resource.kind)
    except _UnreadableError as error:
        if refused is not None:
            raise refused(str(error)) from None
        kind, version = resource.kind, resource.version
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise errors.bad_request(why) from None
    return taken


def unpatched(patched: Object) -> Callable[[str], errors.StatusError]:
    """Return a function that builds the error of a patch with an invalid value."""

    def refused(why: str) -> errors.StatusError:
        causes = [errors.field_invalid("patch", msgspec.json.encode(patched).decode(), why)]
        return errors.invalid("", "", "", causes)

    return refused


def unapplied(resource: ResourceType, name: str) -> Callable[[str], errors.StatusError]:
    """Return a function that builds the error of an applied configuration with an invalid value."""
    kind = f"{resource.api_version if resource.group else f'/{resource.version}'}, Kind={resource.kind}"

    def refused(why: str) -> errors.StatusError:
        return errors.StatusError(
            500,
            "",
            f"failed to convert new object (/{name}; {kind}) to proper version: unable to convert unstructured "
            f"object to {kind}: {why}",
        )

    return refused


def without_zeros(obj: Object, kind: str) -> None:
    """Remove the zero counters that Go omits and add those that it always writes, in place."""
    counted = _COUNTED.get(kind)
    if counted is None:
        return
    part = obj.get(counted.part) or {}
    kept = {
        name: value
        for name, value in part.items()
        if value not in (None, 0, "", []) or (value is not None and name in counted.pointers)
    }
    obj[counted.part] = {name: part.get(name) or 0 for name in counted.always} | kept


def _taken(value: Any, expected: Any, field: str) -> Any:
    """Return a value normalized by the expected types, or the same value if nothing changes."""
    if value is None:
        return None
    if callable(expected):
        return expected(value, field)
    if isinstance(expected, list):
        if not isinstance(value, list):
            raise _UnreadableError(wrong_type(field, f"[]{_type_of(field)}", value))
        items = [_taken(each, expected[0], field) for each in value]
        return value if items == value else items
    if not isinstance(value, dict):
        raise _UnreadableError(wrong_type(field, _type_of(field), value))
    changed = value
    for name, part in expected.items():
        given = value.get(name)
        if given is not None:
            taken = _taken(given, part, f"{field}.{name}")
            if taken is not given:
                changed = {**changed, name: taken}
    return changed


def _type_of(field: str) -> str:
    kind, _, name = field.partition(".")
    suffix = _TYPES.get(name)
    return f"v1.{kind}{suffix}" if suffix else "v1.ObjectReference"


_TYPES = {"spec": "Spec", "status": "Status", "status.conditions": "Condition", "series": "Series"}


def _map_of(read: _Read, type_: str) -> _Read:
    def read_map(value: Any, field: str) -> Any:
        if not isinstance(value, dict):
            raise _UnreadableError(wrong_type(field, f"map[string]{type_}", value))
        entries = {key: "" if each is None else read(each, field) for key, each in value.items()}
        return value if entries == value else entries

    return read_map


def _string(value: Any, field: str, type_: str = "string") -> str:
    text: Any = value if isinstance(value, str) else msgspec.to_builtins(value)  # bytes, times: as in JSON
    if not isinstance(text, str):
        raise _UnreadableError(wrong_type(field, type_, text))
    return text


# What need not be read, as Go would write it the same: most values, and those that are stored.
_BASE64 = re.compile("[A-Za-z0-9+/]*(?:[AQgw]==|[AEIMQUYcgkosw048]=)?")
_MOMENT = (
    "[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
_BASE64_LETTERS = string.ascii_letters + string.digits + "+/"


def _base64(value: Any, field: str) -> str:
    given = _string(value, field, "[]uint8")
    if len(given) % 4 == 0 and _BASE64.fullmatch(given):
        return given
    try:
        return base64.b64encode(
            base64.b64decode(given.replace("\n", "").replace("\r", ""), validate=True)
        ).decode()
    except ValueError:
        good = len(given) - len(given.lstrip(_BASE64_LETTERS))
        place = good if good < len(given) else good // 4 * 4
        raise _UnreadableError(f"illegal base64 data at input byte {place}") from None


# The elements of Go's time layouts, each with its pattern.
_DATE = (
    *(("2006", "[0-9]{4}"), ("-", "-"), ("01", "[0-9]{2}"), ("-", "-"), ("02", "[0-9]{2}"), ("T", "T")),
    *(("15", "[0-9]{2}"), (":", ":"), ("04", "[0-9]{2}"), (":", ":")),
)
_ZONE = ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
_SECONDS = (*_DATE, ("05", r"[0-9]{2}([.,][0-9]+)?"), _ZONE)
_MICROSECONDS = (*_DATE, ("05", "[0-9]{2}"), (".000000", r"\.[0-9]{6}"), _ZONE)


def _time_of(layout: Sequence[tuple[str, str]], precision: str, fraction: str = "") -> _Read:
    canonical = re.compile(f"{_MOMENT}{fraction}Z")
    written = "".join(element for element, _ in layout)

    def read_time(value: Any, field: str) -> str:
        rest = text = _string(value, field)
        if canonical.fullmatch(text):
            return text
        for element, pattern in layout:
            found = re.match(pattern, rest)
            if found is None:
                why = f'parsing time "{text}" as "{written}": cannot parse "{rest}" as "{element}"'
                raise _UnreadableError(why)
            rest = rest[found.end() :]
        if rest:
            raise _UnreadableError(f'parsing time "{text}": extra text: "{rest}"')
        try:
            moment = datetime.fromisoformat(text.replace(",", ".")).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            part = str(error).partition(" ")[0]
            raise _UnreadableError(f'parsing time "{text}": {part} out of range') from None
        return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"

    return read_time


_STRINGS, _BYTES = _map_of(_string, "string"), _map_of(_base64, "[]uint8")
_TIME, _MICRO_TIME = _time_of(_SECONDS, "seconds"), _time_of(_MICROSECONDS, "microseconds", r"\.[0-9]{6}")

_CONDITIONS = [
    dict.fromkeys(("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"), _TIME)
]
_FIELDS_OF_ANY: dict[str, Any] = {"spec": {}, "status": {"conditions": _CONDITIONS}}
_FIELDS: dict[str, dict[str, Any]] = {
    "ConfigMap": {"data": _STRINGS, "binaryData": _BYTES},
    "Secret": {"data": _BYTES, "stringData": _STRINGS},
    "Lease": {"spec": {"acquireTime": _MICRO_TIME, "renewTime": _MICRO_TIME}},
    "Event": {
        "eventTime": _MICRO_TIME,
        "series": {"lastObservedTime": _MICRO_TIME},
        "firstTimestamp": _TIME,
        "lastTimestamp": _TIME,
        "deprecatedFirstTimestamp": _TIME,
        "deprecatedLastTimestamp": _TIME,
        "involvedObject": {},
        "regarding": {},
    }
    | dict.fromkeys(
        (
            "reason",
            "action",
            "note",
            "message",
            "reportingComponent",
            "reportingController",
            "reportingInstance",
        ),
        _string,
    ),
    "Job": {
        "spec": {},
        "status": {"conditions": _CONDITIONS, "startTime": _TIME, "completionTime": _TIME},
    },
    "Pod": {"spec": {}, "status": {"conditions": _CONDITIONS, "startTime": _TIME}},
}


class _Counted(NamedTuple):
    """The counters of a part of an object that Go writes although they are zero."""

    always: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    part: str = "status"


_COUNTED = {
    "CronJob": _Counted(),
    "DaemonSet": _Counted(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
        ("collisionCount",),
    ),
    "Deployment": _Counted(pointers=("terminatingReplicas", "collisionCount")),
    "HorizontalPodAutoscaler": _Counted(("desiredReplicas",), ("observedGeneration",)),
    "Job": _Counted(pointers=("terminating", "ready")),
    "Node": _Counted(part="spec"),
    "Pod": _Counted(),
    "PodDisruptionBudget": _Counted(
        ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    ),
    "ReplicaSet": _Counted(("replicas",), ("terminatingReplicas",)),
    "ReplicationController": _Counted(("replicas",)),
    "StatefulSet": _Counted(("replicas", "availableReplicas"), ("collisionCount",)),
}
