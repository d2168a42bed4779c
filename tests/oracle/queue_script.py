"""Random scripts for queues (``v030/queue`` and ``v036/queue`` read the same format)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

import msgspec

T = TypeVar("T")

Op = list[str]

KEYS = ("n/a", "n/b", "n/c", "m/a", "z")


class QueueScript(msgspec.Struct, frozen=True, omit_defaults=True):
    """A queue and the operations on it.

    Attributes:
        ops: ``add``, ``update``, ``delete`` (an object), ``replace`` (version, objects), ``resync``,
            ``bookmark`` (version), ``add-if-not-present`` (deltas), ``close``; ``nothing``;
            ``delete-as-it-is``: untransformed;
            ``pop``, ``pop_batch`` (how, count, keys): process the oldest items, do the next ``count`` operations
            inside the process function, with a key function that fails on the keys; ``drain`` (how) pops all.
            How: ``drop`` ignores the item, ``apply`` applies it to the store; either may end in ``-fail``,
            ``-requeue`` or ``-requeue-error`` for the error that it raises.
        delta: A DeltaFIFO, else a RealFIFO.
        controller: Let a Controller pop.
        retry: Its ``retry_on_error``.
        replaced: DeltaFIFO's ``emit_delta_type_replaced``.
        transform: Whether there is a transformer.
        known: The store's first objects; None for a queue without known objects.
        unreadable: Keys on which the store fails when the queue reads them.
        ghosts: Keys that the store lists without having them.
        is_async: Whether our process functions are coroutines.
        atomic, bookmarks, unlock, batch_size: RealFIFO's options.
    """

    ops: list[Op]
    delta: bool = False
    controller: bool = False
    retry: bool = False
    replaced: bool = False
    transform: bool = False
    known: list[str] | None = None
    unreadable: list[str] = []
    ghosts: list[str] = []
    is_async: bool = False
    atomic: bool = False
    bookmarks: bool = False
    unlock: bool = False
    batch_size: int = 1000


class Objects:
    """Makes random objects, with few keys and mostly growing versions."""

    def __init__(self, random: Random, marks: str = "", values: Sequence[str] = ()) -> None:
        self.random = random
        self.keys = KEYS[: random.randint(2, 5)]
        self._marks = marks
        self._values = values
        self._version = 0

    def key(self) -> str:
        return self.random.choice(self.keys)

    def version(self) -> str:
        chance = self.random.random()
        if chance < 0.8:
            self._version += 1
        elif chance < 0.9:
            return str(max(0, self._version - self.random.randint(1, 3)))
        elif chance > 0.99:
            return ""
        return str(self._version)

    def object(self, key: str | None = None) -> str:
        """Return an object; rarely one on which a function fails."""
        random = self.random
        text = f"{key or self.key()}@{self.version()}"
        if self._marks and random.random() < 0.08:
            return text + random.choice(self._marks)
        if self._values and random.random() < 0.8:
            text += "#" + ",".join(random.choices(self._values, k=random.choice((1, 1, 2, 3))))
        return text

    def draw_deleted(self) -> str:
        """Return an argument for a delete."""
        chance = self.random.random()
        if chance < 0.75:
            return self.object()
        return f"?{self.key()}" if chance < 0.85 else f"?{(key := self.key())}={self.object(key)}"

    def draw_list(self) -> list[str]:
        """Return the objects of a list: some keys, in any order, rarely twice or without metadata."""
        random = self.random
        chance = random.random()
        if chance < 0.07:
            return []
        keys = [key for key in self.keys if random.random() < 0.65]
        random.shuffle(keys)
        if chance > 0.9 and keys:
            keys.append(random.choice(keys))
        objects = [self.object(key) for key in keys]
        if 0.85 < chance < 0.88:
            objects.insert(random.randint(0, len(objects)), "-1")
        return objects


def _draw_weighted(random: Random, weights: dict[str, float]) -> Iterator[str]:
    names, shares = list(weights), list(weights.values())
    while True:
        yield from random.choices(names, shares, k=8)


def _common(random: Random, objects: Objects, transform: bool) -> tuple[list[str], list[str], list[str]]:
    """Return known objects, unreadable keys and ghosts."""
    known = [
        f"{key}@{random.randint(0, 2)}{'~' if transform else ''}"
        for key in objects.keys
        if random.random() < 0.4
    ]
    odd = random.random()
    unreadable = [objects.key()] if odd < 0.1 else []
    ghosts = [objects.key()] if 0.05 < odd < 0.15 else []
    return known, unreadable, ghosts


def _change(kind: str, objects: Objects) -> Op:
    """Return an operation that does not pop."""
    if kind in ("add", "update"):
        return [kind, objects.object() if objects.random.random() > 0.02 else "-1"]
    if kind == "delete":
        return [kind, objects.draw_deleted() if objects.random.random() > 0.02 else "-1"]
    if kind == "replace":
        return [kind, objects.version(), *objects.draw_list()]
    if kind == "bookmark":
        return [kind, objects.version()]
    return [kind]


def delta_script(random: Random, *, upstream_030: bool) -> QueueScript:
    """Return a script for a DeltaFIFO, for 0.36 without the methods that it removed."""
    transform = random.random() < 0.35
    objects = Objects(random, marks="!" if transform else "")
    known, unreadable, ghosts = _common(random, objects, transform)
    weights = {"add": 3, "update": 5, "delete": 5, "replace": 2.5, "resync": 2, "pop": 8, "close": 0.2}
    hows = {"apply": 8, "drop": 1, "drop-fail": 1, "apply-fail": 0.5}
    if upstream_030:
        weights["add-if-not-present"] = 1
        hows |= {"drop-requeue": 1, "apply-requeue": 0.7, "drop-requeue-error": 0.5}
    kinds, processes = _draw_weighted(random, weights), _draw_weighted(random, hows)
    ops: list[Op] = [["replace", "1", *objects.draw_list()]] if random.random() < 0.6 else []
    for _ in range(random.randint(2, 22)):
        match next(kinds):
            case "pop":
                ops.append(["pop", next(processes), "0"])
            case "add-if-not-present":
                ops.append(["add-if-not-present", *_deltas(random, objects, transform)])
            case kind:
                ops.append(_change(kind, objects))
    controller = upstream_030 and random.random() < 0.15
    if controller:
        ops = [op for op in ops if op[0] != "close"]
    elif random.random() < 0.9:
        ops += [["close"], ["drain", "apply"]]
    return QueueScript(
        ops,
        delta=True,
        controller=controller,
        retry=controller and random.random() < 0.6,
        replaced=random.random() < 0.7,
        transform=transform,
        known=known if random.random() < 0.85 else None,
        unreadable=unreadable,
        ghosts=ghosts,
        is_async=random.random() < 0.3,
    )


def _deltas(random: Random, objects: Objects, transform: bool) -> list[str]:
    key = objects.key()
    kinds = random.choices(
        ("Added", "Updated", "Deleted", "Replaced", "Sync"), k=random.choice((0, 1, 1, 2, 3))
    )
    mark = "~" if transform else ""
    return [f"{kind} {key}@{objects.version()}{mark}" for kind in kinds]


def real_script(random: Random) -> QueueScript:
    """Return a script for a RealFIFO, of any mode."""
    transform = random.random() < 0.35
    atomic = random.random() < 0.65
    unlock = atomic and random.random() < 0.5
    batch_size = 1000 if unlock else random.choice((1, 2, 3, 4, 1000))
    objects = Objects(random, marks="!" if transform else "")
    known, unreadable, ghosts = _common(random, objects, transform)
    weights = {"add": 4, "update": 5, "delete": 5, "replace": 2.5, "resync": 1.5, "pop": 4, "pop_batch": 5}
    weights |= {"bookmark": 1.5 if atomic else 0.1, "close": 0.2}
    hows = {"apply": 8, "drop": 1, "drop-fail": 1, "apply-fail": 0.5, "drop-requeue": 0.7}
    kinds, processes = _draw_weighted(random, weights), _draw_weighted(random, hows)
    ops: list[Op] = [["replace", "1", *objects.draw_list()]] if random.random() < 0.6 else []
    for _ in range(random.randint(2, 22)):
        kind = next(kinds)
        if not kind.startswith("pop"):
            ops.append(_change(kind, objects))
            continue
        how = next(processes)
        meanwhile = random.randint(1, 3) if unlock and random.random() < 0.3 and "requeue" not in how else 0
        broken = [objects.key()] if kind == "pop_batch" and not meanwhile and random.random() < 0.05 else []
        # A batch with a broken key may have two deltas of one key, which upstream applies wrongly.
        ops.append([kind, "drop" if broken else how, str(meanwhile), *broken])
    if random.random() < 0.9:
        ops += [["close"], ["drain", "apply"]]
    return QueueScript(
        ops,
        transform=transform,
        known=known,
        unreadable=unreadable,
        ghosts=ghosts,
        is_async=random.random() < 0.3,
        atomic=atomic,
        bookmarks=atomic and random.random() < 0.7,
        unlock=unlock,
        batch_size=batch_size,
    )


def smaller(script: QueueScript) -> Iterator[QueueScript]:
    """Yield smaller scripts: fewer operations, objects and options, and plainer objects."""
    replace = msgspec.structs.replace
    for ops in fewer(script.ops):
        yield replace(script, ops=ops)
    for at, op in enumerate(script.ops):
        for shorter in _simpler(op):
            yield replace(script, ops=[*script.ops[:at], shorter, *script.ops[at + 1 :]])
    for option in ("transform", "controller", "retry", "is_async", "unlock", "bookmarks"):
        needs_unlock = any(op[0].startswith("pop") and op[2] != "0" for op in script.ops)
        if getattr(script, option) and not (option == "unlock" and needs_unlock):
            yield replace(script, **{option: False})
    for option in ("unreadable", "ghosts", "known"):
        for items in fewer(getattr(script, option) or []):
            yield replace(script, **{option: items})


def fewer(items: list[T]) -> Iterator[list[T]]:
    """Yield a list without halves, quarters, ... of it."""
    size = len(items)
    while size:
        for begin in range(0, len(items), size):
            yield [*items[:begin], *items[begin + size :]]
        size //= 2


def _simpler(op: Op) -> Iterator[Op]:
    name, *args = op
    if name in ("replace", "add-if-not-present"):
        kept = 1 if name == "replace" else 0
        for items in fewer(args[kept:]):
            yield [name, *args[:kept], *items]
    if name in ("pop", "pop_batch"):
        if args[2:]:
            yield [name, *args[:2]]
        if args[1] != "0":
            yield [name, args[0], "0"]
        if args[0] not in ("drop", "apply"):
            yield [name, args[0].partition("-")[0], *args[1:]]
        if args[0].startswith("apply"):
            yield [name, args[0].replace("apply", "drop"), *args[1:]]
        if name == "pop_batch":
            yield ["pop", *args[:2]]
        return
    for at, arg in enumerate(args):
        plain = arg.translate({ord("!"): None, ord("*"): None})
        if plain != arg:
            yield [name, *args[:at], plain, *args[at + 1 :]]
