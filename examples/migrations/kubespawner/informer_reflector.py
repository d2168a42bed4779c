"""KubeSpawner's reflectors on aioinformer: the same class to KubeSpawner, an informer inside.

    from informer_reflector import use_informers
    use_informers()                       # in jupyterhub_config.py

What stays: ``resources`` by namespace/name as dicts, ``first_load_future``, ``on_failure``, ``start`` and ``stop``.
What goes: the list every ten seconds, the restart every thirty, and giving up when the server is away for a minute.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubespawner import spawner
from kubespawner.reflector import ResourceReflector
from traitlets import Float

from aioinformer import Client, SharedInformerFactory

API_VERSIONS = {"CoreV1Api": "v1", "NetworkingV1Api": "networking.k8s.io/v1"}


class InformerReflector(ResourceReflector):
    """A ResourceReflector that reads from an informer."""

    min_watch_timeout = Float(300, config=True, help="Seconds; a watch ends after one to two times this.")

    async def start(self) -> None:
        """Start, and return when the first list is loaded."""
        if self.watch_task and not self.watch_task.done():
            raise RuntimeError(f"Task watching for {self.kind} is already running")
        self.watch_task = asyncio.create_task(self._run())
        await asyncio.wait({self.watch_task, self.first_load_future}, return_when=asyncio.FIRST_COMPLETED)
        if not self.first_load_future.done():
            await self.watch_task  # raises what ended it

    async def stop(self) -> None:
        """Stop, and wait until the watch has ended."""
        task, self.watch_task = self.watch_task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self) -> None:
        try:
            namespace = None if self.omit_namespace else self.namespace
            client = Client.wrap(self.api.api_client)
            async with SharedInformerFactory(
                client, namespace, min_watch_timeout=self.min_watch_timeout
            ) as factory:
                informer = factory.for_resource(
                    API_VERSIONS[self.api_group_name],
                    self.kind,
                    label_selector=self.label_selector or None,
                    field_selector=self.field_selector or None,
                )
                informer.add_event_handler(
                    on_add=lambda obj, _: self._put(obj),
                    on_update=lambda old, new: self._put(new),
                    on_delete_object=lambda obj: self.resources.pop(obj.key, None),
                )
                await informer.wait_synced(fail_fast=True)
                self.first_load_future.set_result(None)
                await informer.wait_stopped()
        except Exception as error:
            self.log.exception("Watching %s failed", self.kind)
            if not self.first_load_future.done():
                self.first_load_future.set_exception(error)
            if self.on_failure:
                self.on_failure()
            raise

    def _put(self, obj: Any) -> None:
        self.resources[obj.key] = obj.to_dict()


class InformerPodReflector(InformerReflector, spawner.PodReflector):
    """KubeSpawner's pods."""


class InformerEventReflector(InformerReflector, spawner.EventReflector):
    """KubeSpawner's events."""


def use_informers() -> None:
    """Let every KubeSpawner of this process use informers."""
    spawner.PodReflector = InformerPodReflector
    spawner.EventReflector = InformerEventReflector
