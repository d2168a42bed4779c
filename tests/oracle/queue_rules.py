"""Where client-go counts otherwise than we do: both rules, for the traces to be compared by."""

from __future__ import annotations

from aioinformer import DeletedFinalStateUnknown, KubeObject
from aioinformer.cache import BookmarkInfo, ReplacedAllInfo

from .queue_script import Op
from .queue_subject import Subject, Work


class Synced:
    """When a queue is synced, by client-go's rule and by ours.

    Upstream counts pops, also one that began before the initial list came, and putting back counts as a first verb;
    here each item of the initial list is awaited until it was worked off. It is the same until something is put
    back, or the initial list comes while something is processed.
    """

    def __init__(self) -> None:
        self.is_populated = False
        self.differs = False
        self._is_upstream_populated = False
        self._awaited: set[str] = set()  # keys in a DeltaFIFO, else numbers
        self._count = 0
        self._before_list = False

    def changed(self, subject: Subject, op: Op, outcome: str) -> None:
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

    def popped(self, subject: Subject, work: Work) -> bool:
        """Note a pop; whether it is of the initial list, as client-go says."""
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
        """What client-go must say where we say this, now that the two differ; nonsense if we are wrong."""
        if synced != ("synced" if self.is_populated and not self._awaited else "unsynced"):
            return f"not {synced} but awaiting {self._awaited}"
        return "synced" if self._is_upstream_populated and not self._count else "unsynced"


class StoreVersion:
    """The version of a store, by client-go's rule and by ours.

    Upstream's is that of the last object, even if it has none, and of a batch only if that does not end with a
    tombstone.
    """

    def __init__(self, subject: Subject) -> None:
        self._ours = self._upstream = subject.store.last_store_sync_resource_version

    def applied(self, work: Work) -> None:
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
        """What client-go's must be where ours is this; nonsense if we are wrong."""
        return self._upstream if version == self._ours else f"not {version} but {self._ours}"
