"""Rules for the data of a Secret, with the real server's causes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.errors import field_invalid, field_required, field_too_long
from aioinformer.testing.rules.object_rules import MOST_DATA, key_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

_ACCOUNT = "kubernetes.io/service-account.name"
_BASIC_AUTH = ("username", "password")
_REQUIRED = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def secret_faults(secret: Object) -> Iterator[dict[str, str]]:
    """Yield the causes for invalid data, and for data that the Secret's type requires."""
    kind, data = secret.get("type") or "", _texts(secret)
    for key in data:
        yield from key_faults("data", key)
    if sum(map(len, data.values())) > MOST_DATA:
        yield field_too_long("data", MOST_DATA)
    if kind == "kubernetes.io/service-account-token":
        if not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield field_required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/basic-auth" and not data.keys() & {*_BASIC_AUTH}:
        yield from (field_required(f"data[{name}]") for name in _BASIC_AUTH)
    for name in _REQUIRED.get(kind, ()):
        if name not in data or (name == "ssh-privatekey" and not data[name]):
            yield field_required(f"data[{name}]")
        elif name.startswith(".docker") and not _is_json_object(data[name]):
            why = "the content is no JSON object"
            yield field_invalid(f"data[{name}]", "<secret contents redacted>", why)


def _texts(secret: Object) -> dict[str, bytes]:
    """Return the data with the `stringData`, which a write adds to it."""
    data = {name: base64.b64decode(value or "") for name, value in (secret.get("data") or {}).items()}
    return data | {name: (value or "").encode() for name, value in (secret.get("stringData") or {}).items()}


def _is_json_object(data: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(data), dict | None)
    except ValueError:
        return False
