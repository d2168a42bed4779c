"""The options of writes and deletes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aioinformer.testing import errors
from aioinformer.testing.schema.unknown import FieldCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster.protocols import Admission
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        subresource: `"status"` or another; empty for the object itself.
        whole: Write object and status in one step, as the Python API does for tests that act as user and controller.
        dry_run: Check everything, change nothing.
        field_manager: The field manager.
        applied: The write is an apply, which has already set `managedFields`.
        strict: Check the spec and admit the object as the real server does; the Python API writes incomplete objects.
        fields: Collects the unknown fields.
        strategic: The strategic merge patch that the write comes from.
        admission: Asks the admission webhooks; None if there are none. For the coroutines only.
        guard: Raises a StatusError if the user may not write the new object in place of the old one; None permits all.
    """

    subresource: str = ""
    whole: bool = False
    dry_run: bool = False
    field_manager: str = "unknown"
    applied: bool = False
    strict: bool = False
    fields: FieldCheck = field(default_factory=FieldCheck)
    strategic: Object | None = None
    admission: Admission | None = None
    guard: Callable[[ResourceType, Object, Object | None], None] | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete.

    Raises:
        StatusError: 422 for an unknown propagation policy.
    """

    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation_policy: str | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.propagation_policy not in (None, *_POLICIES):
            cause = errors.field_not_supported(
                "propagationPolicy", self.propagation_policy, [*_POLICIES, "nil"]
            )
            raise errors.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
