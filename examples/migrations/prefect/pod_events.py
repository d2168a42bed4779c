"""The states of pods, as events of Prefect."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from prefect_kubernetes import observer
from prefect_kubernetes.diagnostics import diagnose_k8s_pod

from aioinformer import InformerEvents, KubeObject, SharedIndexInformer
from aioinformer.operator import Request

logger = logging.getLogger("prefect_kubernetes.informer_observer")


class PodEvents:
    """Sends the states of each pod to Prefect in their order. One that Prefect did not take is sent again.

    A state that differs in nothing that Prefect looks at replaces the one before it, if that still waits.
    """

    def __init__(self, informer: SharedIndexInformer[KubeObject]) -> None:
        self.informer = informer
        self._waiting: dict[str, dict[tuple[Any, ...], Any]] = {}

    async def changes(self) -> AsyncIterator[Request[KubeObject]]:
        """Yield a request for each change of a pod, and keep the state until it is sent."""
        async with InformerEvents(self.informer) as events:
            async for event in events:
                states = self._waiting.setdefault(event.object.key, {})
                states[self._state_of(event)] = event
                yield Request.of(event.object)

    async def reconcile(self, request: Request[KubeObject]) -> None:
        """Send what waits of a pod."""
        states = self._waiting.get(request.key, {})
        while states:
            state, event = next(iter(states.items()))
            await self._send(event)
            if states[state] is event:
                del states[state]
        self._waiting.pop(request.key, None)

    def _state_of(self, event: Any) -> tuple[Any, ...]:
        status = event.object.to_dict().get("status", {})
        restarts = [container.get("restartCount") for container in status.get("containerStatuses", [])]
        diagnosis = diagnose_k8s_pod(status)
        category = diagnosis and diagnosis.category
        return event.object.uid, event.type == "DELETED", status.get("phase"), *restarts, category

    async def _send(self, event: Any) -> None:
        pod = event.object.to_dict()
        metadata = pod["metadata"]
        await observer._replicate_pod_event(
            event={"type": None if event.initial else event.type, "object": pod},
            uid=metadata["uid"],
            name=metadata["name"],
            namespace=metadata["namespace"],
            labels=metadata.get("labels", {}),
            status=pod["status"],
            logger=logger,
        )
