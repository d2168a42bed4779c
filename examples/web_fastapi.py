"""A FastAPI service with a cache of pods, probes, metrics, and a stream of changes that browsers resume.

    python examples/web_fastapi.py
    python examples/web_fastapi.py http://127.0.0.1:8001 8080

The second serves the cluster of a `kubectl proxy`. The first plays the API server and a browser, and stops the service.
"""

import asyncio
import signal
import socket
import sys
from typing import Annotated, Any

import httpx
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Response
from starlette.routing import Route

from aioinformer import Client, KubeObject, Lister, NotFoundError
from aioinformer.testing import APIServer
from aioinformer.web import ChangeStream, WebInformers
from aioinformer.web.starlette import ChangeStreamResponse


def create_app(client: Any) -> FastAPI:
    """Return the service for a client, or for a function that returns one."""
    informers = WebInformers(client)
    pods = informers.for_resource("v1", "pods", history=1000)
    app = FastAPI(lifespan=informers.lifespan)
    app.mount("/kube", informers.probes)  # /kube/readyz, /kube/livez, /kube/metrics
    app.router.routes.append(Route("/events", ChangeStream(pods)))  # all pods

    @app.get("/pods/{namespace}")
    async def list_pods(namespace: str, lister: Annotated[Lister[KubeObject], Depends(pods)]) -> list[str]:
        return sorted(pod.name for pod in lister.namespace(namespace).list())

    @app.get("/pods/{namespace}/events")
    async def events(namespace: str) -> Response:  # after the route has found out what the user may see
        return ChangeStreamResponse(pods, where=lambda pod: pod.namespace == namespace)

    @app.get("/pods/{namespace}/{name}")
    async def get_pod(namespace: str, name: str) -> dict[str, Any]:
        try:
            return pods.lister.namespace(namespace).get(name).to_dict()
        except NotFoundError as error:
            raise HTTPException(404, str(error)) from error

    return app


async def main() -> None:
    """Ask the service, follow its changes, and stop it meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with APIServer() as server:
        server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
        program = await asyncio.create_subprocess_exec(
            sys.executable, __file__, server.url, str(port), stderr=asyncio.subprocess.PIPE
        )
        transport = httpx.AsyncHTTPTransport(retries=10)  # until uvicorn listens
        async with httpx.AsyncClient(
            transport=transport, timeout=60, base_url=f"http://127.0.0.1:{port}"
        ) as http:
            while (await http.get("/kube/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
            print("pods:", (await http.get("/pods/default")).text)
            async with http.stream("GET", "/pods/default/events") as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        print(line[:40])
                    if "SYNCED" in line:
                        program.send_signal(signal.SIGTERM)
        print("the stream has ended")
        _, log = await program.communicate()
        print("uvicorn has ended", "with an error" if b"Traceback" in log else "without an error")


if __name__ == "__main__":
    if sys.argv[1:]:
        uvicorn.run(create_app(lambda: Client.from_url(sys.argv[1])), port=int(sys.argv[2]))
    else:
        asyncio.run(main())
