"""Events of the core group."""

from __future__ import annotations

from ..api import Object
from ..recording import Recorder

_EVENTS = "/api/v1/namespaces/NS/events"


async def core_events(server: Recorder) -> None:
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
