"""The same requests to two servers, and their answers made comparable."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from .api import API, JSON, Answer, Object
from .definitions import define

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
VERSIONS_IN_TEXT = re.compile(
    r"(too old resource version: |Too large resource version: |current: |in object meta: |\()\d+"
)


class Recorded(NamedTuple):
    """One request and its answer, masked."""

    request: str
    sent: str
    status: int
    body: Any
    content_type: str = ""


class AnswerRecorder:
    """Asks one server, and keeps every answer with what cannot be the same masked: uids, versions and times, names
    that were generated, the test's namespace, and managedFields.

    Uids and an object's versions are numbered as they appear, so that which are equal shows.

    Args:
        api: The server.
        namespace: The test's own; ``NS`` in what is recorded.
    """

    def __init__(self, api: API, namespace: str) -> None:
        self._api = api
        self.namespace = namespace
        self.recorded: list[Recorded] = []
        self._uids: dict[str, str] = {}
        self._versions: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._generated: dict[str, str] = {}
        self._bases: list[re.Pattern[str]] = []

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request; ``NS`` in the path stands for the test's namespace."""
        answer = await self._api.ask(
            method, self._own(path), body, query, content_type=content_type, accept=accept, headers=headers
        )
        shown = f" ({accept})" if accept != JSON else ""
        shown += "".join(f" {name}: {self._text(value)}" for name, value in (headers or {}).items())
        self._record(f"{method} {self._text(path)}{shown}", query, body, answer)
        return answer

    async def watch(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Everything of a watch; it ends after a second."""
        (answer,) = await self.watch_all((path, query or {}))
        return answer

    async def watch_all(self, *watches: tuple[str, Mapping[str, str]], accept: str = JSON) -> list[Answer]:
        """Several watches at once."""
        asked = [(path, {"timeoutSeconds": "1", **query}) for path, query in watches]
        answers = await asyncio.gather(
            *(self._api.events(self._own(path), query, accept) for path, query in asked)
        )
        shown = f" ({accept})" if accept != JSON else ""
        for (path, query), answer in zip(asked, answers, strict=True):
            self._record(f"WATCH {self._text(path)}{shown}", query, None, answer)
        return answers

    async def define(self, definition: Object) -> None:
        """Create a CustomResourceDefinition; goes on when it is served, which is not recorded."""
        await define(self._api, definition)

    async def until(self, status: int, path: str) -> None:
        """Wait until a path is answered with this status, which is not recorded."""
        async with asyncio.timeout(20):
            while (await self._api.ask("GET", self._own(path))).status != status:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)

    async def until_shown(self, path: str, text: str) -> None:
        """Wait until an answer has a text, which is not recorded: a changed definition is served a moment later."""
        async with asyncio.timeout(20):
            while text not in str((await self._api.ask("GET", self._own(path))).body):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)

    async def until_refused(self, token: str) -> None:
        """Wait until a token is refused, which is not recorded.

        The real server learns of a deletion a moment later, and remembers for ten seconds a token that it accepted.
        """
        review = {"spec": {"token": token}}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        async with asyncio.timeout(30):
            while (await self._api.ask("POST", path, review)).body["status"].get("authenticated"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    def _own(self, path: str) -> str:
        return re.sub(r"\bNS\b", self.namespace, path)

    def _record(self, request: str, query: Mapping[str, str] | None, body: Any, answer: Answer) -> None:
        if query:
            request += "?" + "&".join(f"{name}={self._in_query(name, query[name])}" for name in query)
        sent = (
            ""
            if body is None
            else body.decode(errors="replace")
            if isinstance(body, bytes)
            else json.dumps(self._mask(body))
        )
        base = (body.get("metadata") or {}).get("generateName") if isinstance(body, dict) else None
        if base:
            self._bases.append(re.compile(f"{re.escape(base[:58])}[a-z0-9]{{5}}"))
        recorded = Recorded(request, sent, answer.status, self._mask(answer.body), answer.content_type)
        self.recorded.append(recorded)

    def _in_query(self, name: str, value: str) -> str:
        hidden = (
            name == "resourceVersion" and len(value) < 15 and value not in ("", "0")
        ) or name == "continue"
        return name.upper() if hidden and (value.isdigit() or name == "continue") else self._text(value)

    def _mask(self, value: Any) -> Any:
        if isinstance(value, dict):
            masked = {name: self._mask(member) for name, member in value.items() if name != "managedFields"}
            if isinstance(value.get("metadata"), dict):
                masked["metadata"] = self._mask_metadata(value["metadata"])
            return masked
        if isinstance(value, list):
            return [self._mask(element) for element in value]
        return self._text(value) if isinstance(value, str) else value

    def _mask_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        uid = metadata.get("uid")
        version, token = metadata.get("resourceVersion"), metadata.get("continue")
        masked: dict[str, Any] = {
            field: self._mask(value) for field, value in metadata.items() if field != "managedFields"
        }
        if version:
            masked["resourceVersion"] = self._version(uid, version) if uid else "SOME"
        if token:
            masked["continue"] = "SOME"
        return masked

    def _version(self, uid: str, version: str) -> str:
        versions = self._versions[uid]
        return versions.setdefault(version, f"{len(versions) + 1} of {self._text(uid)}")

    def _text(self, text: str) -> str:
        text = TOKEN.sub("TOKEN", text.replace(self.namespace, "NS"))
        text = UID.sub(lambda match: self._uids.setdefault(match[0], f"UID{len(self._uids) + 1}"), text)
        for base in self._bases:  # after the uids, which may have a short one in them
            text = base.sub(self._generated_name, text)
        return VERSIONS_IN_TEXT.sub(r"\1N", TIME.sub("TIME", text))

    def _generated_name(self, match: re.Match[str]) -> str:
        return self._generated.setdefault(match[0], f"GENERATED{len(self._generated) + 1}")


Scenario = Callable[[AnswerRecorder], Coroutine[Any, Any, None]]
