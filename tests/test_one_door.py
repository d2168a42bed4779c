"""Bytes of other programs are decoded by the functions that read all that API servers store.

These are ``aioinformer.objects.nesting`` for JSON and ``aioinformer.objects.protobuf``. Other decoders refuse deep
nesting, half a surrogate pair, or invalid UTF-8, which any client may store: then an object, or a whole list, is lost.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "aioinformer"

DECODERS = {
    *("json.loads", "json.load", "json.JSONDecoder"),
    *("msgspec.json.decode", "msgspec.json.Decoder", "msgspec.yaml.decode", "msgspec.msgpack.decode"),
    *("yaml.load", "yaml.safe_load", "yaml.load_all", "yaml.safe_load_all", "yaml.full_load", "yaml.compose"),
    *("pickle.load", "pickle.loads"),
}
METHODS = {
    *("json", "model_validate_json", "parse_raw", "from_json", "deserialize"),
    *("ParseFromString", "FromString", "MergeFromString"),
}
"""Methods of responses, models and messages that decode bytes."""

PROTOBUF = "objects/protobuf/"

THE_DOOR = ("objects/nesting.py", "objects/pieces.py")
APART = ("testing/",)
"""The embedded API server reads what tests send to it."""

EXCEPTIONS = {
    "cli/load.py": "the command line of the parent process",
    "cli/manifest_files.py": "the user's own manifests",
    "cli/new_project.py": "the file in which pip says where this package came from",
    "cli/sources.py": "a report of the child process",
    "client/sections.py": "the user's own kubeconfig",
    "client/write_back.py": "the user's own kubeconfig",
    "listwatch/body.py": "guesses where items end; on an error it counts brackets, and the items' decoder reads them",
    "objects/decoders.py": "models decode JSON themselves: on an error they get it in another way",
    "objects/fields.py": "a first try; on an error the whole field is read",
    "objects/kube_object.py": "a first try, without a further call for each object",
    "objects/managed_fields.py": "a first try, without a further call for each object",
    "objects/protobuf/schema.py": "a file of this package",
}
"""Files that decode in other ways, and why they may."""


def dotted_name(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""


def decoders_in(source: str, *, is_protobuf: bool = False) -> list[tuple[int, str]]:
    """Return the lines of a module that decode bytes, or import what does."""
    decoders = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and dotted_name(node) in DECODERS:
            decoders.append((node.lineno, dotted_name(node)))
        elif isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.ctx, ast.Load):
            if dotted_name(node) != "msgspec.json":
                decoders.append((node.lineno, f".{node.attr}"))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {f"{module}.{alias.name}" for alias in node.names}
            if names & (DECODERS | {"msgspec.json"}):
                decoders.append((node.lineno, module))
            if "protobuf." in module and not is_protobuf:  # its readers of parts
                decoders.append((node.lineno, module))
    return decoders


def modules() -> list[str]:
    paths = (path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py")))
    return [path for path in paths if not path.startswith((*THE_DOOR, *APART))]


@pytest.mark.parametrize("path", modules())
def test_no_other_decoder(path: str) -> None:
    decoders = decoders_in((PACKAGE / path).read_text(), is_protobuf=path.startswith(PROTOBUF))
    assert bool(decoders) is (path in EXCEPTIONS), decoders


@pytest.mark.parametrize(
    "source",
    [
        "import msgspec\nmsgspec.json.decode(body)",
        "decode = msgspec.json.Decoder(dict).decode",
        "import json\njson.loads(body)",
        "from json import loads",
        "from msgspec import json",
        "yaml.safe_load(text)",
        "async def f(answer):\n    return await answer.json()",
        "model.model_validate_json(body)",
        "Message.FromString(body)",
        "from aioinformer.objects.protobuf.messages import message",
    ],
)
def test_other_decoders_are_found(source: str) -> None:
    assert decoders_in(source) != []


@pytest.mark.parametrize("source", ["msgspec.json.encode(value)", "from ..objects.protobuf import status_of"])
def test_what_decodes_nothing_is_accepted(source: str) -> None:
    assert decoders_in(source) == []
