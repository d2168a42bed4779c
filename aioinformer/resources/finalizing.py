"""Add and remove finalizers at the server: read, write with a precondition, retry on a conflict.

After kube-rs ``finalizer`` and controller-runtime's ``controllerutil``, which leaves retries to its users.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError, ConflictError, InvalidError, ObjectNotFoundError
from ..objects.finalizers import finalizers_of
from ..objects.keys import is_deleting, uid_of
from ..objects.nesting import decode_object
from .endpoint import Endpoint, lifecycle_of
from .patches import JSON_PATCH, patch_adding, patch_removing

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class State:
    """The finalizers of an object.

    Attributes:
        obj: The object as the caller passed it, or the body of an answer.
        uid: Its uid.
        finalizers: Its finalizers.
        is_deleted: Whether it is marked for deletion.
    """

    obj: Any
    uid: str
    finalizers: tuple[str, ...]
    is_deleted: bool


class FinalizerEditor(ABC):
    """Adds or removes a finalizer.

    The pauses between tries have no jitter: after a conflict, the other writer has finished.

    Args:
        endpoint: The resource of the objects.
    """

    def __init__(self, endpoint: Endpoint[Any]) -> None:
        self.endpoint = endpoint

    async def edit(self, target: Any, name: str, *, wanted: bool) -> Any:
        """Add the finalizer if ``wanted``, else remove it.

        Raises as ``Writes.ensure_finalizer``.

        Returns:
            The body of the last answer; the target if it needs no change; None if the object is gone or being deleted.
        """
        key, uid, state = self.endpoint.addresses.key_of(target), uid_of(target), self.read_target(target)
        if state is not None and not wanted and name not in state.finalizers:
            state = None  # another client may have added it since
        now = asyncio.get_running_loop().time
        deadline, pause = now() + self.endpoint.timeout, FIRST_PAUSE
        refusal: InvalidError | None = None
        try:
            while True:
                if state is None:
                    body = await self.endpoint.read(key)
                    with self.endpoint.name_request("get", key):
                        state = self.state_of(body)
                    if uid and state.uid != uid:
                        return None
                    uid = state.uid
                if (name in state.finalizers) is wanted:
                    return state.obj
                if wanted and state.is_deleted:
                    return None
                if refusal is not None:
                    raise refusal  # reading again did not change the reason
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
    def read_target(self, target: Any) -> State | None:
        """Return what a target itself says, if that is enough to start with; else None."""

    @abstractmethod
    def state_of(self, body: bytes) -> State:
        """Return what an answer says."""

    @abstractmethod
    def verb(self, name: str, *, wanted: bool) -> str:
        """Return the name of the operation in messages."""

    @abstractmethod
    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        """Add or remove a finalizer, unless the object has changed since it was read."""


class Finalizers(FinalizerEditor):
    """Edits ``metadata.finalizers`` with JSON patches."""

    def read_target(self, target: Any) -> State | None:
        if isinstance(target, str):
            return None
        try:
            finalizers = finalizers_of(target)
        except ConfigError:  # a Struct without finalizers
            return None
        return State(target, uid_of(target), tuple(finalizers), is_deleting(target))

    def state_of(self, body: bytes) -> State:
        seen = lifecycle_of(body)
        return State(body, seen.uid, seen.finalizers, seen.is_deleted)

    def verb(self, name: str, *, wanted: bool) -> str:
        return f"add finalizer {name} to" if wanted else f"remove finalizer {name} from"

    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        patch = (patch_adding if wanted else patch_removing)(state.uid, state.finalizers, name)
        verb = self.verb(name, wanted=wanted)
        return await self.endpoint.write(
            verb, key, "PATCH", patch, content_type=JSON_PATCH, query=self.endpoint.manager_query()
        )


class SpecFinalizers(FinalizerEditor):
    """Edits a namespace's ``spec.finalizers`` through its ``finalize`` subresource, which takes whole objects only."""

    def read_target(self, target: Any) -> State | None:
        return None

    def state_of(self, body: bytes) -> State:
        seen, namespace = lifecycle_of(body), decode_object(body)
        finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
        return State(body, seen.uid, tuple(finalizers), seen.is_deleted)

    def verb(self, name: str, *, wanted: bool) -> str:
        return f"{f'add {name} to' if wanted else f'remove {name} from'} the spec.finalizers of"

    async def write(self, key: str, state: State, name: str, *, wanted: bool) -> bytes:
        namespace = decode_object(state.obj)
        left = [finalizer for finalizer in state.finalizers if finalizer != name]
        namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": [*left, name] if wanted else left}
        return await self.endpoint.write(
            self.verb(name, wanted=wanted),
            key,
            "PUT",
            namespace,
            path=self.endpoint.addresses.of(key, "finalize"),
        )
