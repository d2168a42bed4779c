"""JSON patches (RFC 6902) from an object to another state of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...objects.decoders import decoder_of
from ...objects.encoding import fields_of
from ...objects.json_values import same
from ...objects.kube_object import KubeObject
from ...objects.nesting import decode_any
from ...resources.merging import with_unknown_fields
from .deep_texts import DeepTexts
from .partial import StandIns

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
    if not isinstance(wanted, msgspec.Struct) or isinstance(wanted, KubeObject):
        return [*_steps(original, fields_of(wanted))]
    try:
        return [*_steps(original, with_unknown_fields(raw, wanted, original=original))]
    except RecursionError:
        return _deep_patch(original, wanted)


def _deep_patch(original: Any, wanted: msgspec.Struct) -> list[Step]:
    """As ``json_patch``, with texts in place of what is nested deeply, in fields whose type is open."""
    texts = DeepTexts()
    before = texts.cut(original)
    struct = decoder_of(type(wanted))(msgspec.json.encode(texts.cut(StandIns().write(wanted))), None)
    steps = _steps(before, with_unknown_fields(msgspec.json.encode(before), struct))
    return [
        {name: texts.restore(part) if name == "value" else part for name, part in step.items()}
        for step in steps
    ]


def apply_patch(fields: Step, steps: Iterable[Step]) -> None:
    """Change an object as the steps of ``json_patch`` say, which are about fields only."""
    for step in steps:
        at: Any = fields
        *parents, last = map(_unescape, step["path"].split("/")[1:])
        for name in parents:
            at = at[name]
        if step["op"] == "remove":
            del at[last]
        else:
            at[last] = step["value"]


def _steps(before: Any, after: Any) -> Iterator[Step]:
    """Yield the steps, at any nesting. A list that differs is replaced, because its indexes would move."""
    remaining = [("", before, after)]
    while remaining:
        path, old, new = remaining.pop()
        if old is new:
            continue
        if not (isinstance(old, dict) and isinstance(new, dict)):
            if not same(old, new):
                yield {"op": "replace", "path": path, "value": new}
            continue
        for name in old:
            at = f"{path}/{_escape(name)}"
            if name in new:
                remaining.append((at, old[name], new[name]))
            else:
                yield {"op": "remove", "path": at}
        for name in new:
            if name not in old:
                yield {"op": "add", "path": f"{path}/{_escape(name)}", "value": new[name]}


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _unescape(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")
