"""OpenAPI v3 of the embedded server has the real server's schemas."""

from __future__ import annotations

import asyncio
import json

import pytest

from aioinformer.testing import APIServer
from tests.kubernetes.controlplane import ControlPlane

from .api import API, Object
from .conftest import REAL
from .definitions import CAVE_DEFINITION, define

GROUP = "openapi.example.com"
DEFINITION = {
    **CAVE_DEFINITION,
    "metadata": {"name": f"caves.{GROUP}"},
    "spec": {**CAVE_DEFINITION["spec"], "group": GROUP},
}

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

_OF_ALL_GROUPS = ("DeleteOptions", "WatchEvent")
"""Schemas that name all groups here, and in each of the real server's documents some of them."""


async def test_schemas_are_those_of_the_real_server(control_plane: ControlPlane) -> None:
    async with (
        APIServer(token="administrator") as server,
        API(server.url, server.token, None) as embedded,
        API(control_plane.url, control_plane.token, control_plane.ssl_context()) as real,
    ):
        for api in (embedded, real):
            await define(api, DEFINITION)
        await _until_described(real, f"apis/{GROUP}/v1")
        for path, place in (await _paths(embedded)).items():
            theirs = await _schemas(real, f"/openapi/v3/{path}")
            assert await _schemas(embedded, place["serverRelativeURL"]) == theirs, path


async def _schemas(api: API, path: str) -> Object:
    schemas: Object = (await api.do("GET", path)).get("components", {}).get("schemas", {})
    return {name: schema for name, schema in schemas.items() if not name.endswith(_OF_ALL_GROUPS)}


async def _until_described(api: API, path: str) -> None:
    """Wait until the server describes a new definition, of which nothing tells."""
    async with asyncio.timeout(20):
        while path not in await _paths(api):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.05)


async def _paths(api: API) -> Object:
    answer = await api.ask("GET", "/openapi/v3")
    paths: Object = json.loads(answer.raw)["paths"]  # the real server says that this is plain text
    return paths
