"""Prefect's Kubernetes observer on aioinformer: the same events and the same crashed flow runs, with reconcilers.

    from informer_observer import use_informers
    use_informers()                       # before the worker starts

What stays: a thread beside the worker, the settings, Prefect's own function that turns a pod into an event, the rules
for a crash. What goes: kopf, and what its raw events lose: a job that is deleted while the observer cannot reach the
server, and what happens while Prefect's API does not answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import httpx
from anyio.from_thread import start_blocking_portal
from lost_jobs import LostJobs
from pod_events import PodEvents
from prefect import get_client
from prefect.events.clients import get_events_client
from prefect_kubernetes import observer, worker
from websockets.exceptions import WebSocketException

from aioinformer import Client, KubeObject, Resource
from aioinformer.operator import Controller, Manager, Request, Result

AWAY = (httpx.TransportError, WebSocketException, OSError)
"""What Prefect's clients raise if Prefect does not answer."""

PAUSE = 5.0
"""Seconds until Prefect is tried again."""

logger = logging.getLogger("prefect_kubernetes.informer_observer")

_running: list[ExitStack] = []
"""Ends the thread with the observer, if there is one."""


Reconcile = Callable[[Request[KubeObject]], Awaitable[Result | None]]


def wait_for_prefect(reconcile: Reconcile) -> Reconcile:
    """Return a reconcile that is called again while Prefect does not answer, for as long as it takes."""

    async def wait(request: Request[KubeObject]) -> Result | None:
        try:
            return await reconcile(request)
        except AWAY as error:
            logger.warning(
                "Prefect does not answer; %s is tried again in %.0f s: %r", request.key, PAUSE, error
            )
            return Result(requeue_after=PAUSE)

    return wait


def manager_of(client: Client) -> Manager:
    """Return the manager with what the settings ask for."""
    settings = observer.settings.observer
    selected = {
        "label_selector": observer._observed_label_selector(),
        "namespaces": sorted(settings.namespaces) or None,
    }
    manager = Manager(client)
    jobs = manager.for_resource("batch/v1", "jobs", **selected)
    reconcilers = {"jobs": LostJobs(jobs, Resource(client, "batch/v1", "jobs"))}
    if settings.replicate_pod_events:
        reconcilers["pods"] = PodEvents(manager.for_resource("v1", "pods", **selected))
    for name, reconciler in reconcilers.items():
        manager.add(
            Controller(
                name,
                wait_for_prefect(reconciler.reconcile),
                reconciler.informer,
                predicate=lambda change: False,  # the source has what was deleted, too
                sources=[reconciler.changes],
                concurrency=settings.startup_event_concurrency,
            )
        )
    return manager


@asynccontextmanager
async def observe() -> AsyncIterator[None]:
    """Observe during the block. Prefect's functions find their clients where kopf's start-up handler puts them."""
    observer._startup_event_semaphore = asyncio.Semaphore(
        observer.settings.observer.startup_event_concurrency
    )
    async with (
        get_client() as observer.orchestration_client,
        get_events_client() as observer.events_client,
        Client.from_environment() as client,
        manager_of(client),
    ):
        yield


def start_observer() -> None:
    """Start the observer in a thread; does nothing if it runs."""
    if not _running:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(name="prefect-kubernetes-observer"))
            stack.enter_context(portal.wrap_async_context_manager(observe()))
            _running.append(stack.pop_all())


def stop_observer() -> None:
    """Stop the observer, and wait until its thread has ended."""
    while _running:
        _running.pop().close()


def use_informers() -> None:
    """Let every Kubernetes worker of this process start this observer."""
    worker.start_observer, worker.stop_observer = start_observer, stop_observer
