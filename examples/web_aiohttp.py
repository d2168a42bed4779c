"""An aiohttp.web service with a cache of pods, probes, metrics, and a stream of changes that browsers resume.

    python examples/web_aiohttp.py
    python examples/web_aiohttp.py http://127.0.0.1:8001

The second serves the cluster of a `kubectl proxy` on port 8080. The first plays the API server and a browser.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from aioinformer import Client, KubeObject, NotFoundError
from aioinformer.testing import APIServer
from aioinformer.web import WebInformer, WebInformers
from aioinformer.web.aiohttp import setup, stream_changes


def create_app(client: Any) -> web.Application:
    """Return the service for a client, or for a function that returns one."""
    informers = WebInformers(client)
    pods: WebInformer[KubeObject] = informers.for_resource("v1", "pods", history=1000)
    app = web.Application()
    setup(app, informers)  # runs the informers, and answers /readyz, /livez and /metrics

    async def list_pods(request: web.Request) -> web.Response:
        listed = pods.lister.namespace(request.match_info["namespace"]).list()
        return web.json_response(sorted(pod.name for pod in listed))

    async def events(request: web.Request) -> web.StreamResponse:
        namespace = request.match_info["namespace"]
        return await stream_changes(request, pods, where=lambda pod: pod.namespace == namespace)

    async def get_pod(request: web.Request) -> web.Response:
        """Return a pod as the server sent it: its bytes are its JSON."""
        try:
            pod = pods.lister.namespace(request.match_info["namespace"]).get(request.match_info["name"])
        except NotFoundError as error:
            raise web.HTTPNotFound(text=str(error)) from error
        return web.Response(body=pod.raw, content_type="application/json")

    app.add_routes(
        [
            web.get("/pods/{namespace}", list_pods),
            web.get("/pods/{namespace}/events", events),
            web.get("/pods/{namespace}/{name}", get_pod),
        ]
    )
    return app


async def main() -> None:
    """Ask the service before and after it is ready, and follow its changes."""
    async with APIServer() as server:
        server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
        server.pause()  # so the app is not ready at first
        async with TestClient(TestServer(create_app(lambda: Client.from_url(server.url)))) as http:
            print("/readyz:", (await http.get("/readyz")).status)
            server.resume()
            while (await http.get("/readyz")).status != 200:
                await asyncio.sleep(0.05)
            for path in ("/readyz", "/pods/default", "/pods/default/none"):
                answer = await http.get(path)
                print(f"{path}:", answer.status, await answer.text())
            async with http.ws_connect("/pods/default/events") as socket:
                for _ in range(3):
                    message = await socket.receive_json()
                    print(message["type"], message.get("key", ""))


if __name__ == "__main__":
    if sys.argv[1:]:
        web.run_app(create_app(lambda: Client.from_url(sys.argv[1])), port=8080)
    else:
        asyncio.run(main())
