"""How answers are written: as JSON, or as Kubernetes' protobuf. The only place that knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.objects.protobuf.schema import message_of
from aioinformer.testing import protobuf
from aioinformer.testing.errors import MarshalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.objects import Object

    Shown = Object | msgspec.Raw
    """An object, or its JSON, which goes out unread as JSON."""

_to_json = msgspec.json.Encoder().encode


class Encoding(ABC):
    """How answers are written.

    Attributes:
        media_type: Of a body.
        stream_type: Of a watch.
    """

    media_type: str
    stream_type: str

    @abstractmethod
    def body(self, obj: Shown) -> bytes:
        """An object as a body."""

    @abstractmethod
    def event(self, kind: str, obj: Shown) -> bytes:
        """An object as an event of a watch."""

    @abstractmethod
    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        """A list as a body, in pieces: all before the items, each of them, all behind them.

        Between them may be empty ones, where others may have a turn.

        Args:
            listed: The list, with what it has for items where there are none.
            items: Its items; as JSON they are shown as they are here.
        """


class _Json(Encoding):
    media_type = stream_type = "application/json"

    def body(self, obj: Shown) -> bytes:
        return _to_json(obj) + b"\n"

    def event(self, kind: str, obj: Shown) -> bytes:
        return _to_json({"type": kind, "object": obj}) + b"\n"

    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        nothing = b'"items":' + _to_json(listed["items"])
        head, tail = _to_json(listed).split(nothing, 1)  # within texts there are no such quotes
        yield head
        separator = b'"items":['
        for item in items:
            yield separator + _to_json(item)
            separator = b","
        yield b"%b%b\n" % (b"]" if separator == b"," else nothing, tail)


class _Protobuf(Encoding):
    media_type = "application/vnd.kubernetes.protobuf"
    stream_type = f"{media_type};stream=watch"

    def body(self, obj: Shown) -> bytes:
        obj = _decoded(obj)
        api_version, kind = obj["apiVersion"], obj["kind"]
        return protobuf.envelope(api_version, kind, _marshal(api_version, kind, obj))

    def event(self, kind: str, obj: Shown) -> bytes:
        obj = _decoded(obj)
        if kind == "ERROR":  # of which tests send what they like
            obj = {"apiVersion": "v1", "kind": "Status", **obj}
        return protobuf.frame(kind, self.body(obj))

    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        api_version, kind = listed["apiVersion"], listed["kind"]
        of = kind.removesuffix("List")
        messages = (_marshal(api_version, of, _decoded(item)) for item in items)
        return protobuf.envelope_of_list(api_version, kind, listed["metadata"], messages)


def _marshal(api_version: str, kind: str, obj: Object) -> bytes:
    name = message_of(api_version, kind)
    if name is None:
        raise MarshalError(f"there is no protobuf of the kind {kind} of {api_version}")
    return protobuf.marshaller(name)(obj)


def _decoded(obj: Shown) -> Object:
    if isinstance(obj, msgspec.Raw):
        decoded: Any = msgspec.json.decode(obj)
        return dict(decoded)
    return obj


JSON = _Json()
PROTOBUF = _Protobuf()
ENCODINGS: tuple[Encoding, ...] = (JSON, PROTOBUF)
"""Those that are offered, in the order in which they are preferred."""
