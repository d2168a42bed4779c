"""Objects as text, for scripts and traces of queues and stores.

An object is ``namespace/name@version``, followed by marks and by values for the indexes: ``n/a@3!*#red,blue``.

    !   the transformer fails on it
    ~   it has been transformed
    *   the index functions fail on it
    #   the index values follow

``?n/a=n/a@3`` is a tombstone with its last state, ``?n/a`` one without; ``-1`` is an object without metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from aioinformer import DeletedFinalStateUnknown, KubeObject
from aioinformer.cache import Delta, DeltaType
from aioinformer.deltas import BookmarkInfo, ReplacedAllInfo, SyncAllInfo


@lru_cache(maxsize=100_000)
def parse(text: str) -> Any:
    """Return the object, tombstone or keyless object of a text."""
    if text.startswith("-"):
        return {"text": text}
    if text.startswith("?"):
        key, known, last = text[1:].partition("=")
        return DeletedFinalStateUnknown(key, parse(last) if known else None)
    head = text.partition("#")[0]
    key, _, version = head.partition("@")
    namespace, _, name = key.rpartition("/")
    version = version.rstrip("!~*")
    return KubeObject.from_dict(
        {"metadata": {"namespace": namespace, "name": name, "uid": text, "resourceVersion": version}}
    )


def parse_delta(text: str) -> Delta:
    """Return the delta of a text: ``Added n/a@1``."""
    kind, _, obj = text.partition(" ")
    return Delta(DeltaType(kind), parse(obj))


def show(obj: Any) -> str:
    """Return the text of an object that ``parse`` returns, or of another value in a delta."""
    if type(obj) is KubeObject:
        return obj.uid
    match obj:
        case None:
            return "nil"
        case DeletedFinalStateUnknown():
            return f"?{obj.key}" if obj.obj is None else f"?{obj.key}={show(obj.obj)}"
        case ReplacedAllInfo():
            return f"{obj.resource_version}[{' '.join(map(show, obj.objects))}]"
        case BookmarkInfo():
            return obj.resource_version
        case SyncAllInfo():
            return "all"
        case dict():
            return str(obj["text"])
        case _:
            return repr(obj)


def show_deltas(deltas: Sequence[Delta]) -> str:
    """Return the texts of deltas."""
    return ", ".join([f"{delta.type} {show(delta.object)}" for delta in deltas])


def key_of(text: str) -> str | None:
    """Return the key of an object's or tombstone's text; None without a key."""
    if text.startswith("-"):
        return None
    return text[1:].partition("=")[0] if text.startswith("?") else text.partition("@")[0]


def is_keyless(text: str) -> bool:
    return text.startswith("-")


def fails_to_transform(text: str) -> bool:
    """Whether a transformer fails on the object of a text."""
    head = text.partition("#")[0]
    return "!" in head and "~" not in head and not text.startswith(("?", "-"))


class Transformer:
    """A transformer that marks objects as transformed, each object once.

    Attributes:
        calls: The number of calls for objects.
    """

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, obj: Any) -> Any:
        if not isinstance(obj, KubeObject):
            return obj
        self.calls += 1
        text = obj.uid
        if fails_to_transform(text):
            raise ValueError("the transformer failed")
        return _transform(text)


@lru_cache(maxsize=100_000)
def _transform(text: str) -> Any:
    head, listed, values = text.partition("#")
    return parse(text if "~" in head else f"{head}~{listed}{values}")
