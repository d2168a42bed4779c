"""The schema of the built-in kinds: field numbers, names in JSON, and keys of lists.

``tests/kubernetes/cmd/protobuf-schema`` prints ``schema.json`` from Kubernetes' Go types. It is loaded at the first use
of protobuf, or the first update of an object whose class has only some of its fields.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

Shown = Literal["always", "there", "null", "set"]
"""When JSON has a field: always, if missing with its zero value; if it is there; if it is there, else as null; if it is
there and not empty."""


class FieldSchema(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A field of a message.

    Attributes:
        number: The field's number in protobuf.
        name: The field's name in JSON; ``""`` for a message whose fields JSON has in the outer message.
        type: ``string``, ``bytes``, ``bool``, ``int``; a message that is one value in JSON (``time``, ``quantity`` …);
            a message's name. With the prefix ``[]`` for a list, ``map:`` for a map from strings.
        shown: When JSON has it.
    """

    number: int
    name: str
    type: str
    shown: Shown

    @property
    def is_list(self) -> bool:
        return self.type.startswith("[]")

    @property
    def is_map(self) -> bool:
        return self.type.startswith("map:")

    @property
    def of(self) -> str:
        """The type, or the type of the elements of a list or map."""
        return self.type.removeprefix("[]").removeprefix("map:")


class Schema(msgspec.Struct, frozen=True):
    """The messages of one Kubernetes version.

    Attributes:
        version: The Kubernetes version: ``"1.36.3"``.
        kinds: Message names by apiVersion and kind.
        resources: Kinds by apiVersion and plural.
        messages: Fields by message name, undecoded.
        list_keys: The fields that identify the items of a list (``x-kubernetes-list-map-keys``), by message name and
            field.
        atomic: Messages that server-side apply replaces as a whole (``x-kubernetes-map-type``).
    """

    version: str
    kinds: dict[str, dict[str, str]]
    resources: dict[str, dict[str, str]]
    messages: dict[str, msgspec.Raw]
    list_keys: dict[str, dict[str, tuple[str, ...]]]
    atomic: dict[str, bool]

    def fields(self, message: str) -> list[FieldSchema]:
        """Return the fields of a message, in the order of their numbers."""
        return _decode_fields(self.messages[message])


_decode_fields = msgspec.json.Decoder(list[FieldSchema]).decode


@cache
def schema() -> Schema:
    """Return the schema. The first call blocks for a millisecond."""
    return msgspec.json.decode(Path(__file__).with_name("schema.json").read_bytes(), type=Schema)


def is_known(api_version: str, plural: str) -> bool:
    """Return whether the schema has a collection's kind."""
    return plural in schema().resources.get(api_version, ())


def kind_of(api_version: str, plural: str) -> str:
    """Return the kind of a built-in collection; ``""`` for others."""
    return schema().resources.get(api_version, {}).get(plural, "")


def message_of(api_version: str, kind: str) -> str | None:
    """Return the name of a kind's message; None if the schema does not have the kind."""
    return schema().kinds.get(api_version, {}).get(kind)


def kind_inside(message: str) -> dict[str, str] | None:
    """Return apiVersion and kind that JSON has for a message inside another; None if it is not an object.

    A StatefulSet's volumeClaimTemplates are whole objects, whose apiVersion and kind API servers write in JSON.
    """
    known = schema()
    for api_version, kinds in known.resources.items():
        for kind in kinds.values():
            if known.kinds[api_version][kind] == message:
                return {"kind": kind, "apiVersion": api_version}
    return None


class JSONField(NamedTuple):
    """A field as JSON has it.

    Attributes:
        message: Its message, or that of its items; ``""`` for others.
        keys: The fields that identify its items; empty for others than lists, and for lists without keys.
    """

    message: str
    keys: tuple[str, ...]


def is_atomic(message: str) -> bool:
    """Return whether server-side apply replaces a message as a whole."""
    return message in schema().atomic


def json_fields(message: str) -> dict[str, JSONField]:
    """Return the fields of a message by their names in JSON."""
    known = schema()
    keys = known.list_keys.get(message, {})
    fields: dict[str, JSONField] = {}
    for field in known.fields(message):
        if not field.name:
            fields |= json_fields(field.of)
        else:
            fields[field.name] = JSONField(
                field.of if field.of in known.messages else "", keys.get(field.name, ())
            )
    return fields
