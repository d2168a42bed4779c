"""An informer on a scripted server."""

from __future__ import annotations

from typing import Any

from aioinformer import (
    KubeObject,
    SharedIndexInformer,
)

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    Scripted,
)

KEPT: dict[str, Any] = {}
"""How objects are kept, where a test does not say: the fixture ``kept`` sets it."""


def informer(server: Scripted, **options: Any) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(server, KubeObject, random=NoJitter(), **(KEPT | options))


def cached(informer: SharedIndexInformer[KubeObject]) -> dict[str, str]:
    return {obj.key: obj.resource_version for obj in informer.store.list()}
