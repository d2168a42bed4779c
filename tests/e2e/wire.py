"""An informer on a server that answers with given bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.cache import ReflectorState

from ..client.wire import (
    OK,
    Answer,
    Asked,
    WireServer,
    body_of,
    configmap,
    serve_wire,
    whole,
)
from ..listwatch.replay import refusal
from .witness import Witness, versions_in_cache

Bytes = bytes | None
"""Bytes to send; None: stay open, and silent."""


class Script:
    """Answers lists, watches and WatchLists with given bytes in order; repeats the last answer."""

    def __init__(
        self,
        lists: Iterable[Iterable[Bytes]] = (),
        watches: Iterable[Iterable[Bytes]] = (),
        streams: Iterable[Iterable[Bytes]] = (),
    ) -> None:
        self._lists = [*lists] or [[whole(A_AND_B)]]
        self._watches = [*watches] or [[OK, None]]
        self._streams = [*streams] or [[refusal(422, "Invalid")]]

    async def __call__(self, asked: Asked) -> AsyncIterator[bytes]:
        answers = self._streams if asked.is_stream else self._watches if asked.is_watch else self._lists
        for data in answers.pop(0) if len(answers) > 1 else answers[0]:
            if data is None:
                await asyncio.Event().wait()
            else:
                yield data


A_AND_B = body_of([configmap("a", 1), configmap("b", 2)], 5)
BOTH = {"default/a": "1", "default/b": "2"}


class Subject(NamedTuple):
    informer: SharedIndexInformer[KubeObject]
    witness: Witness
    server: WireServer

    @property
    def state(self) -> ReflectorState:
        return self.informer.state.reflectors[0]

    async def until_cached(self, expected: dict[str, str]) -> None:
        await self.witness.until(
            lambda: self.witness.shadow == expected and versions_in_cache(self.informer) == expected
        )
        assert not self.informer.is_stopped


@asynccontextmanager
async def wire_informer(
    answer: Answer, *, longest_object: int = 1 << 20, **options: Any
) -> AsyncIterator[Subject]:
    async with serve_wire(answer) as server, Client.from_url(server.url) as client:
        list_watch = ListWatch.for_resource(client, "v1", "configmaps", longest_object=longest_object)
        informer, witness = SharedIndexInformer(list_watch, KubeObject, **options), Witness()
        informer.add_event_handler(witness)
        async with informer:
            await witness.until(lambda: informer.state.reflectors)
            yield Subject(informer, witness, server)
            assert not informer.is_stopped
    assert not witness.illegal, witness.illegal


DEEP = b"[" * 450_000
NESTED = DEEP + b"]" * len(DEEP)
"""Deeper than any decoder follows, also from 3.14 on, which counts bytes of the stack."""

TABLE = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}, "rows": []}
