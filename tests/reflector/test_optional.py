"""Optional collections: one that the server does not have counts as empty."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest

from aioinformer.errors import ApiError

from ..virtual_time import virtual_time
from .running import content, plain_store, reflector, run_for
from .scripted import FOREVER, ListAnswer, Scripted, added, page, raw_pod


def absent() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


@virtual_time
async def test_a_collection_that_the_server_does_not_have_is_read_once_it_comes() -> None:
    pages: list[ListAnswer] = [*[absent()] * 6, page(raw_pod("a", 10), version=10)]
    server = Scripted(pages, [[added("b", 11), FOREVER]])
    subject = reflector(server, store := plain_store(), optional=True)
    async with subject:
        await asyncio.sleep(0.1)
        state = subject.state
        assert (state.absent, state.last_error) == (True, None)
        assert "not served, which is allowed" in str(state)
        await asyncio.sleep(200)
        assert content(store) == {"default/a": "10", "default/b": "11"}
        assert not subject.state.absent
    times = [at for _, _, at in server.calls]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 30


def test_a_collection_that_goes_is_empty_after_the_second_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    @virtual_time
    async def scenario() -> None:
        served = page(raw_pod("a"), version=10)
        server = Scripted([served, absent(), served, *[absent()] * 100], [absent(), [30.0], absent()])
        subject = reflector(server, store := plain_store(), optional=True)
        async with subject:
            while len(server.lists) < 3:
                await asyncio.sleep(0.1)
                assert store.list(), "one answer alone empties nothing"
            await asyncio.sleep(600)
            assert not store.list()
            assert subject.state.absent

    scenario()
    assert caplog.text.count("the server does not have it, so it counts as empty") == 1


@virtual_time
async def test_other_errors_of_an_optional_collection_are_errors() -> None:
    server = Scripted([absent(), ApiError(403, "Forbidden"), FOREVER])
    subject = reflector(server, plain_store(), optional=True)
    async with subject:
        await asyncio.sleep(0.1)
        assert subject.state.absent
        await asyncio.sleep(60)
        assert str(subject.state.last_error).startswith("403")


@virtual_time
async def test_a_collection_that_is_not_optional_is_waited_for() -> None:
    server = Scripted([absent()] * 20)
    subject = reflector(server, plain_store())
    await run_for(subject, 60)
    assert not subject.state.absent
