"""A collection that can be listed but not watched, at a real API server."""

from __future__ import annotations

from aioinformer import Client, KubeObject, ListWatch, Resource, SharedIndexInformer

from ..kubernetes.controlplane import ControlPlane
from ..steps import until
from .conftest import REAL

pytestmark = REAL

KIND = ("v1", "componentstatuses")


async def test_component_statuses_have_no_version_and_no_watch(control_plane: ControlPlane) -> None:
    async with Client.from_kubeconfig(path=str(control_plane.kubeconfig)) as client:
        listed = await Resource(client, *KIND, namespaced=False).list()
        assert "etcd-0" in [obj.key for obj in listed]
        async with SharedIndexInformer(ListWatch.for_resource(client, *KIND), KubeObject) as informer:
            await informer.wait_synced(timeout=30, fail_fast=True)
            assert sorted(informer.store.list_keys()) == sorted(obj.key for obj in listed)
            await until(lambda: informer.state.polling and informer.state.reflectors[0].lists > 2)
            assert informer.state.reflectors[0].failed_watches.keys() == {"MethodNotAllowed"}
