"""Recorded events can be read on both servers, including series."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubernetes_asyncio.client import V1ConfigMap

from aioinformer import Client, EventRecorder, InvalidError, KubeObject, Resource

from ..clusters import Cluster
from .conftest import Configmap

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

CONTROLLER = "example.com/cave-controller"
PATIENCE = 20.0


async def idle(recorder: EventRecorder) -> None:
    async with asyncio.timeout(PATIENCE):
        while recorder.state.queued:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
    assert recorder.state.dropped == 0, recorder.state


async def events_about(client: Client, cluster: Cluster, obj: KubeObject) -> list[dict[str, Any]]:
    events = Resource(client, "events.k8s.io/v1", "events", dict)
    selector = f"regarding.uid={obj.uid},reportingController={CONTROLLER}"
    return await events.list(cluster.namespace, field_selector=selector)


async def test_an_event_and_its_series(
    client: Client, cluster: Cluster, configmaps: Resource[KubeObject], configmap: Configmap
) -> None:
    obj = await configmaps.create(configmap("a"))
    async with EventRecorder(client, CONTROLLER) as recorder:
        recorder.event(obj, "Normal", "Provisioned", "10 Gi", action="Provision")
        await idle(recorder)
        (event,) = await events_about(client, cluster, obj)
        assert event["regarding"]["uid"] == obj.uid
        assert event["regarding"]["kind"] == "ConfigMap"
        assert event["note"] == "10 Gi"
        assert "series" not in event
        for _ in range(5):
            recorder.event(obj, "Normal", "Provisioned", "10 Gi", action="Provision")
            await idle(recorder)
        (event,) = await events_about(client, cluster, obj)
        assert event["series"]["count"] == 2
        assert event["note"] == "10 Gi"
    (event,) = await events_about(client, cluster, obj)
    assert event["series"]["count"] == 6
    assert event["series"]["lastObservedTime"] > event["eventTime"]
    assert recorder.state.sent == 3


async def test_events_with_other_notes_are_shown_apart(
    client: Client, cluster: Cluster, configmaps: Resource[KubeObject], configmap: Configmap
) -> None:
    obj = await configmaps.create(configmap("a"))
    async with EventRecorder(client, CONTROLLER) as recorder:
        for note in ("disk-1 is full", "disk-2 is full", "disk-1 is full"):
            recorder.event(obj, "Warning", "Failed", note)
            await idle(recorder)
    events = await events_about(client, cluster, obj)
    shown = {event["note"]: event.get("series", {}).get("count", 1) for event in events}
    assert shown == {"disk-1 is full": 2, "disk-2 is full": 1}
    with pytest.raises(
        InvalidError, match="immutable"
    ):  # no server shows a newer note in place of an older one
        await Resource(client, "events.k8s.io/v1", "events", dict).patch(
            events[0], {"note": "disk-3 is full"}
        )


async def test_one_that_has_expired_is_made_again(
    client: Client, cluster: Cluster, configmaps: Resource[KubeObject], configmap: Configmap
) -> None:
    obj = await configmaps.create(configmap("a"))
    async with EventRecorder(client, CONTROLLER) as recorder:
        recorder.event(obj, "Warning", "Failed", "once")
        await idle(recorder)
        (event,) = await events_about(client, cluster, obj)
        await Resource(client, "events.k8s.io/v1", "events", dict).delete(event)
        recorder.event(obj, "Warning", "Failed", "once")
        await idle(recorder)
    (event,) = await events_about(client, cluster, obj)
    assert event["series"]["count"] == 2


async def test_all_kinds_of_objects_and_what_has_no_namespace(
    client: Client, cluster: Cluster, configmaps: Resource[KubeObject], configmap: Configmap
) -> None:
    obj = await configmaps.create(configmap("a"))
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n-{cluster.namespace}", "uid": cluster.namespace},
    }
    async with EventRecorder(client, CONTROLLER, refill=0) as recorder:
        for number, form in enumerate([obj, obj.to_dict(), obj.decode(V1ConfigMap)]):
            recorder.event(form, "Normal", f"Reason{number}", "x" * 3000)
        recorder.event(node, "Normal", "Joined", "", related=obj)
    assert recorder.state.dropped == 0, recorder.state
    assert len(await events_about(client, cluster, obj)) == 3
    events = Resource(client, "events.k8s.io/v1", "events", dict)
    (event,) = await events.list("default", field_selector=f"regarding.uid={cluster.namespace}")
    assert event["related"]["name"] == "a"


async def test_refused_events_are_logged_once(
    cluster: Cluster,
    client: Client,
    configmaps: Resource[KubeObject],
    configmap: Configmap,
    caplog: pytest.LogCaptureFixture,
) -> None:
    obj = await configmaps.create(configmap("a"))
    gone = {**obj.to_dict(), "metadata": {**obj.to_dict()["metadata"], "namespace": "there-is-none"}}
    async with EventRecorder(client, CONTROLLER) as recorder:
        for number in range(3):
            recorder.event(gone, "Normal", f"Reason{number}", "")
    assert recorder.state.refused == 3
    messages = [record.message for record in caplog.records if "an event was refused" in record.message]
    assert len(messages) == 1
    assert "404 NotFound" in messages[0]
    assert 'namespaces "there-is-none" not found' in messages[0]


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"type": "Odd"}, ["type"]),
    ({"action": "", "reason": "x" * 129}, ["action", "reason"]),
    ({"action": "", "reason": "ü" * 65}, ["action", "reason"]),
    ({"note": "x" * 1025}, ["message"]),
    ({"reportingController": "a b"}, ["reportingController"]),
    ({"reportingInstance": ""}, ["reportingInstance"]),
    ({"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}, ["series.count"]),
    ({"regarding": {"kind": "Node", "name": "n"}}, ["involvedObject.namespace"]),
]


@pytest.mark.parametrize(
    ("wrong", "fields"), BAD, ids=lambda value: ",".join(value) if isinstance(value, list) else ""
)
async def test_what_the_server_does_not_take(
    client: Client, cluster: Cluster, wrong: dict[str, Any], fields: list[str]
) -> None:
    events = Resource(client, "events.k8s.io/v1", "events", dict, kind="Event")
    good = {
        "metadata": {"name": "e", "namespace": cluster.namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Reason",
        "action": "Act",
        "note": "",
        "regarding": {"kind": "Pod", "name": "p", "namespace": cluster.namespace},
        "reportingController": CONTROLLER,
        "reportingInstance": "one",
    }
    with pytest.raises(InvalidError) as raised:
        await events.create(good | wrong)
    assert [cause.field for cause in raised.value.causes] == fields
    made = await events.create(good)
    with pytest.raises(InvalidError) as raised:
        await events.patch(made, {"note": "another", "type": "Warning"})
    assert {cause.field for cause in raised.value.causes} >= {"type"}
