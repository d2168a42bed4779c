"""Validation of Events of the core group; `tests/events` covers events.k8s.io."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, StatusError

NEW = {
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingComponent": "example.com/a",
    "reportingInstance": "a",
    "action": "A",
    "reason": "A",
}


def create(namespace: str, about: str | None, **content: Any) -> None:
    involved = {"kind": "Pod", "name": "a"} | ({} if about is None else {"namespace": about})
    event = {"metadata": {"name": "a"}, "involvedObject": involved, **content}
    APIServer().create("v1", "events", event, namespace)


@pytest.mark.parametrize(
    ("namespace", "about", "content"),
    [
        ("team", "team", {}),
        ("default", None, {"type": "Odd", "reason": "x" * 200}),
        ("team", "other", NEW),
        ("kube-system", None, NEW),
    ],
)
def test_valid_event_is_accepted(namespace: str, about: str | None, content: dict[str, str]) -> None:
    create(namespace, about, **content)


@pytest.mark.parametrize(
    ("namespace", "about", "content", "why"),
    [
        ("team", None, {}, r'^422 Invalid: .*namespace: Invalid value: "": does not match event\.namespace'),
        ("team", "other", {}, r'^422 Invalid: .*namespace: Invalid value: "other": does not match event'),
        ("kube-system", None, {}, r"^422 Invalid: .*does not match"),
        ("team", None, NEW, r"^422 Invalid: .*does not match"),
        ("team", "team", NEW | {"reportingComponent": ""}, r"^422 Invalid: .*reportingComponent: Required"),
        ("team", "team", NEW | {"message": "x" * 1025}, r"^422 Invalid: .*message: .*at most 1024"),
        ("team", "team", {"firstTimestamp": "2024-01-01T00:00:00"}, r'^400 .*cannot parse "" as "Z07:00"'),
    ],
)
def test_invalid_event_is_refused(
    namespace: str, about: str | None, content: dict[str, str], why: str
) -> None:
    with pytest.raises(StatusError, match=why):
        create(namespace, about, **content)


def test_an_update_is_checked_and_may_change_all() -> None:
    server = APIServer()
    event = {"metadata": {"name": "a"}, "involvedObject": {"namespace": "team"}, "reason": "A"}
    server.create("v1", "events", event, "team")
    assert server.update("v1", "events", event | {"reason": "B"}, "team")["reason"] == "B"
    with pytest.raises(StatusError, match=r"does not match event\.namespace"):
        server.patch("v1", "events", "a", {"involvedObject": None}, "team")
