"""An operator whose replicas share the objects: four processes, of which one is killed every ten seconds.

    python examples/sharded_operator.py                       # on an embedded server, for a few kills
    python examples/sharded_operator.py --kubeconfig ~/.kube/config --kills 100 --seconds 10

In production `aioinformer run MODULE:operator --shards 64` is all that a replica needs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

from aioinformer import Client, KubeObject, Resource
from aioinformer.operator import Context, Operator, Request, Uses
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer

OBJECTS = 40
operator = Operator(
    "sharded-example", events=False, uses=[Uses("configmaps", verbs=("get", "list", "watch", "update"))]
)


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject], context: Context) -> None:
    """Write down the round that an object asks for. It is right no matter how often or by whom it is called."""
    config = request.object
    if config is None or config["data"].get("seen") == config["data"].get("round"):
        return
    # The resourceVersion makes the server refuse a write of a replica that has lost the object meanwhile.
    seen = {**config.to_dict(), "data": {**config["data"], "seen": config["data"]["round"]}}
    await context.resource("configmaps").update(seen)


async def replica(url: str, kubeconfig: str | None) -> None:
    """Run one replica until it is ended."""
    client = Client.from_kubeconfig(path=kubeconfig) if kubeconfig else Client.from_url(url)
    async with client:
        sharding = Sharding(
            client, operator.name, "sharded-example", slots=16,
            lease_duration=3.0, renew_deadline=2.0, retry_period=0.5,
        )  # fmt: skip
        await operator.manager(client, namespace="sharded-example", sharding=sharding).run_until_signal()


async def start_replica(arguments: list[str]) -> asyncio.subprocess.Process:
    """Start a replica as a process."""
    return await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments)


async def ask(configmaps: Resource[Any], number: int) -> None:
    """Ask for a new round of all objects, and wait until each was reconciled."""
    for name in range(OBJECTS):
        metadata = {"name": f"c{name}", "namespace": "sharded-example"}
        await configmaps.apply({"metadata": metadata, "data": {"round": str(number)}}, force=True)
    for name in range(OBJECTS):
        await configmaps.wait_for(
            f"sharded-example/c{name}", lambda config: config["data"].get("seen") == str(number), timeout=60
        )


async def main(kubeconfig: str | None, kills: int, seconds: float) -> None:
    """Kill one of four replicas again and again; every object is reconciled all the same."""
    async with AsyncExitStack() as stack:
        if kubeconfig:
            arguments = ["--replica", "--kubeconfig", kubeconfig]
            client = Client.from_kubeconfig(path=kubeconfig)
        else:
            server = await stack.enter_async_context(APIServer(shards=True))
            arguments, client = ["--replica", "--url", server.url], Client.from_url(server.url)
        await stack.enter_async_context(client)
        await Resource(client, "v1", "namespaces", dict).apply({"metadata": {"name": "sharded-example"}})
        configmaps = Resource(client, "v1", "configmaps", dict)
        processes = [await start_replica(arguments) for _ in range(4)]
        try:
            await ask(configmaps, 0)
            for number in range(1, kills + 1):
                next_kill = asyncio.get_running_loop().time() + seconds
                processes[0].kill()
                await processes.pop(0).wait()
                await ask(configmaps, number)
                print(
                    "round",
                    number,
                    "is done: a replica was killed, and the others reconciled its objects",
                    flush=True,
                )
                processes.append(await start_replica(arguments))
                if number < kills:
                    await asyncio.sleep(next_kill - asyncio.get_running_loop().time())
            for process in processes:
                assert process.returncode is None, f"a replica has ended with {process.returncode}"
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                await process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replica", action="store_true")
    parser.add_argument("--url", default="")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    asyncio.run(
        replica(given.url, given.kubeconfig)
        if given.replica
        else main(given.kubeconfig, given.kills, given.seconds)
    )
