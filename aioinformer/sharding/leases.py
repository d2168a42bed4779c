"""The Leases of a Sharding: one of each replica, and one with the table of owners."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import anyio
from msgspec.structs import replace

from ..client import Client
from ..errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    NotFoundError,
    TransportError,
)
from ..resources import Resource
from .members import Members
from .table import OWNERS, Table

logger = logging.getLogger(__name__)

LABEL_NAME = "aioinformer.dev/sharding"
"""The label of all Leases of one Sharding; its value is the Sharding's name."""


def table_name_of(name: str) -> str:
    """Return the name of the Lease with the table of owners.

    Args:
        name: The Sharding's.
    """
    return f"{name}-slots"


def replica_names_of(name: str) -> re.Pattern[str]:
    """Return what the names of the replicas' Leases match."""
    return re.compile(rf"{re.escape(name)}-[0-9a-f]{{12}}")


class Leases:
    """Reads and writes the Leases of one Sharding, and remembers what it read last.

    Args:
        client: Of the server.
        name: The Sharding's name.
        namespace: The Leases' namespace.
        table: The table until the first one is read: slots and key are those of this replica.
        members: The replicas.
        timeout: Seconds for a request.
        reads: Returns the primary collections of this replica.

    Attributes:
        table: The table of owners as it was last read or written.
        members: The replicas, and when their Leases expire.
        asked_at: The loop time of the last read.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        *,
        table: Table,
        members: Members,
        timeout: float,
        reads: Callable[[], tuple[str, ...]],
    ) -> None:
        self.table = table
        self.members = members
        self.asked_at = 0.0
        self.table_name = table_name_of(name)
        self.table_key = f"{namespace}/{self.table_name}"
        self._name = name
        self._namespace = namespace
        self._slots, self._key = table.slots, table.key
        self._timeout = timeout
        self._reads = reads
        self._other_reads: tuple[str, ...] = ()
        self._replica_names = replica_names_of(name)
        self._leases = Resource(
            client, "coordination.k8s.io/v1", "leases", dict, kind="Lease", timeout=timeout
        )
        self._listed: dict[str, Mapping[str, Any]] = {}

    @property
    def has_table(self) -> bool:
        """Whether the Lease of the table existed at the last read."""
        return self.table_name in self._listed

    async def read(self, asked_at: float) -> None:
        """List all Leases.

        Args:
            asked_at: The loop time.

        Raises:
            ConfigError: Other replicas have another number of slots or another key.
            AioInformerError: The Leases or the table cannot be read.
        """
        listed: list[Any] | None = None
        with anyio.move_on_after(self._timeout):
            listed = await self._leases.list(self._namespace, label_selector=f"{LABEL_NAME}={self._name}")
        if listed is None:
            raise TransportError(
                f"the Leases of {self._name} in {self._namespace} were not listed within {self._timeout:g} s"
            )
        leases = {lease["metadata"]["name"]: lease for lease in listed}
        table = leases.pop(self.table_name, None)
        leases = {name: lease for name, lease in leases.items() if self._replica_names.fullmatch(name)}
        self._listed = leases if table is None else {**leases, self.table_name: table}
        if table is None and self.table.members:
            logger.warning(
                "the Lease %s was deleted; it is written again as it was last read", self.table_key
            )
        else:
            self.table = Table.of(table or {}, self._slots, self._key)
            self._compare_reads(self.table.reads)
        specs = {name: lease.get("spec") or {} for name, lease in leases.items()}
        self.members.observe(specs, self.table.members, asked_at)
        self.asked_at = asked_at

    def _compare_reads(self, reads: tuple[str, ...]) -> None:
        """Warn of another program with the same name: its replicas would leave this program's objects alone."""
        if reads == self._other_reads:
            return
        self._other_reads = reads
        own = self._reads()
        if reads and own and not set(reads) & set(own):
            logger.warning(
                "a replica with the table of owners %s reads %s, and this one reads %s. If they are different "
                "programs, give each a name of its own: in slots of the other program no object of this one is "
                "processed",
                self.table_key, ", ".join(reads), ", ".join(own),
            )  # fmt: skip

    async def write(self, table: Table) -> bool:
        """Write the table over the version that was read last; return False if another replica was first.

        Raises:
            ConfigError: The Lease is another program's.
            AioInformerError: The request failed.
        """
        annotations = {OWNERS: replace(table, key=self._key, reads=self._reads()).annotation()}
        lease = self._listed.get(self.table_name)
        try:
            if lease is None:
                metadata: dict[str, Any] = {
                    "name": self.table_name, "namespace": self._namespace,
                    "labels": {LABEL_NAME: self._name}, "annotations": annotations,
                }  # fmt: skip
                await self._leases.create({"metadata": metadata, "spec": {}})
            else:
                metadata = dict(lease["metadata"])
                metadata["annotations"] = (metadata.get("annotations") or {}) | annotations
                await self._leases.update({**lease, "metadata": metadata})
        except AlreadyExistsError:
            await self._require_own_table()
            return False
        except (ConflictError, NotFoundError):
            return False
        self.table = table
        return True

    async def _require_own_table(self) -> None:
        """Check that the Lease that exists is that of this Sharding, and no other program's."""
        with suppress(NotFoundError):
            lease = await self._leases.get(self.table_key)
            labels = lease["metadata"].get("labels") or {}
            if labels.get(LABEL_NAME) != self._name:
                raise ConfigError(
                    f"the Lease {self.table_key} exists and lacks the label {LABEL_NAME}={self._name}: another program "
                    "uses it, so give this Sharding another name; or restore the label"
                )

    async def remove_dead(self, alive: Collection[str], longer_than: float) -> None:
        """Delete the Lease of one replica that is gone for so many seconds and owns nothing."""
        for name, lease in self._listed.items():
            if name == self.table_name or name in alive or name in self.table.members:
                continue
            if self.members.is_gone_for(name, self.asked_at, longer_than):
                with suppress(ConflictError, NotFoundError):
                    await self.delete(name, lease["metadata"]["resourceVersion"])
                return

    async def delete(self, identity: str, resource_version: str | None = None) -> None:
        """Delete a replica's Lease. Raises as Resource.delete."""
        await self._leases.delete(f"{self._namespace}/{identity}", resource_version=resource_version)
