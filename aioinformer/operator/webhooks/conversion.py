"""Conversion between the versions of a CustomResource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..._core.callables import callable_name
from ..._core.cancellation import maybe_await
from ..._core.coop import Budget
from ...client.lookup import resource_of_class
from ...errors import ConfigError, DecodeError, Denied, InvalidResultError
from ...objects.api_resources import APIResource
from ...objects.brackets import crossings
from ...objects.decoders import decoder_of
from ...objects.encoding import fields_of
from ...objects.nested_encoding import encode_nested
from ...objects.nesting import decode_any, reader_of
from ...typed import CustomResource
from ..declarations import require_handler
from ..kinds import resource_named
from ..mistakes import Mistakes
from .partial import StandIns
from .review import AdmissionRequest

KindClass = type[CustomResource]

MOST_LEVELS_OF_ANSWER = 9_997
"""Levels of an object that the API server can read in the answer, which adds three of its own."""
_READ_METADATA = ("name", "namespace", "uid", "labels", "annotations")
"""The metadata that the API server reads of an answer."""


class ConversionRequest(msgspec.Struct, rename={"desired": "desiredAPIVersion"}):
    """What the API server sends (``apiextensions/v1 ConversionRequest``)."""

    uid: str
    desired: str
    objects: list[msgspec.Raw]


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str
    metadata: dict[str, Any] = {}


_read_head = reader_of(_Typed)
OnUnfit = Callable[[str, Exception], None]
"""Called for an object that no function could convert, with its name and the error."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A function from one version of a kind to another."""

    old: KindClass
    new: KindClass
    function: Callable[[Any], Any]

    def check(self, operator: str, others: Iterable[Conversion]) -> None:
        """Check the declaration.

        Raises:
            ConfigError: It is invalid; the message has all mistakes.
        """
        called = getattr(self.function, "__name__", repr(self.function))
        mistakes = Mistakes(f"{operator}: convert {called}")
        mistakes.of(require_handler, "convert", self.function, "old")
        named: tuple[Any, Any] = (self.old, self.new)
        for kind in named:
            if not (isinstance(kind, type) and issubclass(kind, CustomResource)):
                mistakes.add(f"convert takes two CustomResource classes, not {kind!r}")
        mistakes.raise_if_any()
        old, new = mistakes.of(resource_named, self.old), mistakes.of(resource_named, self.new)
        if old and new:
            if (old.group, old.plural) != (new.group, new.plural):
                mistakes.add(f"{old} and {new} are different kinds: convert between versions of one kind")
            elif old.version == new.version:
                mistakes.add(
                    f"{self.old.__name__} and {self.new.__name__} are the same version {old.version}"
                )
        if any((other.old, other.new) == (self.old, self.new) for other in others):
            mistakes.add(
                f"there is a conversion from {self.old.__name__} to {self.new.__name__} already: remove one"
            )
        mistakes.raise_if_any()


