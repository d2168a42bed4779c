"""The controllers and kubelets that deletion needs.

A real API server alone finalizes nothing: a deleted namespace stays Terminating, and a deleted pod on a node remains
until its kubelet has stopped it. These controllers do the minimum that completes deletions. Their names are those
of kube-controller-manager's `--controllers`; `kubelet` stands for the kubelets of all nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.controllers.garbage import GarbageCollector
from aioinformer.testing.controllers.kubelet import Kubelet
from aioinformer.testing.controllers.namespaces import NamespaceController
from aioinformer.testing.controllers.protection import ClaimProtection, VolumeBinder, VolumeProtection
from aioinformer.testing.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Collection

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.controllers.controller import ClusterController

_CONTROLLERS = {
    controller.name: controller
    for controller in (
        NamespaceController,
        Kubelet,
        ClaimProtection,
        VolumeBinder,
        VolumeProtection,
        GarbageCollector,
    )
}

CONTROLLERS = tuple(_CONTROLLERS)
"""The names of all controllers."""


def control_plane(cluster: Cluster, names: Collection[str]) -> list[ClusterController]:
    """Return the named controllers of a cluster; they observe all changes from now on.

    Raises:
        UnknownNameError: There is no such controller.
    """
    for name in names:
        if name not in _CONTROLLERS:
            raise UnknownNameError("controller", name, CONTROLLERS)
    return [make(cluster) for name, make in _CONTROLLERS.items() if name in names]
