"""Finalizers on the server: read, written with a test, and all again where somebody else was faster.

After kube-rs ``finalizer`` and controller-runtime's ``controllerutil``, which leaves the retrying to its users.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import ConfigError, ConflictError, InvalidError, ObjectNotFoundError
from ..objects.finalizers import finalizers_of
from ..objects.keys import is_deleting, uid_of
from .endpoint import Endpoint, seen_of
from .patches import JSON_PATCH, adding, removing

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class State:
    """What is known of an object's finalizers.

    Attributes:
        obj: The object it is known from: what the caller gave, or the body of an answer.
    """

    obj: Any
    uid: str
    finalizers: tuple[str, ...]
    is_deleted: bool


class Settling(ABC):
    """Sees to it that a finalizer is there, or is not.

    There is no jitter in the pauses: whoever loses a race has lost it to somebody who is done.

    Args:
        endpoint: Where the objects are.
    """

    def __init__(self, endpoint: Endpoint[Any]) -> None:
        self.endpoint = endpoint

    async def settle(self, target: Any, name: str, *, wanted: bool) -> Any:
        """The body of the last answer; the target where it is given as it should be; None where it is too late.

        Raises as ``Writes.ensure_finalizer``.
        """
        key, uid, state = self.endpoint.addresses.key_of(target), uid_of(target), self.known(target)
        if state is not None and not wanted and name not in state.finalizers:
            state = None  # it may have been added since
        now = asyncio.get_running_loop().time
        deadline, pause = now() + self.endpoint.timeout, FIRST_PAUSE
        refusal: InvalidError | None = None
        try:
            while True:
                if state is None:
                    body = await self.endpoint.read(key)
                    with self.endpoint.asking("get", key):
                        state = self.state_of(body)
                    if uid and state.uid != uid:
                        return None
                    uid = state.uid
                if (name in state.finalizers) is wanted:
                    return state.obj
                if wanted and state.is_deleted:
                    return None
                if refusal is not None:
                    raise refusal  # it was not because of what we did not know
                try:
                    return await self.write(key, state, name, wanted=wanted)
                except InvalidError as error:
                    if error.causes:
                        refusal = error
                    elif now() >= deadline:
                        raise
                except ConflictError:
                    if now() >= deadline:
                        raise
                await asyncio.sleep(pause)
                pause, state = min(2.0 * pause, LONGEST_PAUSE), None
        except ObjectNotFoundError as error:
            if error.is_missing_resource:
                raise
            return None

    @abstractmethod
    def known(self, target: Any) -> State | None:
        """What a target says of itself, if that is enough to begin with."""

    @abstractmethod
    def state_of(self, body: bytes) -> State:
        """What an answer says."""

    @abstractmethod
    def verb(self, name: str, *, wanted: bool) -> str:
        """What the writing is called in messages."""

    @abstractmethod
    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        """Add or remove a finalizer, if things still are as they were read."""


class Finalizers(Settling):
    """``metadata.finalizers``, by JSON patches."""

    def known(self, target: Any) -> State | None:
        if isinstance(target, str):
            return None
        try:
            finalizers = finalizers_of(target)
        except ConfigError:  # a Struct that does not name them
            return None
        return State(target, uid_of(target), tuple(finalizers), is_deleting(target))

    def state_of(self, body: bytes) -> State:
        seen = seen_of(body)
        return State(body, seen.uid, seen.finalizers, seen.is_deleted)

    def verb(self, name: str, *, wanted: bool) -> str:
        return f"add finalizer {name} to" if wanted else f"remove finalizer {name} from"

    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        patch = (adding if wanted else removing)(state.uid, state.finalizers, name)
        verb = self.verb(name, wanted=wanted)
        return await self.endpoint.write(
            verb, key, "PATCH", patch, content_type=JSON_PATCH, query=self.endpoint.managed()
        )


class SpecFinalizers(Settling):
    """A namespace's ``spec.finalizers``, by its ``finalize`` subresource, which takes whole objects only."""

    def known(self, target: Any) -> State | None:
        return None

    def state_of(self, body: bytes) -> State:
        seen, namespace = seen_of(body), _decode(body)
        finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
        return State(body, seen.uid, tuple(finalizers), seen.is_deleted)

    def verb(self, name: str, *, wanted: bool) -> str:
        return f"{f'add {name} to' if wanted else f'remove {name} from'} the spec.finalizers of"

    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        namespace = _decode(state.obj)
        left = [each for each in state.finalizers if each != name]
        namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": [*left, name] if wanted else left}
        return await self.endpoint.write(
            self.verb(name, wanted=wanted),
            key,
            "PUT",
            namespace,
            path=self.endpoint.addresses.of(key, "finalize"),
        )
