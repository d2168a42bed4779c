"""Predicates, which select the changes that trigger a reconcile, one by one.

A Controller takes one as `predicate=`, Owns and Watch as their last argument.

    python examples/operator_predicates.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import Client, KubeObject
from aioinformer.operator import (
    AnnotationsChanged,
    Change,
    Controller,
    Deleting,
    FieldsChanged,
    FinalizersChanged,
    GenerationChanged,
    LabelsChanged,
    LabelsMatch,
    Manager,
    Predicate,
    Request,
    When,
)
from aioinformer.testing import APIServer


def grew(change: Change[Any]) -> bool:
    """A predicate of your own: more replicas than before."""
    if change.old is None or change.new is None:
        return False
    return bool(change.new["spec"]["replicas"] > change.old["spec"]["replicas"])


PREDICATES: list[Predicate] = [
    GenerationChanged(),
    LabelsChanged(),
    AnnotationsChanged(),
    FinalizersChanged(),
    FieldsChanged("spec.paused", "status.replicas"),
    LabelsMatch("app=web,tier!=test"),
    Deleting(),
    When(grew) & ~Deleting(),
]

WEB: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
}

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("scaled up", {"spec": {"replicas": 3}}),
    ("labelled", {"metadata": {"labels": {"tier": "test"}}}),
    ("annotated", {"metadata": {"annotations": {"example.com/note": "hello"}}}),
    ("its status told", {"status": {"replicas": 3}}),
    ("held", {"metadata": {"finalizers": ["example.com/hold"]}}),
]


async def main() -> None:
    """Change a Deployment on an API server inside this process; print which predicates let each change pass."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        changes: asyncio.Queue[Change[KubeObject]] = asyncio.Queue()

        def noted(change: Change[KubeObject]) -> bool:
            changes.put_nowait(change)
            return False

        def reconcile(request: Request[KubeObject]) -> None:
            """Do nothing: no change passes."""

        manager = Manager(client)
        deployments = manager.for_resource("apps/v1", "deployments")
        manager.add(Controller("deployments", reconcile, deployments, predicate=noted))
        async with manager:
            server.create("apps/v1", "deployments", WEB)
            await changes.get()
            for what, patch in CHANGES:
                server.patch("apps/v1", "deployments", "web", patch)
                tell(what, await changes.get())
            server.delete("apps/v1", "deployments", "web")
            tell("to be deleted", await changes.get())


def tell(what: str, change: Change[KubeObject]) -> None:
    """Print which predicates let a change pass."""
    print(f"{what}:", ", ".join(repr(predicate) for predicate in PREDICATES if predicate(change)) or "-")


if __name__ == "__main__":
    asyncio.run(main())
