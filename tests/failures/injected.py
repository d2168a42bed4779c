"""Ten failures, each as a function that injects it into a running operator."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from tests.e2e.manifests.installing import without
from tests.kubernetes.kubectl import KubectlError

from .installed import NAME, REPLICAS, Finding, Installed

FULL = Path("/dev/full")
"""Where each write fails as on a full disk."""


class Failure(NamedTuple):
    """A failure.

    Attributes:
        name: Its name in the table of the docs.
        inject: Injects it.
        finding: The check of ``aioinformer doctor`` that names it, and words of what it says.
        before: Prepares it before the pods start.
        is_short: Whether each run of the tests injects it.
    """

    name: str
    inject: Callable[[Installed], Awaitable[None]]
    finding: Finding
    before: Callable[[Installed], Awaitable[None]] | None = None
    is_short: bool = False


async def revoke_rights(release: Installed) -> None:
    role = json.loads(await release.plane.kubectl("get", "clusterrole", NAME, "-o=json"))
    await release.plane.kubectl("replace", "-f", "-", stdin=json.dumps(without(role, "patch", "configmaps")))
    await release.edit("changed")


async def delete_definition(release: Installed) -> None:
    await release.plane.kubectl("delete", "crd", "websites.example.com", "--timeout=60s")


async def expire_certificate(release: Installed) -> None:
    for pod in release.pods:
        for file, pem in release.issue(valid=timedelta(hours=-1)).items():
            (pod.folder / file).write_bytes(pem)
    async with asyncio.timeout(60):
        number = 0
        while True:
            number += 1
            release.drop_connections()
            try:
                await release.edit(f"changed {number}")
            except KubectlError as error:
                if "certificate has expired" in str(error):
                    return
                if "failed calling webhook" not in str(error):  # its connection was dropped
                    raise
            await asyncio.sleep(1)


async def stop_server(release: Installed) -> None:
    release.plane.kill()
    async with asyncio.timeout(60):
        while not {"server", "process"} <= {finding.check for finding in release.found_meanwhile}:
            release.found_meanwhile = await release.examine()
    await asyncio.sleep(40)
    await release.plane.restart()


async def create_unfit_site(release: Installed) -> None:
    """Create a Website without a field that the class requires, as a former release of the class allowed."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/required"
    patch = json.dumps([{"op": "remove", "path": path}])
    await release.plane.kubectl("patch", "crd", "websites.example.com", "--type=json", f"-p={patch}")
    async with asyncio.timeout(30):
        while True:
            try:
                await release.create_site("old", html=None)
            except KubectlError as error:
                if "spec.html" not in str(error):
                    raise
                await asyncio.sleep(0.2)
            else:
                return


async def nothing(release: Installed) -> None: ...


async def hang(release: Installed) -> None:
    release.dns.hangs = True
    await release.edit("changed")


async def freeze_leader(release: Installed) -> None:
    (await release.find_leader()).signal(signal.SIGSTOP)


async def fill_disk(release: Installed) -> None:
    """Let the pods start again with logs on a full disk, and work."""
    for pod in [*release.pods]:
        await release.end_pod(pod)
    for _ in range(REPLICAS):
        await release.start_pod(FULL)
    await release.find_leader()
    for number in range(5):
        await release.edit(f"changed {number}")
        await asyncio.sleep(1)


async def exceed_quota(release: Installed) -> None:
    hard = {"count/configmaps": "1"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": release.namespace},
        "spec": {"hard": hard},
    }
    await release.plane.kubectl("create", "-f", "-", stdin=json.dumps(quota))
    status = json.dumps({"status": {"hard": hard, "used": hard}})  # as its controller writes it
    where = ("resourcequota", "quota", f"-n={release.namespace}", "--subresource=status", "--type=merge")
    await release.plane.kubectl("patch", *where, f"-p={status}")
    async with asyncio.timeout(30):  # until admission knows the quota
        number = 0
        while "Event Website ReconcileFailed" not in {sign.name for sign in await release.snapshot()}:
            number += 1
            await release.create_site(f"more-{number}")
            await asyncio.sleep(1)


async def terminate_namespace(release: Installed) -> None:
    release.dns.failures = 10**6
    await release.plane.kubectl("delete", "namespace", release.namespace, "--wait=false")


FAILURES = [
    Failure("rights revoked", revoke_rights, Finding("rights", "may not patch configmaps"), is_short=True),
    Failure("definition deleted", delete_definition, Finding("process", "it is not ready: websites")),
    Failure("webhook certificate expired", expire_certificate, Finding("process", "certificate has expired")),
    Failure(
        "API server down for a minute", stop_server, Finding("process", "Lease cannot be acquired or renewed")
    ),
    Failure("object that does not fit", nothing, Finding("process", "undecodable"), create_unfit_site),
    Failure("reconcile that hangs", hang, Finding("process", "took longer than")),
    Failure("leader frozen", freeze_leader, Finding("process", "the process is frozen")),
    Failure("disk full for logs", fill_disk, Finding("process", "log lines cannot be written")),
    Failure("quota exceeded", exceed_quota, Finding("process", "exceeded quota")),
    Failure("namespace terminating", terminate_namespace, Finding("process", "ClientResponseError")),
]
