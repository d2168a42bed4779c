"""What a cluster asks of webhooks: `aioinformer.testing.webhooks` has both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from aioinformer.testing.objects import Object
from aioinformer.testing.resources import ResourceType
from aioinformer.testing.storage.storage import StoredObject


class Admission(Protocol):
    """Asks the admission webhooks about one write."""

    async def mutate(
        self, resource: ResourceType, obj: Object, old: Object | None, *, dry_run: bool
    ) -> Object:
        """Return an object with the webhooks' changes."""
        ...

    async def validate(
        self, resource: ResourceType, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> None:
        """Ask the validating webhooks."""
        ...


class Conversions(Protocol):
    """Asks the conversion webhooks of definitions."""

    async def convert(self, old: ResourceType, new: ResourceType, obj: Object | None) -> Object | None:
        """Return an object of one version in another."""
        ...

    async def show(
        self, resource: ResourceType, stored_objects: Iterable[StoredObject]
    ) -> list[StoredObject]:
        """Return stored objects as a version of their resource has them."""
        ...
