"""Values of built-in kinds as Go's types hold them: read or refused, and written without what is zero.

Of all fields only those that operators write themselves: data of ConfigMaps and Secrets, times, and what is counted in
a status.
"""

from __future__ import annotations

import base64
import re
import string
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from aioinformer.testing import errors
from aioinformer.testing.objects import wrong_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

    _Read = Callable[[Any, str], Any]


class _UnreadableError(Exception):
    """A value is not one of its field's type; the message is Go's."""


def decoded(
    resource: ResourceType, obj: Object, refused: Callable[[str], errors.StatusError] | None = None
) -> Object:
    """An object with its values in the form in which the real server gives them back.

    Args:
        resource: The object's type.
        obj: The object; it is not changed.
        refused: Makes the error of what Go says; that of an object which is written as a whole if None.

    Raises:
        StatusError: A value is not one of its field's type.
    """
    if resource.custom:
        return obj
    try:
        for steps, read, field in _reads(resource.kind, conditions=resource.has_status):
            obj = _with_read(obj, steps, read, field)
    except _UnreadableError as error:
        if refused is not None:
            raise refused(str(error)) from None
        kind, version = resource.kind, resource.version
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise errors.bad_request(why) from None
    return obj


def unpatched(patched: Object) -> Callable[[str], errors.StatusError]:
    """What makes the error of a patch that leaves an unreadable value."""

    def refused(why: str) -> errors.StatusError:
        shown = msgspec.json.encode(msgspec.json.encode(patched).decode()).decode()
        causes = [errors.cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", "patch")]
        return errors.invalid("", "", "", causes)

    return refused


def unapplied(resource: ResourceType, name: str) -> Callable[[str], errors.StatusError]:
    """What makes the error of a configuration with an unreadable value."""
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
    """Leave out what Go leaves out of a status that counts, and put in what it never does, in place."""
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


@cache
def _reads(kind: str, *, conditions: bool) -> list[tuple[list[str], _Read, str]]:
    """The paths of what is read of a kind, how it is read, and how Go names it."""
    fields = _FIELDS.get(kind, {}) | (_CONDITIONS if conditions else {})
    return [(path.split("."), read, f"{kind}.{path}") for path, read in fields.items()]


def _with_read(value: Any, steps: Sequence[str], read: _Read, field: str) -> Any:
    """A value with what is at a path in it read; lists on the way are gone through."""
    if not steps:
        return None if value is None else read(value, field)
    if isinstance(value, list):
        return [_with_read(each, steps, read, field) for each in value]
    if not isinstance(value, dict) or steps[0] not in value:
        return value
    return {**value, steps[0]: _with_read(value[steps[0]], steps[1:], read, field)}


def _map_of(read: _Read, type_: str) -> _Read:
    def read_map(value: Any, field: str) -> Any:
        if not isinstance(value, dict):
            raise _UnreadableError(wrong_type(field, f"map[string]{type_}", value))
        return {key: "" if each is None else read(each, field) for key, each in value.items()}

    return read_map


def _string(value: Any, field: str, type_: str = "string") -> str:
    text = value if isinstance(value, str) else msgspec.to_builtins(value)  # a datetime, bytes: as in JSON
    if not isinstance(text, str):
        raise _UnreadableError(wrong_type(field, type_, text))
    return text


_BASE64_LETTERS = string.ascii_letters + string.digits + "+/"


def _base64(value: Any, field: str) -> str:
    given = _string(value, field, "[]uint8")
    try:
        return base64.b64encode(
            base64.b64decode(given.replace("\n", "").replace("\r", ""), validate=True)
        ).decode()
    except ValueError:
        good = len(given) - len(given.lstrip(_BASE64_LETTERS))
        place = good if good < len(given) else good // 4 * 4
        raise _UnreadableError(f"illegal base64 data at input byte {place}") from None


# A layout's elements as Go writes them, each with what it takes.
_DATE = (
    *(("2006", "[0-9]{4}"), ("-", "-"), ("01", "[0-9]{2}"), ("-", "-"), ("02", "[0-9]{2}"), ("T", "T")),
    *(("15", "[0-9]{2}"), (":", ":"), ("04", "[0-9]{2}"), (":", ":")),
)
_ZONE = ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
_SECONDS = (*_DATE, ("05", r"[0-9]{2}([.,][0-9]+)?"), _ZONE)
_MICROSECONDS = (*_DATE, ("05", "[0-9]{2}"), (".000000", r"\.[0-9]{6}"), _ZONE)


def _time_of(layout: Sequence[tuple[str, str]], precision: str) -> _Read:
    written = "".join(element for element, _ in layout)

    def read_time(value: Any, field: str) -> str:
        rest = value = _string(value, field)
        for element, pattern in layout:
            found = re.match(pattern, rest)
            if found is None:
                why = f'parsing time "{value}" as "{written}": cannot parse "{rest}" as "{element}"'
                raise _UnreadableError(why)
            rest = rest[found.end() :]
        if rest:
            raise _UnreadableError(f'parsing time "{value}": extra text: "{rest}"')
        try:
            moment = datetime.fromisoformat(value.replace(",", ".")).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            part = str(error).partition(" ")[0]
            raise _UnreadableError(f'parsing time "{value}": {part} out of range') from None
        return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"

    return read_time


_STRINGS, _BYTES = _map_of(_string, "string"), _map_of(_base64, "[]uint8")
_TIME, _MICRO_TIME = _time_of(_SECONDS, "seconds"), _time_of(_MICROSECONDS, "microseconds")

_FIELDS: dict[str, dict[str, _Read]] = {
    "ConfigMap": {"data": _STRINGS, "binaryData": _BYTES},
    "Secret": {"data": _BYTES, "stringData": _STRINGS},
    "Lease": {"spec.acquireTime": _MICRO_TIME, "spec.renewTime": _MICRO_TIME},
    "Event": {
        "eventTime": _MICRO_TIME,
        "series.lastObservedTime": _MICRO_TIME,
        "firstTimestamp": _TIME,
        "lastTimestamp": _TIME,
        "deprecatedFirstTimestamp": _TIME,
        "deprecatedLastTimestamp": _TIME,
    },
    "Job": {"status.startTime": _TIME, "status.completionTime": _TIME},
    "Pod": {"status.startTime": _TIME},
}
_CONDITIONS: dict[str, _Read] = {
    f"status.conditions.{name}": _TIME
    for name in ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime")
}


class _Counted(NamedTuple):
    """Which of the fields of a part are there though zero."""

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
