"""Request bodies, and which objects may replace the server's."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec
import msgspec.inspect

from ..errors import ConfigError, DecodeError
from ..objects.kube_object import KubeObject, encode


def body_of(fields: Any, what: str) -> bytes:
    """Return a dict or list as a request body.

    Args:
        fields: The dict or list.
        what: Names the request in messages.

    Raises:
        ConfigError: JSON cannot represent it. NaN and infinities count, too; msgspec would write null.
    """
    try:
        body = encode(fields)
        if b"null" in body:
            json.dumps(fields, allow_nan=False, skipkeys=True, default=repr)
    except (DecodeError, ValueError) as error:
        raise ConfigError(f"{what}: the request was not sent: {error}") from error
    return body


def is_partial(obj: Any) -> bool:
    """Return whether an object may lack fields that the server's has: a Struct drops those that it does not declare."""
    return isinstance(obj, msgspec.Struct) and not isinstance(obj, KubeObject) and not _is_whole(type(obj))


@lru_cache(maxsize=256)
def _is_whole(struct: type[msgspec.Struct]) -> bool:
    """Return whether decoding into a Struct, and into the Structs within it, keeps all fields."""
    found: set[type] = set()
    left: list[Any] = [msgspec.inspect.type_info(struct)]
    while left:
        part = left.pop()
        if isinstance(part, msgspec.inspect.StructType):
            if not part.forbid_unknown_fields:
                return False
            if part.cls in found:
                continue
            found.add(part.cls)
            left += [field.type for field in part.fields]
        for name in ("item_type", "key_type", "value_type", "types", "item_types"):
            inner = getattr(part, name, ())
            left += inner if isinstance(inner, tuple) else [inner]
    return True
