"""What a storage version migration reads in a CustomResourceDefinition, and remembers there."""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import ConfigError

Object = dict[str, Any]

PROGRESS = "aioinformer-migration"
"""The annotation of a definition whose objects are being rewritten: its generation, and the last rewritten key."""


class Definition(msgspec.Struct, frozen=True):
    """The versions of a CustomResourceDefinition.

    Attributes:
        name: ``"websites.example.com"``.
        uid: Tells it from another one of this name.
        generation: Counts the changes of its spec.
        resource_version: The definition's, for updates.
        group: ``"example.com"``.
        plural: ``"websites"``.
        kind: ``"Website"``.
        namespaced: Whether its objects live in namespaces.
        storage: The version in which the server stores objects.
        served: A served version, the storage version if it is served.
        stored: ``status.storedVersions``: the versions in which objects may be stored.
        last_key: The last key that an interrupted migration of this generation has rewritten; ``""`` if there is none.
    """

    name: str
    uid: str
    generation: int
    resource_version: str
    group: str
    plural: str
    kind: str
    namespaced: bool
    storage: str
    served: str
    stored: tuple[str, ...]
    last_key: str

    @classmethod
    def read(cls, definition: Object) -> Definition:
        """Return the versions of a definition.

        Raises:
            ConfigError: It is being deleted, or no version is served.
        """
        metadata, spec = definition["metadata"], definition["spec"]
        name, generation = metadata["name"], int(metadata.get("generation") or 0)
        if since := metadata.get("deletionTimestamp"):
            raise ConfigError(
                f"{name} is being deleted since {since}, with its objects: there is nothing to migrate"
            )
        storage = next(version["name"] for version in spec["versions"] if version["storage"])
        served = [version["name"] for version in spec["versions"] if version["served"]]
        if not served:
            raise ConfigError(
                f"{name} has no served version, so its objects cannot be read: serve one of them"
            )
        annotations = metadata.get("annotations") or {}
        of_generation, _, key = str(annotations.get(PROGRESS, "")).partition(" ")
        return cls(
            name=name,
            uid=metadata["uid"],
            generation=generation,
            resource_version=metadata["resourceVersion"],
            group=spec["group"],
            plural=spec["names"]["plural"],
            kind=spec["names"]["kind"],
            namespaced=spec["scope"] != "Cluster",
            storage=storage,
            served=storage if storage in served else served[-1],
            stored=tuple((definition.get("status") or {}).get("storedVersions") or ()),
            last_key=key if of_generation == str(generation) else "",
        )

    @property
    def is_migrated(self) -> bool:
        """Whether all objects are known to be stored in the storage version."""
        return self.stored == (self.storage,)

    def require_unchanged(self, before: Definition) -> None:
        """Check that this is still the definition with which a migration began.

        Raises:
            ConfigError: It has changed, so that objects may be stored in other versions again.
        """
        if (self.uid, self.generation) == (before.uid, before.generation):
            return
        what = "was created again"
        if self.uid == before.uid:
            what = f"has changed, from generation {before.generation} to {self.generation}"
        if self.storage != before.storage:
            what += f", and its storage version from {before.storage} to {self.storage}"
        raise ConfigError(
            f"{self.name} {what} during the migration: storedVersions stays {', '.join(self.stored)}. Run the "
            "migration again when the definition no longer changes"
        )


def progress_patch(generation: int, key: str) -> Object:
    """Return the merge patch of a definition that remembers the last rewritten key; with ``""`` it forgets it."""
    return {"metadata": {"annotations": {PROGRESS: f"{generation} {key}" if key else None}}}


def stored_patch(definition: Definition) -> Object:
    """Return the merge patch of a status after which only the storage version is a stored version."""
    return {
        "metadata": {"resourceVersion": definition.resource_version},
        "status": {"storedVersions": [definition.storage]},
    }
