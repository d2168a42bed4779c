"""Events in both groups: validation and conversion; `tests/e2e` compares them with the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, StatusError
from tests.testing.client import APIClient

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


def test_an_event_is_one_object_in_both_groups() -> None:
    server = APIServer()
    about = {"kind": "Pod", "name": "a", "namespace": "team"}
    old = {"metadata": {"name": "old"}, "involvedObject": about, "message": "hello", "count": 3}
    source = {"component": "c"}
    server.create("v1", "events", old | {"source": source, "firstTimestamp": "2024-01-01T00:00:00Z"}, "team")
    seen = server.get("events.k8s.io/v1", "events", "old", "team")
    assert (seen["apiVersion"], seen["regarding"], seen["note"]) == ("events.k8s.io/v1", about, "hello")
    assert (seen["deprecatedCount"], seen["deprecatedSource"]) == (3, source)
    assert seen["deprecatedFirstTimestamp"] == "2024-01-01T00:00:00Z"
    assert not {"involvedObject", "message", "count", "source", "reportingController"} & seen.keys()
    new = {name: value for name, value in NEW.items() if name != "reportingComponent"}
    fresh = {"metadata": {"name": "new"}, "regarding": about, "reportingController": "a/b", "type": "Normal"}
    server.create("events.k8s.io/v1", "events", fresh | new, "team")
    core = server.get("v1", "events", "new", "team")
    assert (core["apiVersion"], core["involvedObject"], core["reportingComponent"]) == ("v1", about, "a/b")
    for group in ("v1", "events.k8s.io/v1"):
        assert [event["metadata"]["name"] for event in server.list(group, "events")] == ["new", "old"]
    selected = server.list("events.k8s.io/v1", "events", field_selector="regarding.name=a,type=Normal")
    assert [event["metadata"]["name"] for event in selected] == ["new"]
    server.delete("events.k8s.io/v1", "events", "old", "team")
    assert len(server.snapshot("v1", "events")) == 1


def test_an_update_in_the_new_group_changes_the_series_only() -> None:
    server = APIServer()
    event = {"metadata": {"name": "a"}, "involvedObject": {"namespace": "team"}, "reason": "A"}
    server.create("v1", "events", event, "team")
    series = {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}
    server.patch("events.k8s.io/v1", "events", "a", {"series": series}, "team")
    assert server.get("v1", "events", "a", "team")["series"] == series
    with pytest.raises(StatusError, match=r'message: Invalid value: "x": field is immutable'):
        server.patch("events.k8s.io/v1", "events", "a", {"note": "x"}, "team")


async def test_a_watch_of_either_group_sees_every_event(api: APIClient, server: APIServer) -> None:
    paths = "/api/v1/events", "/apis/events.k8s.io/v1/events"
    async with api.watch(paths[0]) as core, api.watch(paths[1]) as new:
        event = {"metadata": {"name": "a"}, "involvedObject": {"name": "p"}, "reason": "A"}
        server.create("v1", "events", event)
        assert (await core.next())["object"]["involvedObject"] == {"name": "p"}
        assert (await new.next())["object"]["regarding"] == {"name": "p"}
