"""Events of the core group."""

from __future__ import annotations

from ..api import MERGE, Object
from ..recording import AnswerRecorder

_EVENTS = "/api/v1/namespaces/NS/events"


async def core_events(server: AnswerRecorder) -> None:
    """Events of the core group: of the old kind, and of the new one, which have a time in microseconds."""
    mine = {"involvedObject": {"kind": "Pod", "name": "a", "namespace": server.namespace}}
    other = {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "other"}}
    node = {"involvedObject": {"kind": "Node", "name": "a"}}
    old: Object = {"reason": "A", "type": "Odd"}
    new = old | {
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "reportingComponent": "example.com/a",
        "reportingInstance": "a",
        "action": "A",
    }
    for namespace in ("NS", "default", "kube-system"):
        path = f"/api/v1/namespaces/{namespace}/events"
        for kind in (old, new):
            for about in (mine, other, node, {}):
                await server.ask("POST", path, {"metadata": {"generateName": "e-"}} | kind | about)
    for lacking in ("reportingComponent", "reportingInstance", "action", "reason"):
        left = {name: value for name, value in new.items() if name != lacking}
        await server.ask("POST", _EVENTS, {"metadata": {"name": "lacking"}} | left | mine)
    for wrong in (
        {"reason": "x" * 129},
        {"message": "x" * 1025},
        {"series": {"count": 1}},
        {"reportingComponent": "-/-"},
    ):
        for kind in (old, new):
            await server.ask("POST", _EVENTS, {"metadata": {"generateName": "e-"}} | kind | mine | wrong)
    await server.ask("POST", _EVENTS, {"metadata": {"name": "changed"}} | old | mine)
    for about in (mine, other):
        changed = {"metadata": {"name": "changed"}} | old | about | {"message": "another"}
        await server.ask("PUT", f"{_EVENTS}/changed", changed)


async def events_in_two_groups(server: AnswerRecorder) -> None:
    """Each event is seen in both groups, with the fields of each."""
    core, new = _EVENTS, "/apis/events.k8s.io/v1/namespaces/NS/events"
    about = {"kind": "Pod", "name": "a", "namespace": server.namespace}
    times = {"firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-02T00:00:00Z"}
    old: Object = {"involvedObject": about, "reason": "R", "message": "hello", "type": "Normal", "count": 3}
    fresh: Object = {
        "regarding": about,
        "related": {"kind": "Node", "name": "n"},
        "reason": "R",
        "note": "hello",
        "type": "Normal",
        "action": "A",
        "eventTime": "2020-01-01T00:00:00.000001Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000001Z"},
    }
    await server.ask(
        "POST", core, {"metadata": {"name": "old"}} | old | times | {"source": {"component": "c"}}
    )
    await server.ask("POST", new, {"metadata": {"name": "new"}} | fresh)
    for odd in (
        {"deprecatedCount": 7, "deprecatedSource": {"component": "x"}},
        {"type": "Odd"},
        {"eventTime": None},
        {"series": {"count": 1}},
        {"reportingController": ""},
    ):
        await server.ask("POST", new, {"metadata": {"name": "odd"}} | fresh | odd)
    await server.ask("POST", core, {"metadata": {"name": "new"}} | old)
    for path in (core, new):
        for name in ("", "/old", "/new", "/odd"):
            await server.ask("GET", f"{path}{name}")
        await server.watch(path)
        for selector in ("regarding.name=a", "involvedObject.name=a", "type=Normal", "source=c", "reason!=R"):
            await server.ask("GET", path, query={"fieldSelector": selector})
    more = {"series": {"count": 3, "lastObservedTime": "2020-01-01T00:00:00.000002Z"}}
    await server.ask("PATCH", f"{new}/old", more, content_type=MERGE)
    await server.ask("PATCH", f"{core}/new", {"series": {"count": 4}}, content_type=MERGE)
    for change in ({"note": "other"}, {"deprecatedCount": 5}, {"series": {"count": 1}}):
        await server.ask("PATCH", f"{new}/new", change, content_type=MERGE)
    await server.ask("PATCH", f"{core}/new", {"message": "other"}, content_type=MERGE)
    await server.ask("PUT", f"{new}/new", {"metadata": {"name": "new"}} | fresh | {"note": "other"} | more)
    await server.ask("DELETE", f"{new}/old")
    await server.ask("GET", f"{core}/old")
    await server.ask("DELETE", core)
    await server.ask("GET", new)
