"""Which volumes a pod mounts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from examples.storage_operator.model import GATE, Pod, pods_by_mount

METADATA = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}


def pod_with_volumes(*volumes: dict[str, Any], gates: tuple[str, ...] = ()) -> Pod:
    spec = {"volumes": list(volumes), "schedulingGates": [{"name": gate} for gate in gates]}
    return msgspec.convert({"metadata": METADATA, "spec": spec}, Pod)


def csi(driver: str, **attributes: str) -> dict[str, Any]:
    return {"csi": {"driver": driver, "volumeAttributes": attributes}}


@pytest.mark.parametrize(
    ("volume", "mounts"),
    [
        ({"nfs": {"server": "10.0.0.7", "path": "/deep"}}, ["10.0.0.7:/deep"]),
        ({"nfs": {"server": "10.0.0.7", "path": "/deep/"}}, ["10.0.0.7:/deep"]),
        (csi("nfs.csi.k8s.io", server="10.0.0.7", share="/deep"), ["10.0.0.7:/deep"]),
        (csi("nfs.csi.k8s.io"), [":/"]),
        (csi("other.example.com", server="10.0.0.7", share="/deep"), []),
        ({"emptyDir": {}}, []),
        ({"persistentVolumeClaim": {"claimName": "deep"}}, []),
    ],
)
def test_where_a_volume_is(volume: dict[str, Any], mounts: list[str]) -> None:
    assert pods_by_mount(pod_with_volumes(volume)) == mounts


def test_a_volume_counts_once() -> None:
    nfs = {"nfs": {"server": "a", "path": "/x"}}
    assert pods_by_mount(pod_with_volumes(nfs, nfs, {"nfs": {"server": "a", "path": "/y"}})) == [
        "a:/x",
        "a:/y",
    ]


def test_a_gate_of_ours() -> None:
    assert pod_with_volumes(gates=("other", GATE)).is_gated
    assert not pod_with_volumes(gates=("other",)).is_gated
    assert not pod_with_volumes().is_gated
