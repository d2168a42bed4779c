"""tokens.py: who may read the metrics and the debug data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aioinformer import Client
from aioinformer.operator import reviews
from aioinformer.operator.serving import Tokens, tokens
from aioinformer.operator.serving.tokens import ALLOWED, REFUSED, Verdict
from aioinformer.testing import APIServer
from aioinformer.testing.users import user_of

ROLES, BINDINGS = (
    ("rbac.authorization.k8s.io/v1", plural) for plural in ("clusterroles", "clusterrolebindings")
)


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    """A server on which ann may get /metrics, and bob nothing."""
    async with APIServer(token="operator", rbac=True) as server:
        server.users |= {"ann's": user_of("ann"), "bob's": user_of("bob")}
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        server.create(*ROLES, {"metadata": {"name": "reader"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
        ann = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
        server.create(*BINDINGS, {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [ann]})
        yield server


@asynccontextmanager
async def checking(server: APIServer) -> AsyncIterator[Tokens]:
    async with Client.from_url(server.url, "operator") as client:
        yield Tokens(client)


def count_reviews(server: APIServer) -> int:
    return sum(request.resource == "tokenreviews" for request in server.requests)


@pytest.mark.parametrize(
    ("authorization", "path", "status"),
    [
        ("Bearer ann's", "/metrics", 200),
        ("bearer  ann's ", "/metrics", 200),
        ("Bearer ann's", "/debug.json", 403),
        ("Bearer bob's", "/metrics", 403),
        ("Bearer unknown", "/metrics", 401),
        ("Basic ann's", "/metrics", 401),
        ("Bearer ", "/metrics", 401),
        ("Bearer \udcff\udcfe", "/metrics", 401),
        ("ann's", "/metrics", 401),
        ("", "/metrics", 401),
    ],
)
async def test_the_api_server_decides_who_reads_a_path(
    server: APIServer, authorization: str, path: str, status: int
) -> None:
    async with checking(server) as subject:
        verdict = await subject.check(authorization, path)
        assert verdict.status == status, verdict
        if status == 403:
            assert (
                f"may not get {path}: grant it by a ClusterRole with nonResourceURLs [{path}]" in verdict.text
            )


async def test_an_answer_counts_for_a_time(server: APIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    passed, now = 0.0, loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + passed)
    async with checking(server) as subject:
        for _ in range(3):
            assert (await subject.check("Bearer ann's", "/metrics")).status == 200
            assert (await subject.check("Bearer bob's", "/metrics")).status == 403
        assert count_reviews(server) == 2
        passed = REFUSED + 1
        assert (await subject.check("Bearer bob's", "/metrics")).status == 403
        assert (await subject.check("Bearer ann's", "/metrics")).status == 200
        assert count_reviews(server) == 3
        server.delete(*BINDINGS, "reader")
        passed = ALLOWED + 1
        assert (await subject.check("Bearer ann's", "/metrics")).status == 403


async def test_many_tokens_neither_fill_the_memory_nor_flood_the_api_server(
    server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MOST_KEPT", 10)
    running = most = 0

    async def review(*arguments: object, **fields: object) -> dict[str, object]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await reviews.review(*arguments, **fields)  # type: ignore[arg-type]
        finally:
            running -= 1

    monkeypatch.setattr(tokens, "review", review)
    async with checking(server) as subject:
        asked = [subject.check(f"Bearer stranger {number}", "/metrics") for number in range(50)]
        assert {verdict.status for verdict in await asyncio.gather(*asked)} == {401}
        assert most == tokens.MOST_ASKED
        before = count_reviews(server)
        await subject.check("Bearer stranger 49", "/metrics")
        assert count_reviews(server) == before, "the newest answers are kept"
        await subject.check("Bearer stranger 0", "/metrics")
        assert count_reviews(server) == before + 1, "the oldest are not"


async def test_without_the_api_server_requests_are_refused_and_the_log_says_why(
    server: APIServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with checking(server) as subject:
        rule = server.forbid("create", "tokenreviews")
        assert await subject.check("Bearer ann's", "/metrics") == Verdict(
            503, "the API server does not review tokens: ApiError; see the operator's log"
        )
        assert "a token for /metrics was not reviewed, and its request is refused: " in caplog.text
        assert "ann's" not in caplog.text
        rule.remove()
        assert (await subject.check("Bearer ann's", "/metrics")).status == 200, "a failure is not kept"
