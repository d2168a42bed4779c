"""An informer in a FastAPI app, which answers from memory and is ready once the cache is filled.

    python examples/fastapi_app.py
    python examples/fastapi_app.py http://127.0.0.1:8001

The first prints what the app answers, on an API server inside this process. The second serves on port 8080, for the
cluster of a `kubectl proxy`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import msgspec
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response

from aioinformer import Client, KubeObject, ListWatch, NotFoundError, SharedIndexInformer
from aioinformer.errors import SelectorError
from aioinformer.metrics import exposition
from aioinformer.testing import APIServer


async def informer_of(request: Request) -> Any:
    """Return the app's informer."""
    return request.app.state.pods


Pods = Annotated[SharedIndexInformer[KubeObject], Depends(informer_of)]


def create_app(cluster: Client | str) -> FastAPI:
    """Return the app for a cluster or its URL. A given client stays open."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Make the informer here, because it runs once, and an app may be started again."""
        client = Client.from_url(cluster) if isinstance(cluster, str) else cluster
        app.state.pods = SharedIndexInformer(ListWatch.for_resource(client, "v1", "pods"), KubeObject)
        try:
            # Do not wait for the sync: uvicorn answers nothing before the yield. Until the sync /readyz returns 503.
            async with app.state.pods:
                yield
        finally:
            if client is not cluster:
                await client.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz(pods: Pods) -> str:
        """Stay ready while the API server is unavailable. docs/state.md has a stricter rule."""
        if pods.is_stopped or not pods.has_synced():
            raise HTTPException(503, str(pods.state))
        return "ok"

    @app.get("/pods/{namespace}")
    async def list_pods(pods: Pods, namespace: str, selector: str = "") -> list[str]:
        try:
            return sorted(pod.name for pod in pods.lister.namespace(namespace).list(selector))
        except SelectorError as error:
            raise HTTPException(400, str(error)) from error

    @app.get("/pods/{namespace}/{name}")
    async def get_pod(pods: Pods, namespace: str, name: str) -> dict[str, Any]:
        try:
            return pods.lister.namespace(namespace).get(name).to_dict()
        except NotFoundError as error:
            raise HTTPException(404, str(error)) from error

    @app.get("/informer")
    async def informer(pods: Pods) -> Response:
        return Response(msgspec.json.encode(pods.state, enc_hook=str), media_type="application/json")

    @app.get("/metrics")
    async def metrics(pods: Pods) -> Response:
        return Response(exposition(pods.state.samples()), media_type="text/plain")

    return app


async def main() -> None:
    """Call the app before and after it is ready."""
    async with APIServer() as server:
        server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
        server.pause()  # so the app is not ready at first
        app = create_app(server.url)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://app") as http,
        ):
            print("/readyz:", (await http.get("/readyz")).status_code)
            server.resume()
            await app.state.pods.wait_synced(timeout=30)
            for path in ("/readyz", "/pods/default", "/pods/default/none", "/informer"):
                answer = await http.get(path)
                print(f"{path}:", answer.status_code, answer.text)


if __name__ == "__main__":
    if sys.argv[1:]:
        uvicorn.run(create_app(sys.argv[1]), port=8080)
    else:
        asyncio.run(main())
