"""`python -m tests.kubernetes.server_data` writes data files of the embedded server from a new real one.

seeds.json has the objects of every resource. Times are placeholders; the embedded server fills in its own, with
uids and versions. columns.json has the columns of every resource's tables, health.json the checks of its health.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, NamedTuple

import aiohttp
import msgspec

from aioinformer.testing import tables
from aioinformer.testing.cluster import seeds
from aioinformer.testing.http import health
from aioinformer.testing.resources import ResourceType
from aioinformer.testing.storage.builtin import BUILTIN
from tests.kubernetes.controlplane import ControlPlane

Object = dict[str, Any]

ADDRESS = "192.0.2.1"
"""An address for documentation (RFC 5737)."""

ENDPOINT = ("--endpoint-reconciler-type=lease", f"--advertise-address={ADDRESS}")
"""The Service `kubernetes` has an endpoint."""

PORT = 6443
"""Stands for the server's port."""
_LEFT_OUT = frozenset(["componentstatuses", "events", "leases"])
"""The state of components, what happened, the identity of the process."""

_OWN = frozenset(["managedFields", "resourceVersion", "uid"])
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DATE = re.compile(r"^\d{4}-\d\d-\d\d$")


_PLAIN = "limitranges"  # a resource without columns of its own
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class ServerData(NamedTuple):
    """The content of the data files."""

    seeds: bytes
    columns: bytes
    health: bytes


async def read() -> ServerData:
    """Return the data of a new server, when it has created everything."""
    async with ControlPlane(extra_args=ENDPOINT) as cluster:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        connector = aiohttp.TCPConnector(ssl=cluster.ssl_context())
        async with aiohttp.ClientSession(cluster.url, headers=headers, connector=connector) as session:
            await _wait_settled(session)
            return ServerData(
                await _seeds(session, int(cluster.url.rpartition(":")[2])),
                await _columns(session),
                await _health(session),
            )


async def _seeds(session: aiohttp.ClientSession, port: int) -> bytes:
    stored = [
        resource_type
        for resource_type in BUILTIN
        if resource_type.stored and resource_type.plural not in _LEFT_OUT
    ]
    stored.sort(key=lambda resource_type: resource_type.plural != "namespaces")  # these come first
    by_path = {
        f"{resource_type.api_version}/{resource_type.plural}": (await _get(session, resource_type))["items"]
        for resource_type in stored
    }
    lines = [
        f'"{path}": [\n{_lines([_plain(obj, port) for obj in objects])}\n]'
        for path, objects in by_path.items()
        if objects
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


async def _columns(session: aiohttp.ClientSession) -> bytes:
    """Return the columns by kind. Kinds that show name and time alone share the entry of the empty kind."""
    texts: list[str] = []
    kinds: dict[str, list[Any]] = {}
    for resource in sorted(BUILTIN, key=lambda resource_type: resource_type.plural != _PLAIN):
        if not resource.stored:
            continue
        definitions = (await _get(session, resource, _TABLE))["columnDefinitions"]
        for column in definitions:
            texts += [] if column["description"] in texts else [column["description"]]
            column["description"] = texts.index(column["description"])
        kind = "" if resource.plural == _PLAIN else resource.group_kind
        if definitions != kinds.get(""):
            kinds[kind] = definitions
    lines = [f'"{kind}": {msgspec.json.encode(kinds[kind]).decode()}' for kind in sorted(kinds)]
    shown = ",\n".join(lines)
    return f'{{\n"descriptions": [\n{_lines(texts)}\n],\n"columns": {{\n{shown}\n}}\n}}\n'.encode()


async def _health(session: aiohttp.ClientSession) -> bytes:
    lines = []
    for path in ("healthz", "livez", "readyz"):
        async with session.get(f"/{path}?verbose") as answer:
            checks = re.findall(r"^\[\+\](\S+) ok$", await answer.text(), re.MULTILINE)
        lines.append(f'"{path}": {msgspec.json.encode(checks).decode()}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


async def _get(
    session: aiohttp.ClientSession, resource: ResourceType, accept: str = "application/json"
) -> Object:
    prefix = "/apis" if resource.group else "/api"
    path = f"{prefix}/{resource.api_version}/{resource.plural}"
    async with session.get(path, headers={"Accept": accept}) as answer:
        document: Object = await answer.json()
    return document


def _lines(entries: list[Any]) -> str:
    """Return entries as JSON, one in a line."""
    return ",\n".join(msgspec.json.encode(entry).decode() for entry in entries)


async def _wait_settled(session: aiohttp.ClientSession) -> None:
    """Wait for the two that come last: the endpoint, and the conditions of flow schemas."""
    async with asyncio.timeout(60):
        while not await _is_settled(session):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.5)


async def _is_settled(session: aiohttp.ClientSession) -> bool:
    async with session.get("/api/v1/namespaces/default/endpoints/kubernetes") as answer:
        has_endpoint = answer.status == 200
    async with session.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas") as answer:
        schemas = (await answer.json())["items"]
    return has_endpoint and all(schema["status"].get("conditions") for schema in schemas)


def _plain(value: Any, port: int) -> Any:
    """Return a value without what is of this server alone: its port, its fields of metadata, times."""
    if isinstance(value, dict):
        return {name: _plain(member, port) for name, member in value.items() if name not in _OWN}
    if isinstance(value, list):
        return [_plain(element, port) for element in value]
    if isinstance(value, str):
        return _DATE.sub(seeds.DATE, _TIME.sub(seeds.TIME, value))
    return PORT if value == port and not isinstance(value, bool) else value


async def main() -> None:
    data = await read()
    seeds.SEEDS.write_bytes(data.seeds)
    tables.COLUMNS.write_bytes(data.columns)
    health.HEALTH.write_bytes(data.health)


if __name__ == "__main__":
    asyncio.run(main())
