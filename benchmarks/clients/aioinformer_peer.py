"""aioinformer itself: list, watch, queue, indexer with the namespace index, and handlers."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

import aioinformer
from aioinformer import Client, KubeObject, Lister, ListWatch, ResourceEventHandlerFuncs, SharedIndexInformer
from aioinformer.cache import NAMESPACE_INDEX, meta_namespace_index_func
from benchmarks.projection import Meta, Pod, Spec

from .peer import Handler, Options, Peer, Reads, UnsupportedError, kubeconfig_of


class Annotations(msgspec.Struct, gc=False):
    sent: str = msgspec.field(name="benchmark.example.com/sent")


class StampedMeta(Meta, gc=False):
    annotations: Annotations


class StampedPod(msgspec.Struct, gc=False):
    """The projection with the send time, for measuring latency."""

    metadata: StampedMeta
    spec: Spec


def object_type(form: str) -> tuple[type[Any], str]:
    """Return the object type of a form, and the shape by which handlers read it."""
    if form == "model":
        from kubernetes_asyncio.client import V1Pod

        return V1Pod, "model"
    types: dict[str, tuple[type[Any], str]] = {
        "kubeobject": (KubeObject, "kubeobject"),
        "struct": (Pod, "struct"),
        "stamped-struct": (StampedPod, "struct"),
        "compressed": (KubeObject, "kubeobject"),
        "unmanaged": (KubeObject, "kubeobject"),
        "dict": (dict, "dict"),
    }
    if form not in types:
        raise UnsupportedError(f"aioinformer has no form {form}")
    return types[form]


class AioInformer(Peer):
    """Informers of all namespaces, or of some."""

    version = f"aioinformer {aioinformer.__version__}"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self._type, self.shape = object_type(options.form)
        self._stack = AsyncExitStack()
        self._informers: list[SharedIndexInformer[Any]] = []

    async def open(self) -> None:
        options = self.options
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        (folder / "config").write_text(json.dumps(kubeconfig_of(options.server, options.ca)))
        self._client = await self._stack.enter_async_context(Client.from_kubeconfig(path=folder / "config"))
        await self._client.get_json("/version")

    async def sync(self) -> None:
        options = self.options
        namespaces = [None] if options.informers == 1 else [f"team-{n}" for n in range(options.informers)]
        for namespace in namespaces:
            informer: SharedIndexInformer[Any] = SharedIndexInformer(
                ListWatch.for_resource(
                    self._client, "v1", "pods", namespace, protobuf=options.encoding == "protobuf"
                ),
                self._type,
                indexers={NAMESPACE_INDEX: meta_namespace_index_func},
                compress=options.form == "compressed",
                drop_managed_fields=options.form == "unmanaged",
                use_watch_list=options.initial == "watchlist",
            )
            for handler in self.handlers:
                informer.add_event_handler(_functions(handler))
            self.spawn(informer.run())
            self._informers.append(informer)
        await asyncio.gather(*(informer.wait_synced() for informer in self._informers))

    def reads(self) -> Reads:
        self.require(informers=1)
        if self._type is not KubeObject:
            raise UnsupportedError(f"reads are for KubeObjects, not for {self.options.form}")
        indexer = self._informers[0].indexer
        lister = Lister(indexer)
        pods = random.sample(indexer.list(), min(500, len(indexer)))
        some = [(pod.key, pod.namespace, f"app={pod.metadata.labels['app']}") for pod in pods]
        return Reads(  # random pods, as in the other clients: repeated reads are cheaper
            get=lambda: _names([indexer.get_by_key(random.choice(some)[0])]),
            by_index=lambda: _names(indexer.by_index(NAMESPACE_INDEX, random.choice(some)[1])),
            label=lambda: _names(lister.list(random.choice(some)[2])),
        )

    async def close(self) -> None:
        await self._stack.aclose()


def _functions(handler: Handler) -> ResourceEventHandlerFuncs[Any]:
    return ResourceEventHandlerFuncs(
        on_add=lambda obj, is_in_initial_list: handler(obj), on_update=lambda old, new: handler(new)
    )


def _names(objects: list[Any]) -> int:
    return sum(len(obj.metadata.name) for obj in objects)
