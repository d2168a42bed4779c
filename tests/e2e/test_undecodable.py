"""A release makes a field required: objects from before are seen as they are, and are cleaned up."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client, DecodeError, Resource, UndecodableObject
from aioinformer.operator import Context, Operator, Request
from aioinformer.testing import eventually
from aioinformer.typed import CamelStruct, CustomResource, crd

from . import api
from .clusters import Cluster
from .definitions import define, undefine

VAULTS = api.Resource("undecodable.example.com/v1", "vaults")
PATIENCE = 20.0
FINALIZER = "undecodable.example.com/contents"


class OldSpec(CamelStruct):
    size: int


class OldVault(CustomResource, group="undecodable.example.com", version="v1", kind="Vault"):
    spec: OldSpec


class Spec(CamelStruct, kw_only=True):
    size: int
    team: str
    """Required since release 2."""


class Vault(CustomResource, group="undecodable.example.com", version="v1"):
    spec: Spec


class Vaults:
    """An operator of release 2, and what it was asked to do."""

    def __init__(self) -> None:
        self.operator = Operator("vaults")
        self.reconciled: list[str] = []
        self.cleaned: list[tuple[str, type, int]] = []
        self.operator.controller(Vault, finalizer=FINALIZER, cleanup=self.cleanup)(self.reconcile)

    async def reconcile(self, request: Request[Vault], context: Context) -> None:
        assert request.object is not None
        self.reconciled.append(f"{request.name} of {request.object.spec.team}")

    async def cleanup(self, request: Request[Vault], context: Context) -> None:
        obj: Any = request.object
        size = obj["spec"]["size"] if isinstance(obj, UndecodableObject) else obj.spec.size
        self.cleaned.append((request.name, type(obj), size))


async def test_objects_from_before_a_field_was_required(cluster: Cluster, client: Client) -> None:
    await define(cluster.api, crd(OldVault))
    metadata = {"namespace": cluster.namespace, "finalizers": [FINALIZER]}
    for name in ("a", "b"):
        await Resource(client, OldVault).create({"metadata": {**metadata, "name": name}, "spec": {"size": 1}})
    await Resource(client, "customresourcedefinitions").apply(crd(Vault), force=True)
    vaults, key = Vaults(), f"{cluster.namespace}/a"
    async with vaults.operator.running(client) as manager:
        (controller,), (informer,) = manager.controllers, manager.informers
        await eventually(lambda: len(list(controller.failing())) == 2, PATIENCE)
        with pytest.raises(
            DecodeError, match=f"missing required field `team` - at `\\$.spec`; it is Vault {key}"
        ):
            informer.lister.get(key)
        assert all("`team`" in failure.error for failure in controller.failing())
        assert manager.ready()
        assert key in str(manager.ready())
        labelled = await cluster.patch(VAULTS, "a", {"metadata": {"labels": {"seen": "yes"}}})
        version = labelled["metadata"]["resourceVersion"]
        await eventually(
            lambda: version in {state.resource_version for state in informer.lister.undecodable()}, PATIENCE
        )
        await cluster.patch(VAULTS, "b", {"spec": {"team": "red"}})
        await eventually(lambda: vaults.reconciled, PATIENCE)
        assert [failure.key for failure in controller.failing()] == [key]
        await cluster.delete(VAULTS, "a")
        await eventually(lambda: key not in informer.store.list_keys(), PATIENCE)
        assert list(await cluster.list(VAULTS)) == [f"{cluster.namespace}/b"]
        assert vaults.cleaned == [("a", UndecodableObject, 1)]
        await eventually(lambda: not list(controller.failing()), PATIENCE)
        await cluster.delete(VAULTS, "b")
        await eventually(lambda: informer.store.list_keys() == [], PATIENCE)
        assert vaults.cleaned[1:] == [("b", Vault, 1)]
    await undefine(cluster.api, "vaults.undecodable.example.com")
