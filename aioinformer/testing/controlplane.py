"""What a cluster's controllers and kubelets do, as far as deletion needs them.

A real API server on its own finalises nothing: a deleted namespace stays Terminating, a deleted pod on a node stays
until its kubelet has stopped it. The controllers here do the least of it that lets objects end. They have the names
that kube-controller-manager's `--controllers` knows; `kubelet` stands for those of all nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.errors import UnknownNameError
from aioinformer.testing.garbage import GarbageCollector
from aioinformer.testing.kubelet import Kubelet
from aioinformer.testing.namespaces import NamespaceController
from aioinformer.testing.protection import ClaimProtection, VolumeBinder, VolumeProtection

if TYPE_CHECKING:
    from collections.abc import Collection

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.controller import Controller

_CONTROLLERS = {
    each.name: each
    for each in (
        NamespaceController,
        Kubelet,
        ClaimProtection,
        VolumeBinder,
        VolumeProtection,
        GarbageCollector,
    )
}

CONTROLLERS = tuple(_CONTROLLERS)
"""The names of all."""


def control_plane(cluster: Cluster, names: Collection[str] = CONTROLLERS) -> list[Controller]:
    """The controllers of a cluster, by their names; they look at all that changes from now on.

    Raises:
        UnknownNameError: There is no such controller.
    """
    for name in names:
        if name not in _CONTROLLERS:
            raise UnknownNameError("controller", name, CONTROLLERS)
    return [make(cluster) for name, make in _CONTROLLERS.items() if name in names]
