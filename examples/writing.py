"""Changing objects: create, update, patch, apply, delete, and the errors of refusals.

A Resource takes objects in every form (dict, KubeObject, Struct, model) and gives back the one that you choose.

    python examples/writing.py
"""

from __future__ import annotations

import asyncio

import msgspec

from aioinformer import Client, ConflictError, InvalidError, KubeObject, NotFoundError, Resource
from aioinformer.resources import PropagationPolicy, Writes
from aioinformer.testing import APIServer


class Meta(msgspec.Struct):
    name: str
    namespace: str


class Settings(msgspec.Struct):
    """The fields that we manage: what we apply, and nothing else."""

    metadata: Meta
    data: dict[str, str]
    kind: str = "ConfigMap"


async def change(client: Client) -> None:
    """Use each verb."""
    maps = Resource(client, "v1", "configmaps", field_manager="example")

    created = await maps.create(
        {"metadata": {"name": "settings", "namespace": "default"}, "data": {"color": "red"}}
    )
    print("created", created.key, created["data"])

    changed = created.to_dict()
    changed["data"]["color"] = "green"
    await maps.update(changed)
    try:
        await maps.update(changed)  # again, with the version that was read before
    except ConflictError as error:
        print("too late:", error.reason, error.key)

    patched = await maps.patch("default/settings", {"data": {"size": "9"}})
    print("patched", patched["data"])

    wanted = Settings(Meta("settings", "default"), {"shape": "round"})
    applied = await maps.apply(wanted)
    print("applied", applied["data"])
    try:
        await maps.apply(Settings(wanted.metadata, {"color": "blue"}), field_manager="another")
    except ConflictError as error:
        print("not ours:", [cause.field for cause in error.causes])

    try:
        await maps.create({"metadata": {"name": "no_name", "namespace": "default"}})
    except InvalidError as error:
        print("invalid:", [cause.field for cause in error.causes])

    await remove(maps, applied, "Background")
    try:
        await maps.get("default/settings")
    except NotFoundError:
        print("gone")


async def remove(objects: Writes[KubeObject], obj: KubeObject, policy: PropagationPolicy) -> None:
    """Delete exactly that object, by its uid; the policy decides about its dependents."""
    await objects.delete(obj, propagation_policy=policy)


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        await change(client)


if __name__ == "__main__":
    asyncio.run(main())
