"""Leases of replicas and tables of slots, as other programs may write them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aioinformer.objects.meta import micro_time
from aioinformer.sharding.leases import LABEL_NAME, table_name_of
from aioinformer.sharding.table import OWNERS
from aioinformer.testing import APIServer

LEASES = ("coordination.k8s.io/v1", "leases")


def write_lease(server: APIServer, sharding: str, name: str, table: str | None = None, **spec: Any) -> None:
    """Create a Lease with the label of a Sharding's Leases, and a text as its table."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {LABEL_NAME: sharding}}
    if table is not None:
        metadata["annotations"] = {OWNERS: table}
    server.create(*LEASES, {"metadata": metadata, "spec": spec})


def write_member(server: APIServer, sharding: str, name: str, *, ago: float, duration: int = 15) -> None:
    """Create the Lease of a replica that renewed it some seconds ago."""
    renewed = micro_time(int((time.time() - ago) * 1e6))
    times: dict[str, Any] = {"leaseDurationSeconds": duration, "renewTime": renewed, "acquireTime": renewed}
    write_lease(server, sharding, name, holderIdentity=name, **times)


def write_table(
    server: APIServer, sharding: str, slots: int, owners: Mapping[str, Sequence[int]], **more: str
) -> None:
    """Create the Lease with the owners of a Sharding's slots."""
    table = json.dumps({"slots": slots, "owners": owners, **more})
    write_lease(server, sharding, table_name_of(sharding), table)
