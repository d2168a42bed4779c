"""An informer in an aiohttp.web app, which answers from memory and is ready once the cache is filled.

    python examples/aiohttp_app.py
    python examples/aiohttp_app.py http://127.0.0.1:8001

The first prints what the app answers, on an API server inside this process. The second serves on port 8080, for the
cluster of a `kubectl proxy`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from aioinformer import Client, KubeObject, ListWatch, NotFoundError, SharedIndexInformer
from aioinformer.errors import SelectorError
from aioinformer.metrics import exposition
from aioinformer.testing import APIServer

PODS = web.AppKey("PODS", SharedIndexInformer[KubeObject])


def create_app(cluster: Client | str) -> web.Application:
    """Return the app for a cluster or its URL. A given client stays open."""

    async def informer(app: web.Application) -> AsyncIterator[None]:
        client = Client.from_url(cluster) if isinstance(cluster, str) else cluster
        app[PODS] = SharedIndexInformer(ListWatch.for_resource(client, "v1", "pods"), KubeObject)
        try:
            async with app[PODS]:  # does not wait for the sync: until then /readyz returns 503
                yield
        finally:
            if client is not cluster:
                await client.close()

    app = web.Application()
    app.cleanup_ctx.append(informer)
    app.add_routes(
        [
            web.get("/readyz", readyz),
            web.get("/pods/{namespace}", list_pods),
            web.get("/pods/{namespace}/{name}", get_pod),
            web.get("/informer", informer_state),
            web.get("/metrics", metrics),
        ]
    )
    return app


async def readyz(request: web.Request) -> web.Response:
    """Return 200 once the first list is cached, also while the API server is unavailable: stale data is useful here.

    docs/state.md shows how to be ready only while the cache is current.
    """
    pods = request.app[PODS]
    ready = pods.has_synced() and not pods.is_stopped
    return web.Response(text="ok") if ready else web.Response(status=503, text=str(pods.state))


async def list_pods(request: web.Request) -> web.Response:
    """Return the names of a namespace's pods, by a label selector."""
    lister = request.app[PODS].lister.namespace(request.match_info["namespace"])
    try:
        pods = lister.list(request.query.get("selector", ""))
    except SelectorError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    return web.json_response(sorted(pod.name for pod in pods))


async def get_pod(request: web.Request) -> web.Response:
    """Return a pod as the server sent it: its bytes are its JSON."""
    lister = request.app[PODS].lister.namespace(request.match_info["namespace"])
    try:
        pod = lister.get(request.match_info["name"])
    except NotFoundError as error:
        raise web.HTTPNotFound(text=str(error)) from error
    return web.Response(body=pod.raw, content_type="application/json")


async def informer_state(request: web.Request) -> web.Response:
    """Return the informer's state."""
    body = msgspec.json.encode(request.app[PODS].state, enc_hook=str)
    return web.Response(body=body, content_type="application/json")


async def metrics(request: web.Request) -> web.Response:
    """Return its metrics for Prometheus."""
    return web.Response(text=exposition(request.app[PODS].state.samples()))


async def main() -> None:
    """Call the app before and after it is ready."""
    async with APIServer() as server:
        server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
        server.pause()  # so the app is not ready at first
        app = create_app(server.url)
        async with TestClient(TestServer(app)) as http:
            print("/readyz:", (await http.get("/readyz")).status)
            server.resume()
            await app[PODS].wait_synced(timeout=30)
            for path in ("/readyz", "/pods/default", "/pods/default/none", "/informer"):
                answer = await http.get(path)
                print(f"{path}:", answer.status, await answer.text())


if __name__ == "__main__":
    if sys.argv[1:]:
        web.run_app(create_app(sys.argv[1]), port=8080)
    else:
        asyncio.run(main())
