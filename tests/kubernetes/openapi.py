"""`python -m tests.kubernetes.openapi FILE` writes the real server's OpenAPI v3 schemas, for `aioinformer.testing`.

The file has each schema once, and the names of the schemas in each document. Run it by `make schema`.
"""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.probes import get_json

_GROUP = "x-kubernetes-group-version-kind"


def schemas_of(control_plane: ControlPlane) -> dict[str, Any]:
    """Return all schemas by name, and the names of each document's by its path."""

    def get(path: str) -> dict[str, Any]:
        url = f"{control_plane.url}/openapi/v3{path}"
        return get_json(url, ca_file=control_plane.ca_file, token=control_plane.token)

    schemas: dict[str, Any] = {}
    documents: dict[str, list[str]] = {}
    for path in sorted(get("")["paths"]):
        own = get(f"/{path}").get("components", {}).get("schemas", {})
        if own:
            documents[path] = sorted(own)
        for name, schema in own.items():
            before = schemas.setdefault(name, schema)
            if len(schema.get(_GROUP, ())) > len(before.get(_GROUP, ())):
                schemas[name] = schema  # DeleteOptions and WatchEvent name other groups in each document
    return {"documents": documents, "schemas": schemas}


def main(file: Path) -> None:
    """Write the file."""
    with ControlPlane() as control_plane:
        content = schemas_of(control_plane)
    plain = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
    file.write_bytes(lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
