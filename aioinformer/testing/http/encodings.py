"""Encodings of answers: JSON, YAML and Kubernetes' protobuf."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.objects.meta import WatchEventType
from aioinformer.objects.protobuf.schema import message_of
from aioinformer.testing import protobuf
from aioinformer.testing.errors import MarshalError
from aioinformer.testing.http.yaml import dump

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.objects import Object

    Shown = Object | msgspec.Raw
    """An object, or its raw JSON, which a JSON answer contains unchanged."""

_to_json = msgspec.json.Encoder().encode


class Encoding(ABC):
    """An encoding of answers.

    Attributes:
        media_type: The media type of a body.
        stream_type: The media type of a watch; empty if it has none.
    """

    media_type: str
    stream_type: str = ""

    @abstractmethod
    def body(self, obj: Shown) -> bytes:
        """Return an object as a body."""

    @abstractmethod
    def event(self, kind: WatchEventType, obj: Shown) -> bytes:
        """Return an object as an event of a watch."""

    @abstractmethod
    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        """Yield a list as a body in pieces: the part before the items, each item, the part after them.

        An empty piece marks a place where other tasks may run.

        Args:
            listed: The list, with the value of `items` for an empty list.
            items: The items.
        """


class _Json(Encoding):
    media_type = stream_type = "application/json"

    def body(self, obj: Shown) -> bytes:
        return _to_json(obj) + b"\n"

    def event(self, kind: WatchEventType, obj: Shown) -> bytes:
        return _to_json({"type": kind, "object": obj}) + b"\n"

    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        nothing = b'"items":' + _to_json(listed["items"])
        head, tail = _to_json(listed).split(nothing, 1)  # inside JSON strings quotes are escaped
        yield head
        separator = b'"items":['
        for item in items:
            yield separator + _to_json(item)
            separator = b","
        yield b"%b%b\n" % (b"]" if separator == b"," else nothing, tail)


class _Yaml(Encoding):
    media_type = "application/yaml"

    def body(self, obj: Shown) -> bytes:
        return dump(_decode(obj))

    def event(self, kind: WatchEventType, obj: Shown) -> bytes:
        raise NotImplementedError("the real server has no watches in YAML either")

    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        rest = dict(listed)
        yield dump({"apiVersion": rest.pop("apiVersion")})
        nothing, key = dump({"items": rest.pop("items")}), b"items:\n"
        for item in items:
            yield key + dump([_decode(item)])
            key = b""
        yield (nothing if key else b"") + dump(rest)


class _Protobuf(Encoding):
    media_type = "application/vnd.kubernetes.protobuf"
    stream_type = f"{media_type};stream=watch"

    def body(self, obj: Shown) -> bytes:
        obj = _decode(obj)
        api_version, kind = obj["apiVersion"], obj["kind"]
        return protobuf.envelope(api_version, kind, _marshal(api_version, kind, obj))

    def event(self, kind: WatchEventType, obj: Shown) -> bytes:
        obj = _decode(obj)
        if kind == WatchEventType.ERROR:  # tests may leave out its type
            obj = {"apiVersion": "v1", "kind": "Status", **obj}
        return protobuf.frame(kind, self.body(obj))

    def page(self, listed: Object, items: Iterable[Shown]) -> Iterator[bytes]:
        api_version, kind = listed["apiVersion"], listed["kind"]
        of = kind.removesuffix("List")
        messages = (_marshal(api_version, of, _decode(item)) for item in items)
        return protobuf.envelope_of_list(api_version, kind, listed["metadata"], messages)


def _marshal(api_version: str, kind: str, obj: Object) -> bytes:
    name = message_of(api_version, kind)
    if name is None:
        raise MarshalError(f"there is no protobuf of the kind {kind} of {api_version}")
    return protobuf.marshaller(name)(obj)


def _decode(obj: Shown) -> Object:
    if isinstance(obj, msgspec.Raw):
        decoded: Any = msgspec.json.decode(obj)
        return dict(decoded)
    return obj


JSON = _Json()
YAML = _Yaml()
PROTOBUF = _Protobuf()
ENCODINGS: tuple[Encoding, ...] = (JSON, YAML, PROTOBUF)
"""The encodings that the server offers, most preferred first."""
