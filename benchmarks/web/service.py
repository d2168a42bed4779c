"""The service that is measured: FastAPI on uvicorn and uvloop, with one of the libraries or without any.

Run as ``python -m benchmarks.web.service LIBRARY SERVER``; it prints its port. ``POST /start`` starts reading pods,
``/state`` says how many objects and events there were, ``/ping`` is what is measured.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

import uvicorn
from fastapi import FastAPI

PAGE = 500

Reader = Callable[[str, "State"], Coroutine[Any, Any, None]]


class State:
    """What has been read.

    Attributes:
        objects: The objects by key.
        events: Objects and events that a handler was called for.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.events = 0

    def keep(self, key: str, obj: Any) -> None:
        self.objects[key] = obj
        self.events += 1


async def read_nothing(server: str, state: State) -> None:
    """Do without a library."""


async def read_by_aioinformer(server: str, state: State) -> None:
    """WebInformers, with a feed of changes and a handler."""
    from aioinformer import Client
    from aioinformer.web import WebInformers

    informers = WebInformers(lambda: Client.from_url(server))
    pods = informers.for_resource("v1", "pods", history=1000)
    async with informers.lifespan():
        pods.informer.add_event_handler(
            on_add=lambda obj, is_in_initial_list: state.keep(obj.key, obj),
            on_update=lambda old, new: state.keep(new.key, new),
        )
        await asyncio.Event().wait()


async def read_by_kubernetes_asyncio(server: str, state: State) -> None:
    """Pages of a list, then a watch, into a dict, as its users write it."""
    from kubernetes_asyncio import client, watch

    configuration = client.Configuration(host=server)
    async with client.ApiClient(configuration) as api, watch.Watch() as events:
        core: Any = client.CoreV1Api(api)
        token = None
        while True:
            page = await core.list_pod_for_all_namespaces(limit=PAGE, _continue=token)
            for pod in page.items:
                state.keep(f"{pod.metadata.namespace}/{pod.metadata.name}", pod)
            token = page.metadata._continue
            if not token:
                break
        version = page.metadata.resource_version
        async for event in events.stream(core.list_pod_for_all_namespaces, resource_version=version):
            pod = event["object"]
            state.keep(f"{pod.metadata.namespace}/{pod.metadata.name}", pod)


async def read_by_kopf(server: str, state: State) -> None:
    """kopf's low-level handler, called once for each event, in the service's event loop."""
    import kopf
    from kopf._cogs.structs.credentials import ConnectionInfo, Vault, VaultKey

    logging.getLogger("kopf").setLevel(logging.WARNING)
    registry, settings, vault = kopf.OperatorRegistry(), kopf.OperatorSettings(), Vault()

    async def keep(body: Any, namespace: Any, name: Any, **_: Any) -> None:
        state.keep(f"{namespace}/{name}", body)

    kopf.on.event("v1", "pods", registry=registry)(keep)
    settings.posting.enabled = False
    settings.watching.chunk_size = PAGE
    await vault.populate({VaultKey("benchmark"): ConnectionInfo(server=server)})
    await kopf.operator(registry=registry, settings=settings, vault=vault, standalone=True, clusterwide=True)


READERS: dict[str, Reader] = {
    "none": read_nothing,
    "aioinformer": read_by_aioinformer,
    "kubernetes_asyncio": read_by_kubernetes_asyncio,
    "kopf": read_by_kopf,
}


async def preload(library: str) -> None:
    """Import what a service imports before it answers its first request."""
    if library == "aioinformer":
        import aioinformer.web  # noqa: F401
    elif library != "none":
        import_module(library)
    if library in ("aioinformer", "kubernetes_asyncio"):
        import kubernetes_asyncio.client  # noqa: F401


def create_app(read: Reader, server: str) -> FastAPI:
    """Return the service."""
    app, state, tasks = FastAPI(), State(), list[asyncio.Task[None]]()

    @app.get("/ping")
    async def ping(name: str = "world") -> dict[str, str]:
        return {"hello": name}

    @app.post("/start")
    async def start() -> None:
        tasks.append(asyncio.create_task(read(server, state)))

    @app.get("/state")
    async def show() -> dict[str, int]:
        for task in tasks:
            if task.done():
                task.result()
        return {"objects": len(state.objects), "events": state.events}

    return app


async def end_with_input(service: uvicorn.Server) -> None:
    """End the service when standard input is closed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()
    service.should_exit = True


async def main(library: str, server: str) -> None:
    await preload(library)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(READERS[library], server), access_log=False, log_level="warning")
    service = uvicorn.Server(config)
    ending = asyncio.create_task(end_with_input(service))
    print(listening.getsockname()[1], flush=True)
    await service.serve([listening])
    ending.cancel()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(*sys.argv[1:]))
