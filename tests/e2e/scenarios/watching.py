"""Watches: start versions, events, refusals, WatchList."""

from __future__ import annotations

from tests.samples import configmap

from ..api import MERGE
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, PODS, catch_up, version_of

FUTURE = str(10**9)
STREAM = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


async def watches(server: AnswerRecorder) -> None:
    """The same changes from different versions and through different selectors."""
    first = version_of(await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1")))
    await server.ask("POST", CONFIGMAPS, configmap("b"))
    changed, labelled = {"data": {"k": "2"}}, {"metadata": {"labels": {"app": "db"}}}
    await server.ask("PATCH", f"{CONFIGMAPS}/a", changed, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", changed, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", labelled, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/b", {"metadata": {"labels": {"app": "web"}}}, content_type=MERGE)
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    last = version_of(await server.ask("POST", CONFIGMAPS, configmap("c")))
    await catch_up(server)
    selected = {"labelSelector": "app=web"}
    await server.watch_all(
        *((CONFIGMAPS, {"resourceVersion": version}) for version in ("", "0", first, last)),
        *((CONFIGMAPS, {"resourceVersion": version, **selected}) for version in ("", "0", first, last)),
        (CONFIGMAPS, {"resourceVersion": first, "fieldSelector": "metadata.name=a"}),
        ("/api/v1/watch/namespaces/NS/configmaps", {"resourceVersion": first}),
        ("/api/v1/watch/namespaces/NS/configmaps/b", {"resourceVersion": first}),
        (f"{CONFIGMAPS}/b", {"resourceVersion": first}),
        (CONFIGMAPS, {"resourceVersion": FUTURE}),
        (CONFIGMAPS, {"resourceVersion": first, "limit": "1"}),
    )


async def refused_watches(server: AnswerRecorder) -> None:
    """Parameters that a watch does not take."""
    first = version_of(await server.ask("POST", CONFIGMAPS, configmap("a")))
    await server.watch_all(
        (CONFIGMAPS, {"resourceVersion": "abc"}),
        (CONFIGMAPS, {"resourceVersion": "-1"}),
        (CONFIGMAPS, {"resourceVersion": first, "resourceVersionMatch": "Exact"}),
        (CONFIGMAPS, {"resourceVersionMatch": "NotOlderThan"}),
        (CONFIGMAPS, {"continue": "abc"}),
        (CONFIGMAPS, {"allowWatchBookmarks": "perhaps"}),
        (CONFIGMAPS, {"sendInitialEvents": "true"}),
        (CONFIGMAPS, {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"}),
        (CONFIGMAPS, {"sendInitialEvents": "perhaps", "resourceVersionMatch": "NotOlderThan"}),
        (CONFIGMAPS, {"labelSelector": "app in (web"}),
        (CONFIGMAPS, {"fieldSelector": "data.k=1"}),
        ("/api/v1/namespaces/NS/cauldrons", {}),
        ("/apis/absent.example.com/v1/cauldrons", {}),
    )


async def streamed_lists(server: AnswerRecorder) -> None:
    """WatchList."""
    for name in ("b", "a", "c"):
        created = await server.ask("POST", CONFIGMAPS, configmap(name, labels={"app": name}))
    await server.ask("DELETE", f"{CONFIGMAPS}/c")
    await catch_up(server)
    version = {"resourceVersion": version_of(created)}
    bookmarks = {"allowWatchBookmarks": "true"}
    without = STREAM | bookmarks | {"sendInitialEvents": "false"}
    await server.watch_all(
        *((CONFIGMAPS, STREAM | bookmarks | begin) for begin in ({}, {"resourceVersion": "0"}, version)),
        (CONFIGMAPS, STREAM),
        (CONFIGMAPS, STREAM | bookmarks | {"labelSelector": "app=a"}),
        (PODS, STREAM | bookmarks),
        (CONFIGMAPS, without | version),
        (CONFIGMAPS, without),
        (CONFIGMAPS, STREAM | bookmarks | {"resourceVersion": FUTURE, "timeoutSeconds": "5"}),
    )
