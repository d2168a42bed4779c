"""What a new API server has from the start: namespaces, roles, the Service `kubernetes` and so on.

`make schema` writes `seeds.json` from a real server.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing import schema

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

SEEDS = Path(schema.__file__).with_name("seeds.json")
TIME, DATE = "<time>", "<date>"


def seeded_objects(now: str) -> dict[str, list[Object]]:
    """Return the objects by resource (`v1/services`), created at this time; uid and resourceVersion are missing."""
    text = _content().replace(TIME.encode(), now.encode()).replace(DATE.encode(), now[:10].encode())
    return msgspec.json.decode(text, type=dict[str, list[dict[str, object]]])


@cache
def _content() -> bytes:
    return SEEDS.read_bytes()
