"""The selection of objects that a list or a watch asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aioinformer.objects.labels import LabelSelector
from aioinformer.testing.storage.selectors import FieldSelector
from aioinformer.testing.storage.shards import ShardSelector

if TYPE_CHECKING:
    from aioinformer.testing.storage.storage import StoredObject


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace and selectors; empty, it selects everything."""

    namespace: str = ""
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    shards: ShardSelector = field(default_factory=ShardSelector)

    @property
    def has_selectors(self) -> bool:
        """True if the selection has label, field or shard selectors."""
        return bool(self.labels) or bool(self.fields) or bool(self.shards)

    def matches(self, stored: StoredObject | None) -> bool:
        """Return whether an object is selected."""
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        return (
            self.labels.matches(stored.labels)
            and self.fields.matches(stored.namespace, stored.name, stored.fields)
            and self.shards.matches(stored)
        )
