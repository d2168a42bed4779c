"""Helpers of scenarios: paths, and values from answers."""

from __future__ import annotations

from ..api import Answer
from ..recording import AnswerRecorder

CONFIGMAPS = "/api/v1/namespaces/NS/configmaps"
PODS = "/api/v1/namespaces/NS/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/NS/deployments"

JOBS = "/apis/batch/v1/namespaces/NS/jobs"


def version_of(answer: Answer) -> str:
    return str(answer.body["metadata"]["resourceVersion"])


async def catch_up(server: AnswerRecorder) -> None:
    """A consistent read waits until the real server's watch cache has all changes."""
    await server.ask("GET", CONFIGMAPS)
