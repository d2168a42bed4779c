"""Health: `/livez`, `/readyz`, `/healthz`, and their single checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from aioinformer.testing import schema

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request

HEALTH = Path(schema.__file__).with_name("health.json")


@cache
def _checks() -> dict[str, list[str]]:
    """Return the checks of the real server by their paths; `make schema` writes the file."""
    return msgspec.json.decode(HEALTH.read_bytes(), type=dict[str, list[str]])


def health(request: Request) -> web.Response | None:
    """Return the answer to a path of a health check, or None for another path.

    Every check passes: a server that answers is healthy.
    """
    name, _, check = request.path.strip("/").partition("/")
    checks = _checks().get(name, [])
    if not checks or (check and check not in checks):
        return None
    if check or "verbose" not in request.query:
        return web.Response(text="ok")
    excluded = request.query.get("exclude")
    lines = [
        f"[+]{check_name} excluded: ok" if check_name == excluded else f"[+]{check_name} ok"
        for check_name in checks
    ]
    if excluded and excluded not in checks:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
    return web.Response(text="\n".join([*lines, f"{name} check passed"]) + "\n")
