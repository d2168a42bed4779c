"""ReadyCondition: keeps the condition Ready of a controller's objects, by what their last reconcile did."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import anyio
import msgspec

from .._core.failure_log import FailureLog
from ..errors import (
    AioInformerError,
    ConfigError,
    ConflictError,
    DecodeError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    message_of,
)
from ..objects.api_resources import is_built_in_group
from ..objects.encoding import fields_of
from ..objects.fields import field
from ..objects.keys import is_deleting, metadata_field, resource_version_of, uid_of
from ..objects.kube_object import KubeObject
from ..objects.status_conditions import (
    PROGRESSING,
    READY,
    SUCCEEDED,
    WAITING,
    conditions_of,
    find_status_condition,
    set_ready_condition,
)
from ..objects.undecodable import UndecodableObject
from ..resources import CachedResource, Resource
from .failures import DOES_NOT_FIT, FAILED, TIMED_OUT, Failure
from .kinds import ResourceReference, arguments_of, base_of, resource_of, show
from .predicates import Change
from .requests import Result

logger = logging.getLogger(__name__)

Object = dict[str, Any]

TIMEOUT = 10.0
"""Seconds that a condition may take, with its reads and tries."""
TRIES = 3
"""Tries if others change the object meanwhile."""

OWN_TYPES = (READY, PROGRESSING)
OWN_REASONS = {SUCCEEDED, WAITING, FAILED, TIMED_OUT, DOES_NOT_FIT}
"""The reasons by which it knows the conditions that it wrote. A reconciler that sets Ready itself has others."""

_PERMANENT = (ForbiddenError, InvalidError, NotFoundError, ConfigError, DecodeError)
"""Errors that another try would meet again."""


class Began(NamedTuple):
    """An object when its reconcile began.

    Attributes:
        uid: Its uid.
        generation: The generation that is reconciled; None if it has none.
        is_deleting: Whether it was marked for deletion.
        is_ours: Whether it had a condition Ready that was written here.
    """

    uid: str
    generation: int | None
    is_deleting: bool
    is_ours: bool


class ReadyCondition:
    """Keeps the condition ``Ready`` of a controller's objects: False with the error, True after a success.

    It writes only if the condition changes. After a success, a condition Ready that the reconciler sets stays.

    Args:
        name: The controller's name.
        written: The objects, and where their status is written.
        stored: The same collection, read at the server with all fields.
    """

    def __init__(self, name: str, written: CachedResource[Any], stored: Resource[Object]) -> None:
        self._name = name
        self._written = written
        self._stored = stored
        self._began: dict[str, Began] = {}  # of the running reconciles
        self._log = FailureLog(f"{name}: conditions", logger)
        self._warnings: set[str] = set()

    def begin(self, key: str, obj: Any) -> None:
        """Record the object of a key whose reconcile begins; None if it is gone."""
        if obj is None:
            self._began.pop(key, None)
            return
        generation = metadata_field(obj, "generation", "generation") or None
        self._began[key] = Began(uid_of(obj), generation, is_deleting(obj), _is_ours(_find(obj, READY)))

    async def keep(self, key: str, failure: Failure | None, result: Result | None) -> bool:
        """Write the condition after a reconcile, if it changes. Returns whether to leave it at that: else try again.

        Args:
            key: The object's key.
            failure: Why the reconcile failed; None if it succeeded.
            result: What it returned.
        """
        began = self._began.pop(key, None)
        if began is None or (failure is not None and failure.may_pass):
            return True
        if failure is None and began.is_deleting:
            return True  # it was cleaned up, and goes
        try:
            with anyio.fail_after(TIMEOUT):
                await self._keep(key, began, failure, result)
        except (AioInformerError, TimeoutError) as error:
            is_permanent = isinstance(error, _PERMANENT)
            self._log.log(
                error, "%s: the condition Ready of %s was not written, and is tried again %s: %s",
                self._name, key, "at its next reconcile" if is_permanent else "soon", message_of(error),
                level=logging.WARNING,
            )  # fmt: skip
            return is_permanent
        return True

    def is_own_change(self, change: Change[Any]) -> bool:
        """Return whether an update changes these conditions alone, and so needs no reconcile."""
        if change.old is None or change.new is None:
            return False
        if all(_find(change.old, kind) == _find(change.new, kind) for kind in OWN_TYPES):
            return False
        try:
            return _without_own(change.old) == _without_own(change.new)
        except ConfigError:  # something else is in the place of the conditions
            return False

    async def _keep(self, key: str, began: Began, failure: Failure | None, result: Result | None) -> None:
        obj = await self._newest(key)
        if obj is None or uid_of(obj) != began.uid or self._next(key, obj, began, failure, result) is None:
            return
        for tries_left in reversed(range(TRIES)):
            try:
                current = await self._stored.get(key)
            except NotFoundError:
                return
            if uid_of(current) != began.uid:
                return
            conditions = self._next(key, current, began, failure, result)
            if conditions is None:
                return
            patch = {
                "metadata": {"resourceVersion": resource_version_of(current)},
                "status": {"conditions": conditions},
            }
            try:
                target = obj if isinstance(obj, UndecodableObject) else key
                answer = await self._written.patch_status(target, patch)
            except (ConflictError, NotFoundError):  # it was changed or deleted meanwhile
                if tries_left:
                    continue
                raise
            if _find(answer, READY) is None:
                self._warn_once(
                    "dropped",
                    f"the server dropped the condition Ready of {key}: its schema lacks status.conditions. Install "
                    "the definition of the class, or pass conditions=False",
                )
            return

    async def _newest(self, key: str) -> Any:
        """Return the object with the reconciler's own writes; None if it is gone."""
        store = self._written.informer.store
        if not self._written.is_current(key):
            try:
                return await self._written.get(key)
            except NotFoundError:
                return None
            except DecodeError:
                pass
        return store.find_any(key)

    def _next(
        self, key: str, obj: Any, began: Began, failure: Failure | None, result: Result | None
    ) -> list[Object] | None:
        """Return the conditions that an object should get; None to leave those that it has."""
        conditions = conditions_of(obj)
        ready = next((condition for condition in conditions if condition.get("type") == READY), None)
        if failure is None and ready is not None and not _is_ours(ready):
            return None  # the reconciler's
        if failure is None and ready is None and began.is_ours:
            self._warn_once(
                "removed",
                f"reconciling {key} removed the condition Ready, which conditions=True keeps: leave status.conditions "
                "as request.object has them, or patch only the other fields of the status",
            )
            return None  # a write would be removed again, for ever
        metadata = {} if began.generation is None else {"generation": began.generation}
        foreign = [
            condition
            for condition in conditions
            if condition.get("type") == PROGRESSING and not _is_ours(condition)
        ]
        own = [condition for condition in conditions if condition not in foreign]
        before: Object = {"metadata": metadata, "status": {"conditions": own}}
        if failure is None:
            progressing = "" if result is None else result.progressing
            after, has_changed = set_ready_condition(before, progressing=progressing)
        else:
            after, has_changed = set_ready_condition(before, error=failure.note, reason=failure.reason)
        if not has_changed:
            return None
        changed: list[Object] = after["status"]["conditions"]
        if foreign:
            changed = [condition for condition in changed if condition["type"] != PROGRESSING]
        return [*changed, *foreign]

    def _warn_once(self, kind: str, text: str) -> None:
        """Log what is wrong with all objects alike, once."""
        if kind not in self._warnings:
            self._warnings.add(kind)
            logger.error("%s: %s", self._name, text)


