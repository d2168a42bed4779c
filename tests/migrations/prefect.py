"""Flow runs with their jobs and pods, and Prefect's own server, which says what a subject knows of them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from pytest_aioinformer.ports import free_ports
from tests.chaos.proxy import Proxy
from tests.e2e.api import API, MERGE, PODS, Object, Resource
from tests.e2e.clusters import pod_manifest

from .objects import DELETION, Objects, Tell
from .worlds import World

JOBS = Resource("batch/v1", "jobs")
FLOW_RUN_ID = "prefect.io/flow-run-id"

READY_DEADLINE = 120.0
"""Seconds in which Prefect's server starts and makes its database."""

ANSWER_DEADLINE = 30.0
"""Seconds in which it answers a request."""

POLL = 0.25
"""Seconds between two looks at what Prefect knows."""

RELABELED = 5.0
"""Seconds in which an observer could mistake a job without its label for a deleted one."""

PREFECT_OUTAGE = 120.0
"""Seconds: longer than Prefect's client retries, which is about a minute."""

PHASES = ("Pending", "Running", "Succeeded")
"""Of a pod, in their order."""


class Prefect:
    """A client of Prefect's server."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def post(self, path: str, body: Object) -> Any:
        """Post, again while the database is locked: Prefect answers 503 then."""
        async with asyncio.timeout(ANSWER_DEADLINE):
            while True:
                async with self._session.post(f"{self.url}/{path}", json=body) as response:
                    if response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                        response.raise_for_status()
                        return await response.json()
                await asyncio.sleep(POLL)

    async def create_flow_run(self, name: str) -> str:
        """Create a flow run that runs, and return its id."""
        flow = await self.post("flows/", {"name": "flow"})
        state = {"type": "RUNNING", "name": "Running"}
        run = await self.post("flow_runs/", {"name": name, "flow_id": flow["id"], "state": state})
        return str(run["id"])

    async def states(self) -> dict[str, str]:
        """Return the type of each flow run's state by name."""
        runs = await self.post("flow_runs/filter", {"limit": 200})
        return {run["name"]: run["state_type"] for run in runs}

    async def pod_events(self) -> list[tuple[str, str]]:
        """Return the pod and the phase of each event of a pod."""
        page = await self.post(
            "events/filter", {"filter": {"event": {"prefix": ["prefect.kubernetes.pod."]}}}
        )
        events = page["events"]
        while page["next_page"]:
            async with self._session.get(page["next_page"], raise_for_status=True) as response:
                page = await response.json()
            events += page["events"]
        return [
            (event["resource"]["prefect.resource.name"], event["event"].rpartition(".")[2].capitalize())
            for event in events
        ]


