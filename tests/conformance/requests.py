"""Random requests to both servers, out of seeds.

A story creates an object of some kind, valid or with a change, and goes on with it: replaces, patches, applies, reads
and deletes. It ends at the first difference, so that each difference is counted once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any

import aiohttp

from tests.e2e.api import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Answer
from tests.e2e.definitions import define
from tests.go_build import Report

from .answers import difference
from .mutations import WRONG, mutate, places
from .results import DIFFERS, SAME, Case
from .samples import CUSTOM, DEFINITION, SAMPLES, Object
from .servers import Target

PART = "requests"
SEEDS = 40
STORIES = 40
"""Stories of a seed."""
STEPS = 5
"""Requests of a story after its first."""
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def run_seeds(ours: Target, theirs: Target, seeds: Iterable[int], report: Report) -> list[Case]:
    """Run the stories of the seeds, each seed in a namespace of its own."""
    await asyncio.gather(define(ours.api, DEFINITION), define(theirs.api, DEFINITION))
    cases: list[Case] = []
    for seed in seeds:
        namespace = f"seed-{seed}"
        for target in (ours, theirs):
            await target.api.do("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        cases_of_seed: list[Case] = []
        for number in range(STORIES):
            random = Random(f"{seed}.{number}")  # so that a story is the same, whatever the ones before
            story = _Story(random, ours, theirs, namespace, f"{seed}.{number}")
            await story.run()
            cases_of_seed += story.cases
        same = sum(case.same for case in cases_of_seed)
        report(f"{PART}: seed {seed}: {same} of {len(cases_of_seed)} requests are answered the same")
        cases += cases_of_seed
    return cases


class _DiffersError(Exception):
    """The servers have answered differently."""


class _Story:
    """One object and the requests about it.

    Attributes:
        cases: The requests so far.
    """

    def __init__(self, random: Random, ours: Target, theirs: Target, namespace: str, number: str) -> None:
        self._random = random
        self._targets = (ours, theirs)
        self._sample = random.choice(CUSTOM if random.random() < 0.2 else SAMPLES)
        self._collection = self._sample.collection(namespace)
        self._name = f"n{number.replace('.', '-')}"
        self._path = f"{self._collection}/{self._name}"
        self._number = number
        self.cases: list[Case] = []

    async def run(self) -> None:
        try:
            answer = await self._create()
            if answer.status != 201:
                return
            for _ in range(STEPS):
                step, _weight = self._random.choices(_STEPS, [weight for _, weight in _STEPS])[0]
                await step(self)
        except _DiffersError:
            pass
        finally:
            for target in self._targets:  # so that no later story meets the object, if it is in no namespace
                await target.api.ask("DELETE", self._path, {"gracePeriodSeconds": 0})

    def _content(self, valid: float = 0.4) -> Object:
        """Return the object with one change, or, with this probability, without."""
        made = self._sample.with_name(self._name)
        return made if self._random.random() < valid else mutate(self._random, made)

    def _options(self) -> dict[str, str]:
        options = {}
        if self._random.random() < 0.6:
            options["fieldValidation"] = self._random.choice(("Strict", "Warn", "Ignore"))
        if self._random.random() < 0.1:
            options["dryRun"] = "All"
        return options

    async def _create(self) -> Answer:
        options = self._options()
        options.pop("dryRun", None)
        return await self._ask("POST", self._collection, self._content(), options)

    async def _replace(self) -> None:
        await self._ask("PUT", self._path, self._content(0.3), self._options())

    async def _merge(self) -> None:
        kind = MERGE if self._sample.custom or self._random.random() < 0.5 else STRATEGIC
        content = self._content(0.2)
        part = self._random.choice([name for name in content if name not in ("apiVersion", "kind")])
        patch = {part: content[part]}
        if part == "metadata":
            patch = {"metadata": {**content["metadata"], "labels": self._random.choice(WRONG)}}
        await self._ask("PATCH", self._path, patch, self._options(), content_type=kind)

    async def _json_patch(self) -> None:
        place = self._random.choice(list(places(self._sample.with_name(self._name))))
        value = self._random.choice((place.value, *WRONG))
        operation = self._random.choice(
            (
                {"op": "replace", "path": place.pointer, "value": value},
                {"op": "add", "path": place.pointer, "value": value},
                {"op": "test", "path": place.pointer, "value": value},
                {"op": "remove", "path": place.pointer},
                {"op": "add", "path": f"{place.pointer}/nonsense", "value": value},
            )
        )
        await self._ask("PATCH", self._path, [operation], self._options(), content_type=JSON_PATCH)

    async def _apply(self) -> None:
        options = {"fieldManager": self._random.choice(("one", "two")), **self._options()}
        if self._random.random() < 0.5:
            options["force"] = "true"
        await self._ask("PATCH", self._path, self._content(0.5), options, content_type=APPLY)

    async def _read(self) -> None:
        accept = self._random.choice((JSON, AS_TABLE))
        await self._ask("GET", self._path, accept=accept)

    async def _status(self) -> None:
        status = {
            "status": {
                self._random.choice(("phase", "replicas", "size", "nonsense")): self._random.choice(WRONG)
            }
        }
        await self._ask("PATCH", f"{self._path}/status", status, self._options(), content_type=MERGE)

    async def _scale(self) -> None:
        spec = {"spec": {"replicas": self._random.choice((0, 3, -1, "many"))}}
        await self._ask("PATCH", f"{self._path}/scale", spec, content_type=MERGE)

    async def _delete(self) -> None:
        dry = {"dryRun": "All"} if self._random.random() < 0.5 else {}
        await self._ask("DELETE", self._path, query=dry)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        """Send a request to both servers; end the story if they answer differently."""
        ours, theirs = await asyncio.gather(
            *(
                _answer(target.api.ask(method, path, body, query, content_type=content_type, accept=accept))
                for target in self._targets
            )
        )
        differs = difference(ours, theirs)
        area = "custom resources" if self._sample.custom else "built-in kinds"
        verb = _VERBS.get(
            content_type if method == "PATCH" else accept if method == "GET" else method, method
        )
        within = path.removeprefix(self._path) if path.startswith(self._path) else ""
        what = f"{self._sample.content['kind']}: {verb}{within.replace('/', ' ')}"
        name = f"{self._number} {what}, step {len(self.cases)}"
        case = Case(PART, area, name, SAME)
        if differs is not None:
            case = Case(PART, area, name, differs.outcome, differs.ours, differs.real, differs.cause)
            case.sent = f"{method} {path} {query or ''} {'' if body is None else body}"[:2000]
        self.cases.append(case)
        if case.outcome == DIFFERS:
            raise _DiffersError
        return theirs


_VERBS = {
    "POST": "create",
    "PUT": "replace",
    "DELETE": "delete",
    MERGE: "merge patch",
    STRATEGIC: "strategic patch",
    JSON_PATCH: "JSON patch",
    APPLY: "apply",
    JSON: "get",
    AS_TABLE: "get as table",
}
_STEPS: tuple[tuple[Callable[[_Story], Awaitable[None]], float], ...] = (
    (_Story._replace, 3),
    (_Story._merge, 4),
    (_Story._json_patch, 3),
    (_Story._apply, 3),
    (_Story._read, 1),
    (_Story._status, 1),
    (_Story._scale, 0.3),
    (_Story._delete, 0.7),
)


async def _answer(asked: Awaitable[Answer]) -> Answer:
    """Return the answer; kube-apiserver drops the connection where its code panics."""
    try:
        return await asked
    except aiohttp.ServerDisconnectedError:
        return Answer(0, {"message": "the server dropped the connection"})
