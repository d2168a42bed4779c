"""operator/requests.py: requests, results and the default cleanup."""

from __future__ import annotations

import pytest

from aioinformer import KubeObject
from aioinformer.errors import KeyFuncError
from aioinformer.operator import Reconciler, Request, Result

from ..samples import pod


def test_request_of_an_object_or_key() -> None:
    request = Request("ns", "a", pod("a"))
    assert (request.namespace, request.name, request.key) == ("ns", "a", "ns/a")
    assert repr(request) == "<Request ns/a>"
    assert Request("", "node-1").key == "node-1"
    assert Request.of("ns/a") == Request.of(pod("a")) == request
    assert Request.of("node-1") == Request("", "node-1")
    with pytest.raises(KeyFuncError):
        Request.of("a/b/c")


def test_requests_of_the_same_object_are_equal() -> None:
    assert Request("ns", "a") == Request("ns", "a", pod("a"))
    assert len({Request("ns", "a"), Request("ns", "a", pod("a")), Request("ns", "b"), Request("", "a")}) == 3
    assert Request("ns", "a") != "ns/a"
    assert not Request("ns", "a") != Request("ns", "a", pod("a"))  # noqa: SIM202


def test_final_results() -> None:
    assert Result().is_final
    assert not Result(requeue=True).is_final
    assert not Result(requeue_after=20).is_final
    assert not Result(requeue_after=0).is_final
    assert Result(requeue_after=20) == Result(requeue_after=20.0)


async def test_default_cleanup_does_nothing() -> None:
    class Nothing(Reconciler[KubeObject]):
        async def reconcile(self, request: Request[KubeObject]) -> Result | None:
            return None

    assert Nothing.finalizer is None
    assert await Nothing().cleanup(Request("ns", "a")) is None
