"""Which versions meet here, and whether the server is ready."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, version

from ..errors import ApiError
from .connection import version_in
from .examination import Examination
from .findings import Finding, Level

OLDEST, NEWEST = 30, 36
"""Minor versions of Kubernetes 1 between which informers are known to work; NEWEST is the one of the tests."""

LIBRARIES = ("aiohttp", "kubernetes_asyncio", "msgspec")


async def check_versions(examination: Examination) -> list[Finding]:
    """Check the server's version, and say which libraries there are."""
    body = await examination.client.get("/version")
    return [judge_version(version_in(body)), Finding("versions", Level.OK, _describe_libraries())]


def judge_version(server: str | None) -> Finding:
    """Return whether the server's version is known to work.

    Args:
        server: Such as ``"v1.36.3"``.
    """
    match = re.match(r"v1\.(\d+)", server or "")
    if match is None:
        return Finding("versions", Level.NOTE, f"the server has the version {server or 'unknown'}")
    text = f"the server has Kubernetes {server}"
    if int(match[1]) < OLDEST:
        do = "Upgrade the cluster. WatchList and other features are missing in it, and it gets no corrections"
        return Finding("versions", Level.WARNING, text, do)
    if int(match[1]) > NEWEST:
        return Finding("versions", Level.NOTE, f"{text}; aioinformer is tested with 1.{NEWEST}")
    return Finding("versions", Level.OK, text)


def _describe_libraries() -> str:
    libraries = [("Python", platform.python_version()), *((name, _version_of(name)) for name in LIBRARIES)]
    return ", ".join(f"{name} {number}" for name, number in libraries)


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


async def check_ready(examination: Examination) -> list[Finding]:
    """Check whether the server calls itself ready."""
    try:
        await examination.client.get("/readyz")
    except ApiError as error:
        if error.status in (401, 403, 404):
            return [Finding("ready", Level.NOTE, f"not checked: /readyz answers {error.status}")]
        failed = [line for line in str(error).splitlines() if line.startswith("[-]")]
        do = "Wait if it is starting; otherwise look at its log, and at etcd"
        return [Finding("ready", Level.FAULT, f"the server is not ready: {'; '.join(failed) or error}", do)]
    return [Finding("ready", Level.OK, "the server is ready")]
