"""warning_headers.py: a server's warnings reach the log or the application."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from aioinformer import ApiError, Client, ConfigError, ListOptions, ListWatch
from aioinformer.client.transport import Change
from aioinformer.client.warning_headers import warnings_of

from ..listwatch.streams import (
    EVENT,
    POD_LIST,
    json_of,
    serve,
)

LOGGER = "aioinformer.client.warning_headers"


def warns(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def test_each_warning_is_logged_once_for_each_server(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["v1 ComponentStatus is deprecated in v1.19+"]

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(POD_LIST, headers={"Warning": ", ".join(f'299 - "{text}"' for text in texts)})

    async with serve(answer) as one, serve(answer) as other:
        for server in (one, other, one):
            async with Client.from_url(server.url, library=library) as client:
                await client.get("/api")
                await client.get("/api")
        texts.append('unknown field "spec.foo"'.replace('"', '\\"'))
        async with Client.from_url(one.url, library=library) as client:
            await client.get("/api")
    assert warns(caplog) == [
        f"{one.url} warns: v1 ComponentStatus is deprecated in v1.19+",
        f"{other.url} warns: v1 ComponentStatus is deprecated in v1.19+",
        f'{one.url} warns: unknown field "spec.foo"',
    ]


async def test_on_warning_has_the_warnings_of_every_answer(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"Warning": f'299 - "{request.method} {request.path}"'}
        if request.path == "/refused":
            return json_of("{}", 403, headers)
        if "watch" not in request.query:
            return json_of(POD_LIST, headers=headers)
        response = web.StreamResponse(headers=headers | {"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(EVENT)
        return response

    warned: list[str] = []
    async with serve(answer) as server:
        client = Client.from_url(server.url, library=library, on_warning=warned.append)
        async with client:
            await client.send(Change("PUT", b"{}"), "/x")
            with pytest.raises(ApiError):
                await client.get("/refused")
            pods = ListWatch.for_resource(client, "v1", "pods")
            await pods.list()
            stream: Any = await pods.watch(ListOptions())
            await stream.aclose()
    assert warned == ["PUT /x", "GET /refused", "GET /api/v1/pods", "GET /api/v1/pods"]
    assert not warns(caplog)


@pytest.mark.parametrize("failure", [ValueError("no"), asyncio.CancelledError("another task")], ids=repr)
async def test_failing_on_warning_fails_no_request_and_is_logged_once(
    failure: BaseException, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of("{}", headers={"Warning": '299 - "deprecated"'})

    def fail(text: str) -> None:
        raise failure

    async with (
        serve(answer) as server,
        Client.from_url(server.url, library=library, on_warning=fail) as client,
    ):
        for _ in range(3):
            assert await client.get("/api") == b"{}"
    assert warns(caplog) == [f"{server.url}: on_warning failed on the warning 'deprecated'"]
    (record,) = (record for record in caplog.records if record.name == LOGGER)
    assert record.exc_info is not None


def test_async_on_warning_is_refused() -> None:
    async def wait(text: str) -> None: ...

    with pytest.raises(ConfigError, match=r"on_warning must be a plain function"):
        Client.in_cluster(on_warning=wait)


@pytest.mark.parametrize(
    ("headers", "texts"),
    [
        ([], []),
        (['299 - "one"'], ["one"]),
        (
            ['299 - "one", 299 agent "two" "Wed, 21 Oct 2015 07:28:00 GMT",299 - "three"'],
            ["one", "two", "three"],
        ),
        (['299 - "one"', '299 - "two"'], ["one", "two"]),
        ([r'299 - "a \"quoted\" \\ text, and more"'], [r'a "quoted" \ text, and more']),
        (['199 - "other code"', '299 - ""', '299 - "kept"'], ["kept"]),
        (["299 - one", "299", "", '299 - "open', '99 - "x"'], []),
        (['299 - "kept", nonsense, 299 - "not reached"'], ["kept"]),
        (['299 - "line\x85feed \u202e\x1b[31m"'], ["line feed   [31m"]),
    ],
)
def test_warnings_are_parsed_as_in_client_go(headers: list[str], texts: list[str]) -> None:
    assert warnings_of(headers) == texts


def test_long_and_many_warnings_are_cut() -> None:
    (text,) = warnings_of([f'299 - "{"x" * 100_000}"'])
    assert len(text) == 1000
    assert len(warnings_of([", ".join(f'299 - "{n}"' for n in range(10_000))])) == 100
