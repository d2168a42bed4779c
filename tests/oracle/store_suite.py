"""The suite of stores: random scripts for an Indexer, played on both sides."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from aioinformer import Indexer, KubeObject
from aioinformer.cache import meta_namespace_index_func
from aioinformer.errors import IndexerConflictError, IndexFuncError, KeyFuncError, UnknownIndexError

from .build import QUEUE_V036
from .differences import Difference
from .listing import listing
from .program import traces
from .queue_objects import is_keyless, parse, show
from .queue_script import Objects, Op, fewer

INDEXES: tuple[str, ...] = ("values", "letters", "namespace")


class StoreScript(msgspec.Struct, frozen=True):
    """An indexer and the operations on it.

    Attributes:
        ops: ``add``, ``update``, ``delete``, ``get`` (an object), ``replace`` (version, objects), ``bookmark``
            (version), ``resync``; ``get-by-key`` (key); ``index`` (name, object), ``by-index``, ``index-keys``
            (name, value), ``list-index-func-values`` (name), ``add-indexers`` (names).
        indexes: The names of its first indexes.
        store: Selects the suite in the Go program.
    """

    ops: list[Op]
    indexes: list[str] = []
    store: bool = True


class StoreSuite:
    """Scripts for an indexer."""

    name = "indexer"
    build = QUEUE_V036
    script_type = StoreScript
    batch = 1000

    def __init__(self) -> None:
        self.met: Counter[Difference] = Counter()

    def generate(self, random: Random) -> StoreScript:
        objects = Objects(random, marks="*" if random.random() < 0.2 else "", values=("aa", "ab", "b", "c"))
        changes = {"add": 5, "update": 6, "delete": 5, "replace": 1.5, "bookmark": 0.5, "add-indexers": 1}
        reads = {
            "get": 1,
            "get-by-key": 1,
            "index": 2,
            "by-index": 2,
            "index-keys": 1,
            "list-index-func-values": 1,
        }
        weights = changes | reads | {"resync": 0.1}
        kinds = random.choices(list(weights), list(weights.values()), k=random.randint(2, 25))
        indexes = random.sample(INDEXES, random.randint(0, 3))
        return StoreScript([_op(kind, random, objects) for kind in kinds], indexes)

    def compare(self, scripts: Sequence[StoreScript]) -> list[str | None]:
        plays = [StorePlay(script) for script in scripts]
        answers = traces(self.build, [play.upstream for play in plays])
        for play in plays:
            self.met.update(play.differences)
        return [
            listing(play.script, play.lines, play.expected, theirs, play.differences)
            for play, theirs in zip(plays, answers, strict=True)
        ]

    def smaller(self, script: StoreScript) -> Iterator[StoreScript]:
        for ops in fewer(script.ops):
            yield msgspec.structs.replace(script, ops=ops)
        for indexes in fewer(script.indexes):
            yield msgspec.structs.replace(script, indexes=indexes)
        for at, (name, *args) in enumerate(script.ops):
            for shorter in fewer(args[1:]) if name in ("replace", "add-indexers") else ():
                op = [name, args[0], *shorter]
                yield msgspec.structs.replace(script, ops=[*script.ops[:at], op, *script.ops[at + 1 :]])


def _op(kind: str, random: Random, objects: Objects) -> Op:
    name = random.choice((*INDEXES, "unknown") if random.random() < 0.2 else INDEXES)
    value = random.choice(("aa", "ab", "b", "c", "a", "n", "m", ""))
    match kind:
        case "add" | "update" | "get":
            return [kind, objects.object() if random.random() > 0.02 else "-1"]
        case "delete":
            return [kind, objects.draw_deleted() if random.random() > 0.02 else "-1"]
        case "replace":
            return [kind, objects.version(), *objects.draw_list()]
        case "bookmark":
            return [kind, objects.version()]
        case "get-by-key":
            return [kind, objects.key()]
        case "index":
            return [kind, name, objects.object()]
        case "by-index" | "index-keys":
            return [kind, name, value]
        case "list-index-func-values":
            return [kind, name]
        case "add-indexers":
            return [kind, *random.sample(INDEXES, random.choice((1, 1, 2)))]
    return [kind]


class StorePlay:
    """A script that was played with our indexer; see queue_play.Play for the attributes."""

    def __init__(self, script: StoreScript) -> None:
        self.script = script
        self.lines: list[str] = []
        self.expected: list[str] = []
        self.differences: set[Difference] = set()
        self._store: Indexer[Any] = Indexer(indexers={name: _index_func(name) for name in script.indexes})
        self._upstream_ops: list[Op] = []
        self._version = self._upstream_version = ""
        try:
            self._run()
        except Exception:  # reported like any other difference
            self.lines.append(traceback.format_exc())
            self.expected.append("no crash")

    def _run(self) -> None:
        for op in self.script.ops:
            asked, wanted, said = self._translate(op)
            self._upstream_ops.append(asked)
            outcome = self._do(op)
            self._note(op, outcome, said if outcome == wanted else outcome)

    @property
    def upstream(self) -> StoreScript:
        return msgspec.structs.replace(self.script, ops=self._upstream_ops)

    def _note(self, op: Op, ours: str, theirs: str) -> None:
        store = self._store
        objects = " ".join([show(store.get_by_key(key)) for key in sorted(store.list_keys())])
        indexes = ""
        for name in sorted(store.indexers):
            values = sorted(store.list_index_func_values(name))
            listed = [f'"{value}": {" ".join(store.index_keys(name, value))}' for value in values]
            indexes += f" | {name} {{{'; '.join(listed)}}}"
        version = store.last_store_sync_resource_version
        self.lines.append(f"{ours} | {objects} | {version}{indexes}")
        self.expected.append(f"{theirs} | {objects} | {self._version_upstream(op, version)}{indexes}")

    def _do(self, op: Op) -> str:
        """Do an operation; return its outcome and its result."""
        name, *args = op
        try:
            result = self._call(name, args)
        except KeyFuncError:
            return "key nil" if name == "get" else "key"
        except IndexFuncError:
            return "index"
        except UnknownIndexError:
            return "unknown"
        except IndexerConflictError:
            return "conflict"
        return f"ok {result}" if name in _FINDING else "ok"

    def _call(self, name: str, args: list[str]) -> str:
        store = self._store
        match name:
            case "add":
                store.add(parse(args[0]))
            case "update":
                store.update(parse(args[0]))
            case "delete":
                store.delete(parse(args[0]))
            case "replace":
                store.replace([parse(text) for text in args[1:]], args[0])
            case "bookmark":
                store.bookmark(args[0])
            case "resync":
                store.resync()
            case "get":
                return show(store.get(parse(args[0])))
            case "get-by-key":
                return show(store.get_by_key(args[0]))
            case "index":
                return " ".join(sorted(map(show, store.index(args[0], parse(args[1])))))
            case "by-index":
                return " ".join(sorted(map(show, store.by_index(*args))))
            case "index-keys":
                return " ".join(store.index_keys(*args))
            case "list-index-func-values":
                return " ".join(sorted(store.list_index_func_values(*args)))
            case "add-indexers":
                store.add_indexers({name: _index_func(name) for name in args})
            case _:
                raise AssertionError(f"no such operation: {name}")
        return ""

    def _translate(self, op: Op) -> tuple[Op, str, str]:
        """Return the operation for client-go; and its result where ours is ``what``."""
        name, *args = op
        if name == "replace" and any(map(is_keyless, args[1:])):
            self.differences.add(Difference.BAD_OBJECT)
            good = [text for text in args[1:] if not is_keyless(text)]
            can_fail = any(index != "namespace" for index in self._store.indexers)
            first = next(text for text in args[1:] if is_keyless(text) or ("*" in text and can_fail))
            return ["replace", args[0], *good], "key" if is_keyless(first) else "index", "ok"
        if name == "list-index-func-values" and args[0] not in self._store.indexers:
            self.differences.add(Difference.UNKNOWN_INDEX)
            return op, "unknown", "ok "
        self.differences.update([Difference.INDEX_FUNC] if any("*" in text for text in args) else [])
        return op, "index", "ok " if name == "index" else "ok"

    def _version_upstream(self, op: Op, ours: str) -> str:
        """Return client-go's version where ours is this: an object without a version clears it."""
        name, *args = op
        if name in ("add", "update", "delete") and isinstance(obj := parse(args[0]), KubeObject):
            self._upstream_version = obj.resource_version
            self._version = obj.resource_version or self._version
        elif name in ("replace", "bookmark"):
            self._version = self._upstream_version = args[0]
        if self._version != self._upstream_version:
            self.differences.add(Difference.STORE_VERSION)
        return self._upstream_version if ours == self._version else f"not {ours} but {self._version}"


_FINDING = ("get", "get-by-key", "index", "by-index", "index-keys", "list-index-func-values")


def _index_func(name: str) -> Any:
    """Return the index function of a name, as in the Go program; it fails on objects with the mark."""
    if name == "namespace":
        return meta_namespace_index_func

    def values_of(obj: KubeObject) -> list[str]:
        head, _, listed = obj.uid.partition("#")
        if "*" in head:
            raise ValueError("the index function failed")
        values = listed.split(",") if listed else []
        return values if name == "values" else [value[:1] for value in values]

    return values_of


INDEXER = StoreSuite()
