"""ProcessEvents: Kubernetes Events about a running operator itself, for the admins of its cluster."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .._core.timers import call_every
from ..client import Client
from ..errors import AioInformerError, message_of
from ..events import EventRecorder
from ..leaderelection import LeaderElector
from .failure_events import RECOVERED, REPEAT_AFTER
from .reviews import AUTHENTICATION, review

logger = logging.getLogger(__name__)

CHECK_EVERY = 2.0
"""Seconds between checks."""
LASTS = 10.0
"""Seconds for which a problem must last before it is reported: longer than most starts and relists."""

CERTIFICATE_INVALID, LOGS_LOST = "CertificateInvalid", "LogsLost"
"""Reasons of Events about a Pod, which the debug page has, too."""

_POD = "authentication.kubernetes.io/pod-"
"""What the API server says about the pod of a service account's token."""

Problems = Mapping[str, Callable[[], str]]
"""By the reason of the Event: what returns the problem; ``""`` while there is none."""


class ProcessEvents:
    """Records who leads, about the Lease; and a Warning about the Pod while a problem lasts, and a Normal one after it.

    Args:
        recorder: Writes the Events.
        pod: A reference to the Pod; None outside of pods.
        problems: What can be wrong.
        elector: Competes for the Lease; None without leader election.
    """

    def __init__(
        self,
        recorder: EventRecorder,
        pod: dict[str, str] | None,
        problems: Problems,
        elector: LeaderElector | None,
    ) -> None:
        self._recorder = recorder
        self._pod = pod
        self._problems = problems
        self._elector = elector
        self._led = False
        self._since: dict[str, float] = {}
        self._reported_at: dict[str, float] = {}

    def check(self) -> None:
        """Record what has changed since the last check."""
        if self._elector is not None and self._elector.is_leader is not self._led:
            self._led = not self._led
            self._record_leader(self._elector)
        if self._pod is not None:
            for reason, find_problem in self._problems.items():
                self._check(self._pod, reason, find_problem())

    def _check(self, pod: dict[str, str], reason: str, problem: str) -> None:
        now = asyncio.get_running_loop().time()
        if not problem:
            self._since.pop(reason, None)
            if self._reported_at.pop(reason, None) is not None:
                self._record(pod, "Normal", RECOVERED, f"{reason}: it is over", "Check")
            return
        lasts = now - self._since.setdefault(reason, now)
        if lasts >= LASTS and now - self._reported_at.get(reason, -REPEAT_AFTER) >= REPEAT_AFTER:
            self._reported_at[reason] = now
            self._record(pod, "Warning", reason, problem, "Check")

    def _record_leader(self, elector: LeaderElector) -> None:
        namespace, _, name = elector.state.lease.rpartition("/")
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": namespace,
            "name": name,
        }
        verb = "became leader" if self._led else "stopped leading"
        self._record(lease, "Normal", "LeaderElection", f"{elector.identity} {verb}", "Elect")

    def _record(self, about: dict[str, str], type: Any, reason: str, note: str, action: str) -> None:
        try:
            self._recorder.event(about, type, reason, note, action=action)
        except AioInformerError as error:
            logger.warning("no Event %s about %s was recorded: %s", reason, about["name"], message_of(error))


@asynccontextmanager
async def recording_process_events(
    client: Client, name: str, problems: Problems, elector: LeaderElector | None
) -> AsyncIterator[None]:
    """Record Events about this process while the block runs.

    Args:
        client: As for EventRecorder.
        name: The operator's name.
        problems: As for ProcessEvents.
        elector: As for ProcessEvents.
    """
    pod = await find_own_pod(client) if os.environ.get("KUBERNETES_SERVICE_HOST") else None
    if pod is None and elector is None:
        yield
        return
    async with EventRecorder(client, name) as recorder:
        events = ProcessEvents(recorder, pod, problems, elector)
        with call_every(CHECK_EVERY, events.check):
            yield
        events.check()


async def find_own_pod(client: Client) -> dict[str, str] | None:
    """Return a reference to the Pod whose service account's token the client sends; None if the token names none."""
    try:
        status = await review(client, AUTHENTICATION, "SelfSubjectReview")
    except AioInformerError as error:
        logger.info("no Events about this Pod: its name is unknown: %s", message_of(error))
        return None
    extra = (status.get("userInfo") or {}).get("extra") or {}
    (pod_name,), (uid,) = extra.get(f"{_POD}name", ("",)), extra.get(f"{_POD}uid", ("",))
    if not pod_name:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "namespace": client.namespace, "name": pod_name, "uid": uid}
