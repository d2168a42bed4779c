"""Decode protobuf answers into JSON objects; raise for malformed answers."""

from __future__ import annotations

from typing import Any

from aioinformer.objects.protobuf import pieces, read_envelope, read_event
from aioinformer.objects.protobuf.messages import message
from aioinformer.objects.protobuf.schema import message_of

PROTOBUF = "application/vnd.kubernetes.protobuf"
AS_PARTIAL = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AS_PARTIAL_LIST = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Object = dict[str, Any]

_METADATA, _ITEM = 1 << 3 | 2, 2 << 3 | 2


def decode(body: bytes, begin: int = 0, end: int | None = None) -> Object:
    """The object or list that a body, or a part of it, is."""
    (api_version, kind), begin, end = read_envelope(body, begin, len(body) if end is None else end)
    name = message_of(api_version, kind.removesuffix("List"))
    assert name is not None, (api_version, kind)
    obj: Object = {"kind": kind, "apiVersion": api_version}
    if not kind.endswith("List"):
        return obj | message(name).read(body, begin, end)
    obj["items"] = []
    for tag, at, stop in pieces(body, begin, end):
        if tag == _METADATA:
            obj["metadata"] = message("meta/v1.ListMeta").read(body, at, stop)
        else:
            assert tag == _ITEM
            obj["items"].append(message(name).read(body, at, stop))
    return obj


def read_frames(stream: bytes) -> list[Object]:
    """The events of a watch that has ended between two of them."""
    events: list[Object] = []
    at = 0
    while at < len(stream):
        begin = at + 4
        at = begin + int.from_bytes(stream[at:begin], "big")
        assert at <= len(stream), stream[begin:]
        kind, *place = read_event(stream, begin, at)
        events.append({"type": kind, "object": decode(stream, *place)})
    return events
