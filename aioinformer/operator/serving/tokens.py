"""Tokens: who may read a path, as the API server knows it (controller-runtime ``pkg/metrics/filters``)."""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256
from typing import NamedTuple

import anyio

from ..._core.failure_log import FailureLog
from ...client import Client
from ...errors import AioInformerError, message_of
from ..reviews import AUTHENTICATION, AUTHORIZATION, review

logger = logging.getLogger(__name__)

ALLOWED, REFUSED = 60.0, 10.0
"""Seconds for which an answer of the API server counts. A right that is taken away still counts for a minute."""
MOST_KEPT = 1000
"""Answers that are kept, the newest."""
MOST_ASKED = 4
"""Tokens that the API server reviews at the same time, however many are sent."""
PATIENCE = 15.0
"""Seconds that a request may wait for its review."""


class Verdict(NamedTuple):
    """Whether a request may read a path.

    Attributes:
        status: 200; else the HTTP status of the refusal: 401, 403, or 503 if the API server does not answer.
        text: Why it is refused.
    """

    status: int
    text: str = ""


class Tokens:
    """Checks bearer tokens by TokenReview, and the right to read a path by SubjectAccessReview.

    Args:
        client: Asks the API server. Its user needs the right to create both reviews.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._verdicts: dict[bytes, tuple[Verdict, float]] = {}
        self._turns = asyncio.Semaphore(MOST_ASKED)
        self._log = FailureLog("tokens", logger)

    async def check(self, authorization: str, path: str) -> Verdict:
        """Return whether a request may get a path.

        Args:
            authorization: Its Authorization header.
            path: ``"/metrics"``.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token.isascii() or not token:
            return Verdict(401, f"{path} needs a token: send Authorization: Bearer TOKEN")
        key = sha256(f"{path} {token}".encode()).digest()
        verdict = self._find(key)
        if verdict is None:
            with anyio.move_on_after(PATIENCE):
                async with self._turns:
                    verdict = self._find(key) or await self._review(key, token, path)
        return verdict or Verdict(503, f"the token was not reviewed within {PATIENCE:g} s")

    def _find(self, key: bytes) -> Verdict | None:
        verdict, until = self._verdicts.get(key, (None, 0.0))
        return verdict if asyncio.get_running_loop().time() < until else None

    async def _review(self, key: bytes, token: str, path: str) -> Verdict:
        try:
            verdict = await self._ask(token, path)
        except AioInformerError as error:
            self._log.log(
                error,
                "a token for %s was not reviewed, and its request is refused: %s",
                path,
                message_of(error),
            )
            return Verdict(
                503, f"the API server does not review tokens: {type(error).__name__}; see the operator's log"
            )
        self._verdicts.pop(key, None)
        if len(self._verdicts) >= MOST_KEPT:
            del self._verdicts[next(iter(self._verdicts))]
        lifetime = ALLOWED if verdict.status == 200 else REFUSED
        self._verdicts[key] = verdict, asyncio.get_running_loop().time() + lifetime
        return verdict

    async def _ask(self, token: str, path: str) -> Verdict:
        known = await review(self._client, AUTHENTICATION, "TokenReview", spec={"token": token})
        if known.get("authenticated") is not True:
            return Verdict(401, "the API server does not know this token")
        user = known.get("user") or {}
        spec = {
            "user": user.get("username") or "",
            "uid": user.get("uid") or "",
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        access = await review(self._client, AUTHORIZATION, "SubjectAccessReview", spec=spec)
        if access.get("allowed") is True:
            return Verdict(200)
        return Verdict(
            403, f"{spec['user']} may not get {path}: grant it by a ClusterRole with nonResourceURLs [{path}]"
        )
