"""JSON patches (RFC 6902) from an object to another state of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...objects.encoding import fields_of
from ...objects.json_values import same
from ...objects.kube_object import KubeObject
from ...objects.nesting import decode_any
from ...resources.merging import with_unknown_fields

Step = dict[str, Any]


def json_patch(raw: bytes, wanted: Any) -> list[Step]:
    """Return the steps from an object to a wanted state. Fields that a Struct does not have stay.

    Args:
        raw: The object's JSON.
        wanted: A Struct, a KubeObject or a dict.

    Raises:
        DecodeError: The object does not fit the Struct.
        AmbiguousEditError: A Struct does not say which item of a list was changed.
    """
    original = decode_any(raw)
    if isinstance(wanted, msgspec.Struct) and not isinstance(wanted, KubeObject):
        fields = with_unknown_fields(raw, wanted, original=original)
    else:
        fields = fields_of(wanted)
    return [*_steps("", original, fields)]


def apply_patch(fields: Step, steps: Iterable[Step]) -> None:
    """Change an object as the steps of ``json_patch`` say, which are about fields only."""
    for step in steps:
        at: Any = fields
        *parents, last = map(_unescaped, step["path"].split("/")[1:])
        for name in parents:
            at = at[name]
        if step["op"] == "remove":
            del at[last]
        else:
            at[last] = step["value"]


def _steps(path: str, old: Any, new: Any) -> Iterator[Step]:
    """Yield the steps for one value. A list that differs is replaced, because its indexes would move."""
    if old is new:
        return
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if not same(old, new):
            yield {"op": "replace", "path": path, "value": new}
        return
    for name in old:
        at = f"{path}/{_escaped(name)}"
        if name in new:
            yield from _steps(at, old[name], new[name])
        else:
            yield {"op": "remove", "path": at}
    for name in new:
        if name not in old:
            yield {"op": "add", "path": f"{path}/{_escaped(name)}", "value": new[name]}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _unescaped(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")
