"""Prefect's Kubernetes observer on aioinformer: the same events and the same crashed flow runs, with reconcilers.

    from informer_observer import use_informers
    use_informers()                       # before the worker starts

What stays: a thread beside the worker, the settings, Prefect's own function that turns a pod into an event, the rules
for a crash. What goes: kopf, and what its raw events lose: a job that is deleted while the observer cannot reach the
server, and what happens while Prefect's API does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from anyio.from_thread import start_blocking_portal
from lost_jobs import LostJobs
from pod_events import PodEvents
from prefect import get_client
from prefect.events.clients import get_events_client
from prefect_kubernetes import observer, worker

from aioinformer import Client, Resource
from aioinformer.operator import Controller, Manager
from aioinformer.workqueue import ItemExponentialFailureRateLimiter

FIRST_RETRY, LAST_RETRY = 0.5, 60.0
"""Seconds until a failed reconcile is tried again; doubled each time."""

_running: list[ExitStack] = []
"""Ends the thread with the observer, if there is one."""


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
                reconciler.reconcile,
                reconciler.informer,
                predicate=lambda change: False,  # the source has what was deleted, too
                sources=[reconciler.changes],
                concurrency=settings.startup_event_concurrency,
                rate_limiter=ItemExponentialFailureRateLimiter(FIRST_RETRY, LAST_RETRY),
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
