"""An operator inside a FastAPI app with probes and metrics.

python examples/operator_fastapi.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Health, Manager, Request
from aioinformer.testing import APIServer


def create_app(client: Client, reconcile: Callable[[Request[KubeObject]], Awaitable[None]]) -> FastAPI:
    """Return the app; the operator runs as long as the app does."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Make the manager here, because it runs once, and an app may be started again."""
        app.state.manager = manager = Manager(client)
        manager.add(Controller("maps", reconcile, manager.for_resource("v1", "configmaps")))
        async with manager:
            yield

    app = FastAPI(lifespan=lifespan)

    def answer(health: Health) -> str:
        if not health:
            raise HTTPException(503, health.reasons)
        return "ok"

    @app.get("/healthz")
    async def healthz() -> str:
        return answer(app.state.manager.healthy())

    @app.get("/readyz")
    async def readyz() -> str:
        return answer(app.state.manager.ready())

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        manager: Manager = app.state.manager
        return manager.metrics()

    return app


async def main() -> None:
    """Call the app before and after its caches are filled."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
        server.pause()  # so the app is not ready at first
        reconciled = asyncio.Event()

        async def reconcile(request: Request[KubeObject]) -> None:
            reconciled.set()

        app = create_app(client, reconcile)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as http,
        ):
            for path in ("/healthz", "/readyz"):
                print(f"{path}:", (await http.get(path)).status_code)
            server.resume()
            await reconciled.wait()
            print("/readyz:", (await http.get("/readyz")).status_code)
            lines = (await http.get("/metrics")).text.splitlines()
            print(*[line for line in lines if line.startswith("workqueue_adds_total")])


if __name__ == "__main__":
    asyncio.run(main())
