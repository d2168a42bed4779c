"""A KubeSpawner that watches its pods; it prints what it knows of them."""

from __future__ import annotations

import asyncio
import logging
import os

from kubespawner import KubeSpawner
from traitlets.config import Config

from examples.migrations.telling import tell

FACTOR = int(os.environ.get("FACTOR", "1"))
"""By how much an hour is shortened."""

POLL = 30 / FACTOR if FACTOR > 1 else 0.05
"""Seconds. KubeSpawner's own poll reads the same dict every thirty seconds."""


async def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    config = Config()
    for reflector in ("PodReflector", "InformerPodReflector"):
        config[reflector].labels = {}  # the tests' pods have none
    config.PodReflector.timeout_seconds = 10 // FACTOR
    config.PodReflector.restart_seconds = 30 // FACTOR
    config.PodReflector.request_timeout = 60 // FACTOR
    config.InformerPodReflector.min_watch_timeout = 300 / FACTOR
    spawner = KubeSpawner(config=config, _mock=True, namespace=os.environ["NAMESPACE"])
    spawner.events_enabled = False
    await spawner._start_watching_pods()
    reported: dict[str, str] = {}
    while True:
        pods = spawner.pod_reflector.pods.values()
        known = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in list(pods)}
        for name, version in known.items() - reported.items():
            tell(name, version)
        for name in reported.keys() - known.keys():
            tell(name, None)
        reported = known
        await asyncio.sleep(POLL)
