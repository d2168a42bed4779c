"""What is known of the built-in kinds: the numbers of their fields, and what those are called in JSON.

``schema.json`` is printed by ``tests/kubernetes/cmd/protobuf-schema``, out of the tags of Kubernetes' Go types. It is
read when protobuf is first asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

Shown = Literal["always", "there", "null", "set"]
"""When JSON shows a field: always, be it with its zero value; where it is there; likewise, and as null where it is not;
where it is there and not empty."""


class FieldSchema(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A field of a message.

    Attributes:
        number: On the wire.
        name: In JSON; ``""`` for a message whose fields are among those of the one that it is in.
        type: ``string``, ``bytes``, ``bool``, ``int``; a message that JSON has as one value (``time``, ``quantity`` …);
            a message by its name; any of them behind ``[]`` in a list, behind ``map:`` in a map from strings.
        shown: When JSON shows it.
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
        """Its type, or that of what is in the list or map that it is."""
        return self.type.removeprefix("[]").removeprefix("map:")


class Schema(msgspec.Struct, frozen=True):
    """The messages of the API, of one version of Kubernetes.

    Attributes:
        version: Of Kubernetes: ``"1.36.3"``.
        kinds: Names of messages, by apiVersion and kind.
        resources: Kinds, by apiVersion and plural.
    """

    version: str
    kinds: dict[str, dict[str, str]]
    resources: dict[str, dict[str, str]]
    messages: dict[str, msgspec.Raw]

    def fields(self, message: str) -> list[FieldSchema]:
        """The fields of a message, by their numbers."""
        return _decode_fields(self.messages[message])


_decode_fields = msgspec.json.Decoder(list[FieldSchema]).decode


@cache
def schema() -> Schema:
    """That of this version of the package. Blocks, the first time, for a millisecond."""
    return msgspec.json.decode(Path(__file__).with_name("schema.json").read_bytes(), type=Schema)


def is_known(api_version: str, plural: str) -> bool:
    """Whether the objects of a collection can be read: they are built in, and not newer than the schema."""
    return plural in schema().resources.get(api_version, ())


def kind_of(api_version: str, plural: str) -> str:
    """The kind of the objects of a built-in collection; ``""`` for others."""
    return schema().resources.get(api_version, {}).get(plural, "")


def message_of(api_version: str, kind: str) -> str | None:
    """The name of a kind's message; None for one that is not known."""
    return schema().kinds.get(api_version, {}).get(kind)


def kind_inside(message: str) -> dict[str, str] | None:
    """The apiVersion and kind that JSON shows of a message that is inside of another; None for what is no object.

    A StatefulSet's volumeClaimTemplates are whole objects: API servers say in JSON what they are.
    """
    known = schema()
    for api_version, kinds in known.resources.items():
        for kind in kinds.values():
            if known.kinds[api_version][kind] == message:
                return {"kind": kind, "apiVersion": api_version}
    return None
