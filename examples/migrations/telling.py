"""What the programs of this folder tell the tests: a line for each change of what they know."""

from __future__ import annotations

import json


def tell(name: str, version: str | None) -> None:
    """Print the version of an object by which the program knows it now; None if it knows that it is gone."""
    print(json.dumps({"name": name, "version": version}), flush=True)