def require_conditions(resource: ResourceReference) -> None:
    """Check that objects of a resource can have conditions, as far as their class says.

    Raises:
        ConfigError: They cannot.
    """
    if is_built_in_group(resource_of(resource).group):
        raise ConfigError(
            f"conditions=True is for custom resources: Kubernetes keeps the conditions of {show(resource)} itself"
        )
    base = base_of(resource)
    object_type = base if isinstance(base, type) else arguments_of(resource)[-1]
    kind = object_type if isinstance(object_type, type) else KubeObject  # of a name alone
    if issubclass(kind, (KubeObject, dict)):
        return
    try:
        field("status.conditions[*].type").require_known(kind)
        is_known = issubclass(kind, msgspec.Struct)
    except ConfigError:
        is_known = False
    if not is_known:
        raise ConfigError(
            f"conditions=True needs status.conditions, which {kind.__name__} lacks: give the class of its status "
            '`conditions: Annotated[list[Condition], MapOf("type")] = []`, with the Condition and MapOf of '
            "aioinformer.typed, or pass conditions=False"
        )


def _find(obj: Any, kind: str) -> Object | None:
    """Return a condition; None if there is none, or something else is in its place."""
    try:
        return find_status_condition(obj, kind)
    except ConfigError:
        return None


def _is_ours(condition: Object | None) -> bool:
    return condition is not None and condition.get("reason") in OWN_REASONS


def _without_own(obj: Any) -> Object:
    """Return the fields of an object without these conditions, and without what changes with every write."""
    fields = fields_of(obj)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        metadata = {
            name: value
            for name, value in metadata.items()
            if name not in ("resourceVersion", "managedFields")
        }
    status = fields.get("status") or {}
    if isinstance(status, dict):
        others = [condition for condition in conditions_of(obj) if condition.get("type") not in OWN_TYPES]
        # The first write adds the status, with the defaults of its schema.
        status = {name: value for name, value in {**status, "conditions": others}.items() if value}
    return {**fields, "metadata": metadata, "status": status}