class Converter:
    """Converts objects of one kind between all its versions.

    Args:
        conversions: Of the kind.

    Attributes:
        path: Where the API server calls it.
        on_unfit: Called for objects that stay as they are.

    Raises:
        ConfigError: There is no way between two versions.
    """

    def __init__(self, conversions: Sequence[Conversion]) -> None:
        self.on_unfit: OnUnfit = lambda key, error: None
        resource = resource_of_class(conversions[0].old)
        self.name = str(resource)
        self.path = f"/convert/{self.name}"
        classes = dict.fromkeys(
            kind for conversion in conversions for kind in (conversion.old, conversion.new)
        )
        self._classes = {resource_of_class(kind).api_version: kind for kind in classes}
        self._steps = conversions
        self._ways: dict[tuple[KindClass, KindClass], list[Conversion]] = {}
        mistakes = Mistakes(f"the conversions of {self.name}")
        for old in classes:
            for new in classes:
                way = self._find_path(old, new)
                if way is None:
                    mistakes.add(
                        f"there is no way from {old.__name__} to {new.__name__}: add "
                        f"@operator.convert({old.__name__}, {new.__name__})"
                    )
                else:
                    self._ways[old, new] = way
        mistakes.raise_if_any()

    def _find_path(self, old: KindClass, new: KindClass) -> list[Conversion] | None:
        """Return the fewest steps from one version to another."""
        ways: dict[KindClass, list[Conversion]] = {old: []}
        waiting = [old]
        for at in waiting:
            for step in self._steps:
                if step.old is at and step.new not in ways:
                    ways[step.new] = [*ways[at], step]
                    waiting.append(step.new)
        return ways.get(new)

    async def answer(self, request: ConversionRequest) -> dict[str, Any]:
        """Return the ConversionResponse."""
        budget = Budget()
        converted = []
        try:
            for raw in request.objects:
                converted.append(await self._convert(bytes(raw), request.desired))
                if budget.is_spent():
                    await budget.pause()
        except Denied as denial:
            return {"uid": request.uid, "result": {"status": "Failure", "message": str(denial)}}
        return {"uid": request.uid, "convertedObjects": converted, "result": {"status": "Success"}}

    async def convert_review(self, desired: APIResource, request: AdmissionRequest) -> AdmissionRequest:
        """Return a request for admission with its objects in another version.

        During a rolling update, pods get objects of the version that the other release has registered.
        """
        if request.kind.version in ("", desired.version):
            return request
        objects = {
            name: await self._convert(bytes(raw), desired.api_version)
            for name, raw in (("object", request.object), ("old_object", request.old_object))
            if bytes(raw) != b"null"
        }
        kind = msgspec.structs.replace(request.kind, version=desired.version)
        return msgspec.structs.replace(request, kind=kind, **objects)

    async def _convert(self, raw: bytes, desired: str) -> msgspec.Raw:
        head = _read_head(raw)
        old, new = self._classes.get(head.api_version), self._classes.get(desired)
        if old is None or new is None:
            raise ConfigError(
                f"{self.name}: no conversion from {head.api_version} to {desired}, only between "
                f"{', '.join(self._classes)}"
            )
        way = self._ways[old, new]
        try:
            obj: Any = decoder_of(old)(raw, None)
        except DecodeError:
            fields = await self._unfit(decode_any(raw), old, way)
        else:
            fields = _fields(await _through(way, obj))
        whole = {**fields, "apiVersion": desired, "metadata": _metadata(head.metadata, fields)}
        try:
            return msgspec.Raw(msgspec.json.encode(whole))
        except RecursionError:
            pass
        # The server restores metadata but labels and annotations. Managed fields are nested more than what they are of.
        whole["metadata"] = {
            name: value for name, value in whole["metadata"].items() if name in _READ_METADATA
        }
        encoded = encode_nested(whole)
        if any(crossings(encoded, first=MOST_LEVELS_OF_ANSWER + 1)):
            # The server stores it and could not read the answer, so it would fail the whole list.
            self.on_unfit(
                _key(whole), DecodeError(f"it is nested more than {MOST_LEVELS_OF_ANSWER} levels deep")
            )
            encoded = encode_nested(
                {name: whole[name] for name in ("apiVersion", "kind", "metadata") if name in whole}
            )
        return msgspec.Raw(encoded)

    async def _unfit(
        self, fields: dict[str, Any], old: KindClass, way: Sequence[Conversion]
    ) -> dict[str, Any]:
        """Return an object that its class cannot hold, converted as far as it is there.

        The server sends partial objects in a server-side apply. An object that a function cannot convert without what
        is missing keeps its fields: it must not fail the others of a list, and no field is guessed.
        """
        stand_ins = StandIns()
        try:
            return stand_ins.write(await _through(way, stand_ins.read(fields, old)))
        except (Denied, InvalidResultError):
            raise
        except Exception as error:  # of the user's function, which got stand-ins
            self.on_unfit(_key(fields), error)
            return fields


async def _through(way: Iterable[Conversion], obj: Any) -> Any:
    """Return an object after the steps to another version."""
    for step in way:
        obj = await maybe_await(step.function(obj))
        if not isinstance(obj, step.new):
            raise InvalidResultError(
                f"{callable_name(step.function)} returned {obj!r:.200}, not a {step.new.__name__}"
            )
    return obj


def _key(fields: dict[str, Any]) -> str:
    metadata = fields.get("metadata") or {}
    return "/".join(filter(None, map(metadata.get, ("namespace", "name"))))


def _fields(obj: Any) -> dict[str, Any]:
    try:
        return fields_of(obj)
    except RecursionError:
        return StandIns().write(obj)


def _metadata(original: dict[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """Return the original's metadata, with the converted object's labels and annotations unless it has no metadata."""
    changed = converted.get("metadata")
    if not changed:
        return original
    kept = {name: value for name, value in original.items() if name not in ("labels", "annotations")}
    return kept | {name: changed[name] for name in ("labels", "annotations") if name in changed}
