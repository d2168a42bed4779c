"""EventDecoder: list items and events become objects and changes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aioinformer._core.coop import SLICE
from aioinformer.objects.codec import codec_for
from aioinformer.objects.keys import meta_namespace_key_func
from aioinformer.objects.kube_object import KubeObject
from aioinformer.objects.meta import ListResult
from aioinformer.reflector.event_decoder import EventDecoder


async def test_other_tasks_run_while_small_pieces_of_a_list_that_never_waits_are_decoded() -> None:
    def slow(obj: Any) -> Any:
        time.sleep(SLICE / 2)
        decoded.append(obj)
        return obj

    decoded: list[Any] = []
    others: list[int] = []
    decoder = EventDecoder(codec_for(KubeObject), meta_namespace_key_func, False, lambda error: None, slow)
    asyncio.get_running_loop().call_soon(lambda: others.append(len(decoded)))
    for number in range(10):
        await decoder.objects_of(ListResult([{"metadata": {"name": str(number)}}]))
    assert others
    assert others[0] < 10
