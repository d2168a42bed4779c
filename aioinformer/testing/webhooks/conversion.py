"""Conversion of custom resources between versions, by the webhook of their definition."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import StatusError
from aioinformer.testing.storage.codec import load, store
from aioinformer.testing.webhooks.calls import CallError, decode_answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredObject
    from aioinformer.testing.webhooks.calls import Caller

_API_VERSION, _KIND = "apiextensions.k8s.io/v1", "ConversionReview"
_TIMEOUT = 30
_CHANGEABLE = ("labels", "annotations")
"""The metadata that a conversion may change."""


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    converted_objects: list[dict[str, Any]] | None = None
    result: dict[str, Any] = {}


class _Review(msgspec.Struct, rename="camel"):
    response: _Response | None = None


class Conversions:
    """Converts objects between versions of their kind.

    Args:
        caller: Sends the reviews.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def convert(self, old: ResourceType, new: ResourceType, obj: Object | None) -> Object | None:
        """Return an object of one version in another.

        Raises:
            StatusError: 500 if the webhook fails or refuses.
        """
        if obj is None or old.api_version == new.api_version or obj.get("kind") != old.kind:
            return obj
        if (storage := old.storage or new.storage) is not None:
            (converted,) = await self._convert(storage.client_config, old, new, [obj])
            return converted
        plain = obj if old.conversion is None else old.conversion.to_stored(obj)
        if new.conversion is not None:
            plain = new.conversion.from_stored(plain)
        return {**plain, "apiVersion": new.api_version}

    async def show(
        self, resource: ResourceType, stored_objects: Iterable[StoredObject]
    ) -> list[StoredObject]:
        """Return stored objects as a version of their resource has them.

        Raises:
            StatusError: 500 if the webhook fails or refuses.
        """
        stored = list(stored_objects)
        if not resource.is_converted or not stored:
            return stored
        assert resource.storage is not None
        origin, config = resource.storage
        objects = [load(origin, obj) for obj in stored]
        return [store(resource, obj) for obj in await self._convert(config, origin, resource, objects)]

    async def _convert(
        self, client_config: Object, old: ResourceType, new: ResourceType, objects: list[Object]
    ) -> list[Object]:
        uid = str(uuid.uuid4())
        request = {"uid": uid, "desiredAPIVersion": new.api_version, "objects": objects}
        review = {"kind": _KIND, "apiVersion": _API_VERSION, "request": request}
        try:
            said = await self._caller.post(client_config, review, _TIMEOUT)
            answer: _Review = decode_answer(said, _Review)
            return _check(answer, uid, new, objects)
        except CallError as error:
            failed = f"conversion webhook for {old.api_version}, Kind={old.kind} failed: {error}"
            raise StatusError(500, "", failed) from error


def _check(answer: _Review, uid: str, new: ResourceType, objects: list[Object]) -> list[Object]:
    """Return the objects of an answer.

    Raises:
        CallError: It is a refusal, or invalid.
    """
    response = answer.response
    if response is None:
        raise CallError("invalid response: no response")
    if response.uid != uid:
        raise CallError(f'invalid response: expected response.uid="{uid}", got "{response.uid}"')
    if response.result.get("status") != "Success":
        raise CallError(response.result.get("message") or "unknown error")
    converted = response.converted_objects or []
    if len(converted) != len(objects):
        raise CallError(f"returned {len(converted)} objects, expected {len(objects)}")
    for number, (made, original) in enumerate(zip(converted, objects, strict=True)):
        if (made.get("apiVersion"), made.get("kind")) != (new.api_version, new.kind):
            raise CallError(
                f"returned invalid converted object at index {number}: expected {new.api_version}, Kind={new.kind}, "
                f"got {made.get('apiVersion')}, Kind={made.get('kind')}"
            )
        made["metadata"] = _metadata(made.get("metadata"), original["metadata"], number)
    return converted


def _metadata(made: Any, original: Object, number: int) -> Object:
    """Return the original's metadata with the labels and annotations of the converted object."""
    if not isinstance(made, dict):
        raise CallError(f"returned invalid metadata at index {number}: it is no object")
    for name in ("name", "namespace", "uid"):
        if made.get(name) != original.get(name):
            raise CallError(f"returned invalid metadata at index {number}: must have the same {name}")
    kept = {name: value for name, value in original.items() if name not in _CHANGEABLE}
    return kept | {name: made[name] for name in _CHANGEABLE if made.get(name)}
