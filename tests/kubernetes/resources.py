"""`python -m tests.kubernetes.resources FILE` writes the real server's resources, for `aioinformer.testing`.

The file has a line for each resource in discovery's order. Run it by `make schema`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.probes import get_json
from tests.kubernetes.strategies import Strategies


def resources_of(control_plane: ControlPlane) -> Iterator[dict[str, Any]]:
    """Yield what discovery tells of each resource, and what the server does in writes of those that it stores."""
    strategies = Strategies(control_plane)

    def get(path: str) -> dict[str, Any]:
        url = f"{control_plane.url}{path}"
        return get_json(url, ca_file=control_plane.ca_file, token=control_plane.token)

    groups = get("/apis")["groups"]
    versions = [served["groupVersion"] for group in groups for served in group["versions"]]
    for path in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        listed = get(path)
        group, _, version = listed["groupVersion"].rpartition("/")
        for resource in listed["resources"]:
            plural, _, subresource = resource["name"].partition("/")
            if not subresource:
                yield {
                    "group": group,
                    "version": version,
                    "plural": plural,
                    "kind": resource["kind"],
                    "namespaced": resource["namespaced"],
                    "verbs": resource["verbs"],
                    "short_names": resource.get("shortNames", []),
                    "categories": resource.get("categories", []),
                    **_describe(strategies, listed["groupVersion"], resource),
                    "subresources": {
                        other["name"].partition("/")[2]: {
                            name: other[name]
                            for name in ("group", "version", "kind", "verbs")
                            if name in other
                        }
                        for other in listed["resources"]
                        if other["name"].startswith(f"{plural}/")
                    },
                }


def _describe(strategies: Strategies, api_version: str, resource: dict[str, Any]) -> dict[str, Any]:
    if resource["verbs"] == ["create"]:
        return {}  # a review, which is not stored
    return strategies.of(api_version, resource["name"], namespaced=resource["namespaced"])


def main(file: Path) -> None:
    """Write the file."""
    with ControlPlane() as control_plane:
        lines = [json.dumps(resource) for resource in resources_of(control_plane)]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
