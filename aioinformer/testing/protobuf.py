"""The little protobuf that `kubectl auth` and `kubectl create namespace`, `configmap`, `secret`, `serviceaccount` send.

kubectl writes what it makes itself, rather than reads from files, in the API's protobuf form. These kinds
are read here; for others the answer is 415, and a file (`kubectl apply -f`) or JSON works.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import bad_request, unsupported_media_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

# A message's fields by their numbers: the name, and "string", "bytes", "int", "bool", or a message; in a list of
# one for what repeats, in a tuple of one for a map's values.
_Schema = dict[int, tuple[str, Any]]

_OWNER: _Schema = {
    1: ("kind", "string"),
    3: ("name", "string"),
    4: ("uid", "string"),
    5: ("apiVersion", "string"),
    6: ("controller", "bool"),
    7: ("blockOwnerDeletion", "bool"),
}
_METADATA: _Schema = {
    1: ("name", "string"),
    2: ("generateName", "string"),
    3: ("namespace", "string"),
    5: ("uid", "string"),
    6: ("resourceVersion", "string"),
    11: ("labels", ("string",)),
    12: ("annotations", ("string",)),
    13: ("ownerReferences", [_OWNER]),
    14: ("finalizers", ["string"]),
}
_ACCESS: _Schema = {
    1: (
        "resourceAttributes",
        {
            1: ("namespace", "string"),
            2: ("verb", "string"),
            3: ("group", "string"),
            4: ("version", "string"),
            5: ("resource", "string"),
            6: ("subresource", "string"),
            7: ("name", "string"),
        },
    ),
    2: ("nonResourceAttributes", {1: ("path", "string"), 2: ("verb", "string")}),
}
_KINDS: dict[tuple[str, str], _Schema] = {
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: ("metadata", _METADATA)},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", _ACCESS),
    },
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", {1: ("namespace", "string")}),
    },
    ("v1", "ConfigMap"): {
        1: ("metadata", _METADATA),
        2: ("data", ("string",)),
        3: ("binaryData", ("bytes",)),
        4: ("immutable", "bool"),
    },
    ("v1", "Namespace"): {1: ("metadata", _METADATA), 2: ("spec", {1: ("finalizers", ["string"])})},
    ("v1", "Secret"): {
        1: ("metadata", _METADATA),
        2: ("data", ("bytes",)),
        3: ("type", "string"),
        4: ("stringData", ("string",)),
        5: ("immutable", "bool"),
    },
    ("v1", "ServiceAccount"): {
        1: ("metadata", _METADATA),
        2: ("secrets", [{3: ("name", "string")}]),
        3: ("imagePullSecrets", [{1: ("name", "string")}]),
        4: ("automountServiceAccountToken", "bool"),
    },
}
_ENVELOPE: _Schema = {1: ("type", {1: ("apiVersion", "string"), 2: ("kind", "string")})}


def decode(body: bytes) -> Object:
    """Read an object.

    Raises:
        StatusError: 400 for what is no protobuf, 415 for a kind that is not read here.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not in the Kubernetes protobuf form")
    try:
        envelope = body[len(_MAGIC) :]
        kind = _message(envelope, _ENVELOPE).get("type", {})
        content = b"".join(
            value for number, value in _fields(envelope) if number == 2 and isinstance(value, bytes)
        )
        schema = _KINDS.get((kind.get("apiVersion", ""), kind.get("kind", "")))
        if schema is None:
            raise unsupported_media_type(
                f"the embedded API server reads no protobuf of the kind {kind.get('kind')}: send JSON, as "
                "`kubectl apply -f` and `kubectl create -f` do"
            )
        return {**kind, **_message(content, schema)}
    except (IndexError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is no protobuf: {error}") from error


def _message(data: bytes, schema: _Schema) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in schema:
            continue
        name, kind = schema[number]
        if isinstance(kind, list):
            found.setdefault(name, []).append(_value(value, kind[0]))
        elif isinstance(kind, tuple):
            entry = _message(_bytes(value), {1: ("key", "string"), 2: ("value", kind[0])})
            found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif value not in (b"", 0):  # an empty field is one that is not set
            found[name] = _value(value, kind)
    return found


def _value(value: bytes | int, kind: Any) -> Any:
    if isinstance(kind, dict):
        return _message(_bytes(value), kind)
    match kind:
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case _:
            return value


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise IndexError("a number where bytes are due")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, by number: bytes, or numbers for varints."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield number, value
        elif wire == 2:
            length, place = _varint(data, place)
            if place + length > len(data):
                raise IndexError("a field is longer than the message")
            yield number, data[place : place + length]
            place += length
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise IndexError(f"unknown wire type {wire}")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7