@asynccontextmanager
async def prefect_server(python: Path, folder: Path) -> AsyncIterator[Prefect]:
    """Run Prefect's server during the block, on loopback and with a database of its own."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/api"
    process = await asyncio.create_subprocess_exec(
        *(
            python.with_name("prefect"),
            "server",
            "start",
            "--no-ui",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ),
        env={
            **os.environ,
            **variables(url, folder / "home-of-prefect"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        }
        | {"PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": str(POLL)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(READY_DEADLINE):
            while process.returncode is None:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"{url}/health") as response:
                        if response.ok:
                            break
                await asyncio.sleep(POLL)
        async with aiohttp.ClientSession() as session:
            yield Prefect(url, session)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def variables(url: str, folder: Path) -> dict[str, str]:
    """Return the environment variables by which Prefect finds its server and its files, and sends no statistics."""
    return {"PREFECT_API_URL": url, "PREFECT_HOME": str(folder), "DO_NOT_TRACK": "1"}


class FlowRuns(Objects):
    """Flow runs, each with a job and a pod of its name.

    Prefect knows one by the phase of its pod, and that it is gone if the flow run has crashed.
    """

    def __init__(self, api: API, namespace: str, prefect: Prefect, proxy: Proxy) -> None:
        super().__init__(api, namespace, JOBS, pod_manifest)
        self._prefect = prefect
        self._proxy = proxy
        self._given_up: set[str] = set()
        self.troubles = {"a job fails": self._fail_job, "Prefect away for 120 s": self._lose_prefect}

    async def create(self, name: str) -> str:
        """Create a flow run, its job and its running pod; return the phase."""
        flow_run_id = await self._prefect.create_flow_run(name)
        labels = {
            FLOW_RUN_ID: flow_run_id,
            "prefect.io/flow-run-name": name,
            "job-name": name,
        }
        pod = pod_manifest(name, labels=labels)
        spec = {"containers": pod["spec"]["containers"], "restartPolicy": "Never"}
        template = {"metadata": {"labels": labels}, "spec": spec}
        job = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"backoffLimit": 0, "template": template},
        }
        await self._api.do(
            "POST", JOBS.path(self._namespace), {"apiVersion": "batch/v1", "kind": "Job", **job}
        )
        await self._api.do("POST", PODS.path(self._namespace), pod)
        return await self._set_phase(name, "Running")

    async def change(self, name: str) -> str:
        """Let a pod succeed; return the phase."""
        return await self._set_phase(name, "Succeeded")

    async def _set_phase(self, name: str, phase: str) -> str:
        status = {"phase": phase, "containerStatuses": [container_status(phase)]}
        path = f"{PODS.path(self._namespace, name)}/status"
        await self._api.do("PATCH", path, {"status": status}, content_type=MERGE)
        return phase

    async def delete(self, name: str) -> None:
        """Delete the job and the pod."""
        for resource in (JOBS, PODS):
            await self._api.do("DELETE", resource.path(self._namespace, name), DELETION)

    async def versions(self) -> dict[str, str]:
        """Return the phase of each pod by name."""
        items = (await self._api.do("GET", PODS.path(self._namespace)))["items"]
        phases = {item["metadata"]["name"]: item["status"]["phase"] for item in items}
        return {name: phase for name, phase in phases.items() if name not in self._given_up}

    async def give_up(self, names: set[str]) -> None:
        """Expect nothing more of those whose job is gone: no observer hears of it later."""
        self._given_up |= names - (await self.versions()).keys()

    @asynccontextmanager
    async def telling(self, tell: Tell) -> AsyncIterator[None]:
        """During the block, tell what Prefect knows."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._follow(tell))
            yield
            task.cancel()

    async def _follow(self, tell: Tell) -> None:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                events, states = await self._prefect.pod_events(), await self._prefect.states()
                known: list[tuple[str, str | None]] = [
                    *sorted(events, key=lambda event: PHASES.index(event[1]))
                ]
                known += [(name, None) for name, state in states.items() if state == "CRASHED"]
                for name, version in known:
                    if name not in self._given_up:
                        tell(name, version)
            await asyncio.sleep(POLL)

    async def _fail_job(self, world: World) -> None:
        """Let a job fail, and another one lose the label by which observers select: its flow run has not crashed."""
        path = JOBS.path(self._namespace, "object-9")
        await self._api.do("PATCH", f"{path}/status", {"status": {"failed": 1}}, content_type=MERGE)
        labels = {"metadata": {"labels": {FLOW_RUN_ID: None}}}
        await self._api.do("PATCH", JOBS.path(self._namespace, "object-10"), labels, content_type=MERGE)
        await asyncio.sleep(RELABELED)
        await self._api.do("DELETE", PODS.path(self._namespace, "object-9"), DELETION)  # the job stays
        world.changes.append(("object-9", None))

    async def _lose_prefect(self, world: World) -> None:
        """Let the subject not reach Prefect, while a flow run is lost and a pod succeeds."""
        self._proxy.is_refusing = True
        await self._proxy.cut()
        await world.delete("object-7")
        await world.change("object-8")
        await asyncio.sleep(PREFECT_OUTAGE)
        self._proxy.is_refusing = False


@asynccontextmanager
async def open_flow_runs(api: API, namespace: str, python: Path, folder: Path) -> AsyncIterator[FlowRuns]:
    """Run Prefect's server, and a proxy to it for the subject, during the block."""
    async with prefect_server(python, folder) as prefect, Proxy(prefect.url) as proxy:
        flow_runs = FlowRuns(api, namespace, prefect, proxy)
        flow_runs.variables = variables(f"{proxy.url}/api", folder / "home-of-subject")
        yield flow_runs


def container_status(phase: str) -> Object:
    """Return the status of a container, whose pod has come to this phase now."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    state: Object = {"running": {"startedAt": now}}
    if phase == "Succeeded":
        state = {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}
    same = {"name": "main", "image": "example.com/main", "imageID": "main", "restartCount": 0}
    return {**same, "ready": phase == "Running", "state": state}
