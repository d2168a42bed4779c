"""Reads the bytes of reviews, whose objects may be nested as deeply as the API server permits."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ...objects.nesting import decode_parts

T = TypeVar("T")


def decode_review(decoder: msgspec.json.Decoder[T], body: bytes | bytearray) -> T:
    """Decode a review; its objects stay bytes.

    Raises:
        DECODE_ERRORS: It is no review.
    """
    try:
        return decoder.decode(body)
    except RecursionError:
        review = decode_parts(bytes(body))
    request = review.get("request")
    if isinstance(request, dict):
        for name in ("object", "oldObject"):
            if name in request:
                request[name] = _raw(request[name])
        if isinstance(objects := request.get("objects"), list):
            request["objects"] = [_raw(part) for part in objects]
    return msgspec.convert(review, decoder.type)


def _raw(part: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(part))
