"""Both rules, client-go's and ours, for values that the two compute differently."""

from __future__ import annotations

from aioinformer import DeletedFinalStateUnknown, KubeObject
from aioinformer.cache import BookmarkInfo, ReplacedAllInfo

from .queue_script import Op
from .queue_subject import Subject, Work


class Synced:
    """When a queue has synced, by client-go's rule and by ours.

    Upstream counts pops, including a pop that started before the initial list, and putting an item back counts as a
    first method call. Here each item of the initial list must be processed. The rules agree until an item is put back,
    or the initial list arrives while an item is processed.
    """

    def __init__(self) -> None:
        self.is_populated = False
        self.differs = False
        self._is_upstream_populated = False
        self._awaited: set[str] = set()  # keys in a DeltaFIFO, else numbers
        self._count = 0
        self._before_list = False

    def record_change(self, subject: Subject, op: Op, outcome: str) -> None:
        name = op[0]
        if name in ("resync", "bookmark", "close") or (outcome == "key" and name != "replace"):
            return
        if name == "replace":
            queued = (
                subject.delta.list_keys()
                if subject.delta is not None
                else [*map(str, range(len(subject.fifo)))]
            )
            if not self.is_populated:
                self._awaited = set(queued)
                self._before_list = subject.real is not None and subject.is_processing
                self.differs |= self._before_list
            if not self._is_upstream_populated:
                self._count = len(queued)
        self.is_populated = self._is_upstream_populated = True

    def record_pop(self, subject: Subject, work: Work) -> bool:
        """Record a pop; return whether client-go counts it as part of the initial list."""
        is_upstream_synced = self._is_upstream_populated and not self._count
        upstream_initial = not is_upstream_synced if self.differs else work.is_in_initial_list
        self._count = max(0, self._count - (len(work.deltas) if subject.delta is None else 1))
        if subject.delta is None:
            for _ in range(0 if self._before_list else len(work.deltas)):
                self._awaited.discard(str(len(self._awaited) - 1))
            self._before_list = False
            return upstream_initial
        key = subject.delta.key_of(work.deltas)
        if not work.is_put_back:
            self._awaited.discard(key)
        elif key in self._awaited or not self._is_upstream_populated:
            self.differs = self._is_upstream_populated = True
        return upstream_initial

    def upstream(self, synced: str) -> str:
        """Return client-go's value where ours is this and the two differ; an impossible value if ours is wrong."""
        if synced != ("synced" if self.is_populated and not self._awaited else "unsynced"):
            return f"not {synced} but awaiting {self._awaited}"
        return "synced" if self._is_upstream_populated and not self._count else "unsynced"


class StoreVersion:
    """The version of a store, by client-go's rule and by ours.

    Upstream takes the last object's version, even if it is empty, and a batch's only if the batch does not end with a
    tombstone.
    """

    def __init__(self, subject: Subject) -> None:
        self._ours = self._upstream = subject.store.last_store_sync_resource_version

    def record_applied(self, work: Work) -> None:
        before = self._upstream
        for delta in work.deltas:
            match delta.object:
                case ReplacedAllInfo(version) | BookmarkInfo(version):
                    self._ours = self._upstream = version
                case KubeObject():
                    self._upstream = delta.object.resource_version
                    self._ours = self._upstream or self._ours
        if work.is_batch and isinstance(work.deltas[-1].object, DeletedFinalStateUnknown):
            self._upstream = before

    def upstream(self, version: str) -> str:
        """Return client-go's version where ours is this; an impossible value if ours is wrong."""
        return self._upstream if version == self._ours else f"not {version} but {self._ours}"
