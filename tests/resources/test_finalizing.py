"""ensure_finalizer and drop_finalizer with concurrent writers, on a server with scripted answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import ApiError, Client, ConflictError, InvalidError, KubeObject, Resource, TransportError
from aioinformer.client.transport import Change
from aioinformer.errors import ObjectNotFoundError

from ..client.transports import Server
from ..virtual_time import virtual_time

OURS, THEIRS = "example.com/ours", "example.com/theirs"
CONFLICT = ApiError(409, "Conflict", "another client was faster")
TEST_FAILED = ApiError(422, "Invalid", "the server rejected our request due to an error in our request")


class Scripted(Server):
    """Answers each PATCH or PUT with the next scripted answer, and each GET with the current object."""

    def __init__(self, *answers: bytes | Exception) -> None:
        super().__init__()
        self.answers = list(answers)
        self.now: bytes | Exception = obj()
        self.sent: list[tuple[str, Any]] = []
        self.times: list[float] = []  # type: ignore[assignment]
        self.meanwhile: Callable[[], None] = lambda: None

    async def get(self, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
        self.sent.append(("GET", path))
        await asyncio.sleep(0.1)
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    async def send(self, change: Change, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
        self.sent.append((change.method, json.loads(change.body)))
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1)
        self.meanwhile()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def obj(*finalizers: str, uid: str = "u", deleted: bool = False) -> bytes:
    metadata: dict[str, Any] = {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": "7"}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}).encode()


def configmaps(server: Scripted) -> Resource[KubeObject]:
    return Resource(Client(server), "v1", "configmaps")


GIVEN = KubeObject.from_bytes(obj())


@virtual_time
async def test_conflicts_are_retried_until_one_write_succeeds() -> None:
    server = Scripted(CONFLICT, TEST_FAILED, CONFLICT, obj(THEIRS, OURS))
    server.now = obj(THEIRS)
    edited = await configmaps(server).ensure_finalizer(GIVEN, OURS)
    assert edited is not None
    assert edited.metadata.finalizers == [THEIRS, OURS]
    assert [verb for verb, _ in server.sent] == ["PATCH", *["GET", "PATCH"] * 3]
    first, last = server.sent[0][1], server.sent[-1][1]
    assert first[1] == {"op": "test", "path": "/metadata/finalizers", "value": None}
    assert last[1] == {"op": "test", "path": "/metadata/finalizers", "value": [THEIRS]}
    pauses = [
        round(later - earlier - 0.2, 3)
        for earlier, later in zip(server.times, server.times[1:], strict=False)
    ]
    assert pauses == [0.01, 0.02, 0.04]


@virtual_time
async def test_retries_end_at_the_timeout() -> None:
    for error, kind in ((CONFLICT, ConflictError), (TEST_FAILED, InvalidError)):
        server = Scripted(error)
        began = asyncio.get_running_loop().time()
        with pytest.raises(kind, match=r"add finalizer example.com/ours to configmaps default/a: 4"):
            await configmaps(server).ensure_finalizer(GIVEN, OURS)
        assert 60 <= asyncio.get_running_loop().time() - began <= 61


@virtual_time
async def test_invalid_is_raised_after_reading_again() -> None:
    causes = {"causes": [{"field": "metadata.finalizers", "message": "bad name"}]}
    server = Scripted(ApiError(422, "Invalid", "metadata.finalizers: bad name", causes))
    with pytest.raises(InvalidError, match=r"bad name"):
        await configmaps(server).ensure_finalizer(GIVEN, OURS)
    assert [verb for verb, _ in server.sent] == ["PATCH", "GET"]


@virtual_time
async def test_object_deleted_recreated_or_gone_meanwhile() -> None:
    missing = ApiError(404, "NotFound", 'configmaps "a" not found', {"name": "a", "kind": "configmaps"})
    for now in (obj(deleted=True), obj(uid="other"), missing):
        server = Scripted(CONFLICT)
        server.now = now
        assert await configmaps(server).ensure_finalizer(GIVEN, OURS) is None
    server = Scripted(missing)
    assert await configmaps(server).ensure_finalizer(GIVEN, OURS) is None
    server = Scripted(ApiError(404, "NotFound", "the server could not find the requested resource"))
    with pytest.raises(ObjectNotFoundError):
        await configmaps(server).ensure_finalizer(GIVEN, OURS)


@virtual_time
async def test_key_targets_the_object_that_is_found_first() -> None:
    server = Scripted(CONFLICT)
    server.now = obj(OURS)
    resource = configmaps(server)

    def recreate() -> None:
        server.now = obj(OURS, uid="other")

    server.meanwhile = recreate
    assert await resource.drop_finalizer("default/a", OURS) is None
    assert [verb for verb, _ in server.sent] == ["GET", "PATCH", "GET"]


@virtual_time
async def test_missing_answer_is_raised() -> None:
    server = Scripted(TransportError("cut"))
    with pytest.raises(
        TransportError, match=r"remove finalizer example.com/ours from configmaps default/a: cut"
    ):
        await configmaps(server).drop_finalizer(KubeObject.from_bytes(obj(OURS)), OURS)
    assert [verb for verb, _ in server.sent] == ["PATCH"]


@virtual_time
async def test_forbidden_is_raised_at_once() -> None:
    server = Scripted(ApiError(403, "Forbidden", "no"))
    with pytest.raises(ApiError, match=r"403 Forbidden"):
        await configmaps(server).ensure_finalizer(GIVEN, OURS)
    assert len(server.sent) == 1
