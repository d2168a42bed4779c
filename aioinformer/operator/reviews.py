"""Reviews: questions that the API server answers in the status of an object that it does not store."""

from __future__ import annotations

from typing import Any

import msgspec

from ..client import Client
from ..client.transport import Change
from ..objects.nesting import reader_of

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io/v1", "authorization.k8s.io/v1"

TIMEOUT = 10.0
"""Seconds for each answer."""


class _Review(msgspec.Struct):
    status: dict[str, Any] | None = None


_read_review = reader_of(_Review)


async def review(client: Client, api_version: str, kind: str, **fields: object) -> dict[str, Any]:
    """Return the status of a review that the server makes.

    Args:
        client: Asks the server.
        api_version: AUTHENTICATION or AUTHORIZATION.
        kind: ``"TokenReview"``.
        **fields: Such as ``spec``.

    Raises:
        AioInformerError: The server does not answer, or refuses.
    """
    change = Change("POST", msgspec.json.encode({"apiVersion": api_version, "kind": kind, **fields}))
    body = await client.send(change, f"/apis/{api_version}/{kind.lower()}s", timeout=TIMEOUT)
    return _read_review(body).status or {}
