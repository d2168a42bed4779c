"""Settings, lifespans and the namespace of an operator's Context."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, assert_type

import anyio
import msgspec
import pytest

from aioinformer import Client, ConfigError, KubeObject
from aioinformer.operator import Context, Operator, Request
from aioinformer.testing import APIServer, eventually


class Settings(msgspec.Struct):
    url: str
    recheck: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    mode: Literal["fast", "safe"] = "safe"
    is_dry: bool = False


class Store:
    """Something that is opened and closed."""

    def __init__(self, url: str, log: list[str]) -> None:
        self.url = url
        self.log = log


def record_contexts(operator: Operator) -> list[Context]:
    """Return the contexts of a controller's reconciles."""
    contexts: list[Context] = []

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        contexts.append(context)

    return contexts


async def test_settings_come_from_the_environment_or_from_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Operator("cave-keeper", events=False, settings=Settings)
    contexts = record_contexts(operator)
    monkeypatch.setenv("CAVE_KEEPER_URL", "nfs://a")
    monkeypatch.setenv("CAVE_KEEPER_RECHECK", "1.5")
    monkeypatch.setenv("CAVE_KEEPER_IS_DRY", "true")
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: contexts)
        settings = contexts[0].get(Settings)
        assert_type(settings, Settings)
        assert settings == Settings("nfs://a", 1.5, "safe", is_dry=True)
        async with operator.running(client, settings=Settings("nfs://b")):
            await eventually(lambda: len(contexts) == 2)
        assert contexts[1].get(Settings) == Settings("nfs://b")


async def test_all_mistakes_of_the_environment_are_reported_at_once_without_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = Operator("cave-keeper", events=False, settings=Settings)
    monkeypatch.setenv("CAVE_KEEPER_RECHECK", "hunter2")
    monkeypatch.setenv("CAVE_KEEPER_IS_DRY", "perhaps")
    async with APIServer() as server, Client.from_url(server.url) as client:
        with pytest.raises(ConfigError) as caught:
            operator.manager(client)
        with pytest.raises(ConfigError, match="settings must be a Settings, not 3"):
            operator.manager(client, settings=3)
        with pytest.raises(ConfigError, match="plain has no settings: pass settings=int to its Operator"):
            Operator("plain").manager(client, settings=3)
    text = str(caught.value)
    assert text.startswith("cave-keeper: the environment has 3 mistakes:\n")
    assert "set CAVE_KEEPER_URL, which has no default" in text
    assert "CAVE_KEEPER_RECHECK is invalid: Expected `float`" in text
    assert "CAVE_KEEPER_IS_DRY is invalid" in text
    assert "hunter2" not in text
    with pytest.raises(ConfigError, match=r"settings must be a class that extends msgspec\.Struct"):
        Operator("wrong", settings=dict)


async def test_lifespans_are_open_once_in_each_run_and_closed_after_the_last_reconcile() -> None:
    operator = Operator("keeper", events=False, settings=Settings)
    log: list[str] = []

    @operator.lifespan
    async def store(context: Context) -> AsyncIterator[Store]:
        log.append("open")
        yield Store(context.get(Settings).url, log)
        log.append("closed")

    @operator.lifespan
    async def name(context: Context) -> AsyncIterator[str]:
        yield f"over {context.get(Store).url}"
        log.append("the later one is closed first")

    contexts = record_contexts(operator)
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        for run in (1, 2):
            async with operator.running(client, settings=Settings("nfs://a")):
                await eventually(lambda run=run: len(contexts) == run)  # type: ignore[misc]
                context = contexts[-1]
                assert_type(context.get(Store), Store)
                assert (context.get(Store).url, context.get(str)) == ("nfs://a", "over nfs://a")
                with pytest.raises(
                    ConfigError, match=r"keeper has no int; it has Settings, Store, str\. Pass it as"
                ):
                    context.get(int)
            assert log == ["open", "the later one is closed first", "closed"] * run
            with pytest.raises(ConfigError, match="which is open while the manager runs"):
                context.get(Store)


async def test_a_lifespan_that_fails_ends_the_run_and_closes_those_before() -> None:
    operator = Operator("keeper", events=False)
    log: list[str] = []

    @operator.lifespan
    async def first(context: Context) -> AsyncIterator[list[str]]:
        try:
            yield log
        finally:
            log.append("closed")

    @operator.lifespan
    async def second(context: Context) -> AsyncIterator[int]:
        if log == []:
            raise ConnectionRefusedError("the port is closed")
        yield 1

    record_contexts(operator)
    async with APIServer() as server, Client.from_url(server.url) as client:
        with pytest.raises(ConnectionRefusedError):
            await operator.manager(client).run()
    assert log == ["closed"]


async def test_a_lifespan_may_await_while_a_cancelled_scope_of_anyio_closes_it() -> None:
    operator = Operator("keeper", events=False)
    log: list[str] = []

    @operator.lifespan
    async def store(context: Context) -> AsyncIterator[Store]:
        yield Store("nfs://a", log)
        for _ in range(3):
            await asyncio.sleep(0)
        log.append("closed")

    contexts = record_contexts(operator)
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with anyio.create_task_group() as group:
            group.start_soon(operator.manager(client).run)
            await eventually(lambda: contexts)
            group.cancel_scope.cancel()
    assert log == ["closed"]


def test_a_lifespan_is_an_async_generator_of_a_context() -> None:
    operator = Operator("keeper")

    async def returns(context: Context) -> int:
        return 1

    async def of_nothing() -> AsyncIterator[int]:
        yield 1

    wrong: list[Any] = [returns, of_nothing]
    for lifespan in wrong:
        with pytest.raises(ConfigError, match="lifespan"):
            operator.lifespan(lifespan)


@pytest.mark.parametrize("namespace", [None, "other"])
async def test_a_context_knows_the_namespace(namespace: str | None) -> None:
    operator = Operator("keeper", events=False)
    contexts = record_contexts(operator)
    async with APIServer() as server, Client.from_url(server.url) as client:
        for place in ("default", "other"):
            server.create("v1", "configmaps", {"metadata": {"name": "a"}}, place)
        async with operator.running(client, namespace=namespace):
            await eventually(lambda: len(contexts) == (2 if namespace is None else 1))
    assert {context.namespace for context in contexts} == {namespace}
