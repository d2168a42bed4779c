"""`python -m examples.storage_operator`: a demonstration, or with `--cluster` the operator itself."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from aioinformer import Client, EventRecorder, LeaderElector
from aioinformer.testing import APIServer

from .model import API_VERSION
from .operator import NAME, storage_operator

DEFINITIONS = Path(__file__).with_name("crds.yaml")
WHERE = {"server": "10.0.0.7", "volume": "deep"}


async def operate(namespace: str | None) -> None:
    """Run on the kubeconfig's cluster until stopped; one of several instances works."""
    async with Client.from_kubeconfig() as client, EventRecorder(client, NAME) as events:
        election = LeaderElector(client, "storage-operator", namespace or client.namespace)
        manager = storage_operator(client, events, namespace=namespace, leader_election=election)
        await manager.run_until_signal()


async def demonstrate() -> None:
    """Delete a Cave that a Backend still mounts, on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        for definition in yaml.safe_load_all(DEFINITIONS.read_text()):
            server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", definition)
        async with EventRecorder(client, NAME) as events, storage_operator(client, events):
            server.create(API_VERSION, "caves", {"metadata": {"name": "deep"}, "spec": WHERE})
            web = {
                "metadata": {"name": "web"},
                "spec": {**WHERE, "image": "example.com/web:1", "replicas": 2},
            }
            server.create(API_VERSION, "backends", web)
            await cave_is(server, lambda cave: cave.get("status") == {"phase": "Protected", "pods": 2})
            print("kubectl delete cave deep")
            server.delete(API_VERSION, "caves", "deep")
            await cave_is(server, lambda cave: cave["status"]["phase"] == "Releasing")
            print("kubectl delete backend web")
            server.delete(API_VERSION, "backends", "web")
            await cave_is(server, lambda cave: False)
        for event in server.list("events.k8s.io/v1", "events"):
            print(f"{event['regarding']['kind']} {event['reason']}: {event['note']}")


async def cave_is(server: APIServer, condition: Callable[[dict[str, Any]], object]) -> None:
    """Wait until the Cave is in the wanted state, or gone, and print it."""
    while caves := server.list(API_VERSION, "caves"):
        if condition(caves[0]):
            status = caves[0]["status"]
            print(f"cave deep: {status['phase']}, mounted by {status['pods']} pods")
            return
        await asyncio.sleep(0.01)
    print("cave deep: gone")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", action="store_true", help="run on the cluster of your kubeconfig")
    parser.add_argument("--namespace", help="the one to look after, in place of all")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO if arguments.cluster else logging.WARNING)
    asyncio.run(operate(arguments.namespace) if arguments.cluster else demonstrate())


if __name__ == "__main__":
    main()
