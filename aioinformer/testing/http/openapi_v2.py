"""OpenAPI v2: the schemas of v3 in the form of v2, as JSON and as protobuf (`OpenAPIv2.proto` of gnostic-models).

kubectl reads it for `explain --output plaintext-openapiv2`, and to validate what OpenAPI v3 does not describe.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.protobuf.values import piece

if TYPE_CHECKING:
    from collections.abc import Mapping

    Schema = dict[str, Any]

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_encode = msgspec.json.Encoder(order="deterministic").encode


def document(schemas: Mapping[str, Schema], version: str) -> dict[str, Any]:
    """Return the document with these definitions."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {},
        "definitions": {name: _convert(schema) for name, schema in sorted(schemas.items())},
    }


@lru_cache(maxsize=4)
def protobuf(body: bytes) -> bytes:
    """Return a document, given as JSON, as protobuf."""
    given = msgspec.json.decode(body)
    info = _text(1, given["info"]["title"]) + _text(2, given["info"]["version"])
    return b"".join(
        [
            _text(1, given["swagger"]),
            piece(2, info),
            piece(8, b""),
            piece(9, _name_schemas(given["definitions"])),
        ]
    )


def _convert(schema: Schema) -> Schema:
    """Return a schema as v2 has it: no alternatives, and a reference beside a description."""
    converted: Schema = {}
    for name, value in schema.items():
        match name:
            case "allOf":
                converted |= {"$ref": value[0]["$ref"].replace("#/components/schemas/", "#/definitions/")}
            case "$ref":
                converted["$ref"] = value.replace("#/components/schemas/", "#/definitions/")
            case "oneOf" | "anyOf":
                converted["type"] = "string"
            case "properties":
                converted[name] = {key: _convert(member) for key, member in value.items()}
            case "items" | "additionalProperties" if isinstance(value, dict):
                converted[name] = _convert(value)
            case "default" | "nullable" | "not" | "x-kubernetes-validations":
                pass
            case _:
                converted[name] = value
    return converted


def _text(number: int, text: str) -> bytes:
    return piece(number, text.encode())


def _name_schemas(schemas: Mapping[str, Schema]) -> bytes:
    """Return a message whose field 1 is each schema with its name."""
    entries = (_text(1, name) + piece(2, _schema(schema)) for name, schema in schemas.items())
    return b"".join(piece(1, entry) for entry in entries)


def _schema(schema: Schema) -> bytes:
    pieces: list[bytes] = []
    for name, value in schema.items():
        match name:
            case "$ref":
                pieces.append(_text(1, value))
            case "format":
                pieces.append(_text(2, value))
            case "description":
                pieces.append(_text(4, value))
            case "required":
                pieces += [_text(19, element) for element in value]
            case "enum":
                pieces += [piece(20, _text(2, _encode(element).decode())) for element in value]
            case "additionalProperties" if isinstance(value, dict):
                pieces.append(piece(21, piece(1, _schema(value))))
            case "type":
                pieces.append(piece(22, _text(1, value)))
            case "items":
                pieces.append(piece(23, piece(1, _schema(value))))
            case "properties":
                pieces.append(piece(25, _name_schemas(value)))
            case _ if name.startswith("x-"):
                pieces.append(piece(31, _text(1, name) + piece(2, _text(2, _encode(value).decode()))))
            case _:
                pass
    return b"".join(pieces)
