"""Requests out of a seed: a few names, all verbs, earlier versions, now and then something wrong."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.samples import configmap

from ..api import JSON_PATCH, MERGE, STRATEGIC, Object
from ..recording import AnswerRecorder, Scenario
from .common import CONFIGMAPS, catch_up

NAMES = ("a", "b", "c", "d")
APPS = ("web", "db", "cache")
SELECTORS = (
    "app=web",
    "app!=web",
    "app in (web,db)",
    "!app",
    "app",
    "app notin (db),app",
    "app=web,!tier",
    "app in",
)
FIELDS = ("metadata.name=a", "metadata.name!=b", "metadata.name=a,metadata.name=b", "metadata.kind=x")
REQUESTS = 120


def random_requests(seed: int) -> Scenario:
    """The scenario of a seed."""

    async def scenario(server: AnswerRecorder) -> None:
        await _Random(server, Random(seed)).run()

    return scenario


class _Random:
    """Decides by the seed alone: answers fill in versions, and nothing else depends on them."""

    def __init__(self, server: AnswerRecorder, random: Random) -> None:
        self._server = server
        self._random = random
        self._objects: list[Object] = [configmap("a")]
        self._versions: list[str] = ["0"]

    async def run(self) -> None:
        verbs = (self._create, self._replace, self._patch, self._delete, self._list, self._delete_some)
        for _ in range(REQUESTS):
            (verb,) = self._random.choices(verbs, weights=(6, 4, 5, 3, 3, 0.3))
            await verb()
        await catch_up(self._server)
        await self._server.watch_all(
            *((CONFIGMAPS, {"resourceVersion": self._version(), **self._selectors()}) for _ in range(12))
        )

    def _version(self) -> str:
        return self._versions[int(self._random.random() * len(self._versions))]

    def _keep(self, body: Any) -> None:
        # One entry a request, whatever the answer, so that both servers choose alike.
        good = isinstance(body, dict) and body.get("kind") == "ConfigMap"
        self._objects.append(body if good else self._objects[-1])
        self._versions.append(body["metadata"]["resourceVersion"] if good else self._versions[-1])

    def _content(self, name: str) -> Object:
        labels = {"app": self._random.choice(APPS)} if self._random.random() < 0.7 else None
        made = configmap(name, labels=labels, k=str(self._random.randrange(3)))
        if self._random.random() < 0.15:
            made["metadata"]["finalizers"] = ["example.com/hold"]
        return made

    async def _create(self) -> None:
        answer = await self._server.ask("POST", CONFIGMAPS, self._content(self._random.choice(NAMES)))
        self._keep(answer.body)

    async def _replace(self) -> None:
        old = self._objects[int(self._random.random() * len(self._objects))]
        name = old["metadata"]["name"]
        changed = {**old, "data": {"k": str(self._random.randrange(3))}}
        if self._random.random() < 0.5:  # whatever the version
            changed = self._content(name)
        answer = await self._server.ask("PUT", f"{CONFIGMAPS}/{name}", changed)
        self._keep(answer.body)

    async def _patch(self) -> None:
        value = str(self._random.randrange(3))
        app = self._random.choice((*APPS, None))
        kind, patch = self._random.choice(
            (
                (MERGE, {"data": {"k": value}}),
                (MERGE, {"metadata": {"labels": {"app": app}}}),
                (MERGE, {"metadata": {"finalizers": None}}),
                (STRATEGIC, {"metadata": {"labels": {"app": app, "tier": value}}}),
                (STRATEGIC, {"metadata": {"finalizers": ["example.com/hold"]}}),
                (JSON_PATCH, [{"op": "replace", "path": "/data/k", "value": value}]),
                (
                    JSON_PATCH,
                    [{"op": "test", "path": "/data/k", "value": value}, {"op": "remove", "path": "/data/k"}],
                ),
                (JSON_PATCH, [{"op": "add", "path": "/data/j", "value": value}]),
            )
        )
        path = f"{CONFIGMAPS}/{self._random.choice(NAMES)}"
        answer = await self._server.ask("PATCH", path, patch, content_type=kind)
        self._keep(answer.body)

    async def _delete(self) -> None:
        await self._server.ask("DELETE", f"{CONFIGMAPS}/{self._random.choice(NAMES)}")

    async def _delete_some(self) -> None:
        await self._server.ask("DELETE", CONFIGMAPS, query=self._selectors())

    async def _list(self) -> None:
        query = self._selectors()
        if self._random.random() < 0.5:
            query["limit"] = str(self._random.randrange(1, 4))
        if self._random.random() < 0.3:
            query["resourceVersion"] = self._version()
            query["resourceVersionMatch"] = self._random.choice(("Exact", "NotOlderThan"))
            await catch_up(self._server)
        answer = await self._server.ask("GET", CONFIGMAPS, query=query)
        token = answer.body["metadata"].get("continue") if answer.status == 200 else ""
        if "limit" in query:  # a further page, or what is answered to a token that is none
            further = {"limit": query["limit"], "continue": token or "e30"}
            await self._server.ask("GET", CONFIGMAPS, query=further)

    def _selectors(self) -> dict[str, str]:
        selectors = {}
        if self._random.random() < 0.5:
            selectors["labelSelector"] = self._random.choice(SELECTORS)
        if self._random.random() < 0.2:
            selectors["fieldSelector"] = self._random.choice(FIELDS)
        return selectors
