"""Random scripts: a server's history, its responses, and handlers that are added and removed."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import msgspec

from .informer_script import Event, Failure, Object, Script, Step

NAMES = (("", "a"), ("x", "a"), ("x", "b"), ("y", "c"), ("y", "d"))
COLORS = ("red", "green", "blue", "")
PERIODS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 600.0)
HANDLER_PERIODS = (None, None, 0.0, 0.3, 1.0, 2.5, 7.0, 12.0, 25.0, 900.0)
WAITS = (0.05, 0.9, 1.0, 2.2, 5.0, 7.35, 12.5, 31.0)

EXPIRED = (
    Failure(code=410, reason="Expired"),
    Failure(code=410, reason="Gone"),
    Failure(code=410),
    Failure(code=410, reason="Strange"),
)
TOO_LARGE = (
    Failure(code=504, reason="Timeout", message="Too large resource version: 9", causes=[]),
    Failure(code=504, reason="Timeout", message="Too large", causes=["ResourceVersionTooLarge"]),
    Failure(code=500, reason="InternalError", causes=["ResourceVersionTooLarge"]),
    Failure(code=504, message="Too large resource version: 9", causes=["Other"]),
)
OVERLOADED = (
    Failure(code=429, reason="TooManyRequests"),
    Failure(code=429),
    Failure(code=429, reason="Strange"),
)
FAILED = (
    Failure(code=500, reason="InternalError"),
    Failure(code=500),
    Failure(code=403, reason="Forbidden"),
    Failure(code=504, reason="Timeout", message="Too large resource version: 9"),
    Failure(code=504, reason="Timeout", causes=[]),
    Failure(code=503, reason="ServiceUnavailable"),
)
REFUSED = Failure(kind="refused")
RESET = Failure(kind="reset")
NONSENSE = Failure(kind="nonsense")


def generate(random: Random, *, watch_lists: bool = False) -> Script:
    """Return a random script.

    Args:
        random: The source of randomness.
        watch_lists: Whether the informer may read streaming lists.
    """
    return _Generator(random, watch_lists and random.random() < 0.6).script()


class _Change(NamedTuple):
    version: int
    type: str
    object: Object


class _Generator:
    """Writes a script by guessing what the client waits for. A wrong guess gives a step that is not applied."""

    def __init__(self, random: Random, watch_list: bool) -> None:
        self.random = random
        self.watch_list = watch_list
        self.steps: list[Step] = []
        self.resync = random.choice(PERIODS) if random.random() < 0.35 else 0.0
        self.calm = bool(self.resync) and random.random() < 0.75
        self.version = random.choice((1, 7, 95))
        self.objects: dict[tuple[str, str], Object] = {}
        self.changes: list[_Change] = []
        self.past: list[tuple[int, list[Object]]] = []
        self.uids = 0
        self.answers = 0
        self.handlers = 0
        self.waits_for = (
            ""  # list, watch, stream; for streaming lists also initial (not open yet), initial stream
        )
        self.seen = 0  # the version that the client has read up to
        self.gathered: list[Object] = []  # the objects of an initial stream so far
        self.mutate(random.randrange(6))

    def script(self) -> Script:
        random = self.random
        for _ in range(random.choice((0, 1, 1, 2))):
            self.handle()
        for _ in range(random.choice((6, 15, 15, 30, 45))):
            self.step()
        if random.random() < 0.3:
            self.steps.append(Step("stop"))
            for _ in range(random.randrange(4)):
                self.handle()
        return Script(
            self.steps,
            self.resync,
            transform=random.random() < 0.2,
            watch_list=self.watch_list,
            indexes=random.choice(([], ["color"], ["color", "letters"])),
        )

    def step(self) -> None:
        random = self.random
        chance = random.random()
        if chance < 0.22:
            self.handle()
        elif chance < (0.5 if self.resync else 0.25):
            self.steps.append(Step("wait", seconds=random.choice(WAITS)))
        elif not self.waits_for:
            self.steps.append(Step("start"))
            self.waits_for = "initial" if self.watch_list else "list"
            if self.calm:
                self.answer()
        else:
            self.answer()

    def answer(self) -> None:
        """Write the server's next step."""
        match self.waits_for:
            case "list":
                self.list()
            case "initial":
                self.open_initial()
            case "initial stream":
                self.initial("events")
            case "watch":
                self.open()
            case _:
                self.stream("events")

    def relist(self) -> None:
        self.waits_for = "initial" if self.watch_list else "list"

    # -- handlers ------------------------------------------------------------------------------------------

    def handle(self) -> None:
        random = self.random
        chance = random.random()
        which = random.randrange(max(self.handlers, 1))
        if chance < 0.4:
            if self.handlers < 4:
                period = random.choice(HANDLER_PERIODS) if self.resync or random.random() < 0.2 else None
                self.steps.append(Step("add_handler", handler=self.handlers, resync=period))
                self.handlers += 1
        elif chance < 0.5:
            self.steps.append(Step("remove_handler", handler=which))
        elif chance < 0.7:
            self.steps.append(Step("hold", handler=which))
        elif chance < 0.9:
            self.steps.append(Step("release", handler=which))
        else:
            self.steps.append(Step("add_indexers", index=random.choice(("color", "letters"))))

    # -- the history ---------------------------------------------------------------------------------------

    def mutate(self, count: int) -> None:
        """Create, change, delete and create again."""
        random = self.random
        for _ in range(count):
            self.version += random.choice((1, 1, 3))
            name = random.choice(NAMES)
            known = self.objects.get(name)
            if known is None or random.random() < 0.1:
                self.uids += 1
                self.put("ADDED" if known is None else "MODIFIED", name, f"u{self.uids}")
            elif random.random() < 0.35:
                gone = msgspec.structs.replace(known, version=str(self.version))
                del self.objects[name]
                self.changes.append(_Change(self.version, "DELETED", gone))
                if random.random() < 0.4:
                    self.version += 1
                    self.uids += 1
                    self.put("ADDED", name, f"u{self.uids}")
            else:
                self.put("MODIFIED", name, known.uid)
            self.past.append((self.version, list(self.objects.values())))

    def put(self, kind: str, name: tuple[str, str], uid: str) -> None:
        made = Object(name[1], str(self.version), uid, self.random.choice(COLORS), namespace=name[0])
        self.objects[name] = made
        self.changes.append(_Change(self.version, kind, made))

    def via(self) -> str:
        """Return a name for the next response, so that traces distinguish copies of an object."""
        self.answers += 1
        return str(self.answers)

    # -- answers -------------------------------------------------------------------------------------------

    def list(self) -> None:
        """Answer a list, sometimes in pages."""
        random = self.random
        if not self.calm and random.random() < 0.25:
            failure = random.choice(
                (random.choice(EXPIRED), random.choice(TOO_LARGE), *OVERLOADED[:1], *FAILED, REFUSED, RESET)
            )
            self.steps.append(Step("list", error=failure))
            if failure not in (*EXPIRED, *TOO_LARGE):
                self.relist()
            return
        self.mutate(random.choice((0, 0, 1, 3)))
        version, items = self.version, list(self.objects.values())
        if self.past and random.random() < 0.05:  # from a stale cache
            version, items = random.choice(self.past)
        if random.random() < 0.5:
            random.shuffle(items)
        via = f"l{self.via()}"
        items = [msgspec.structs.replace(item, via=via) for item in items]
        if items and random.random() < 0.03:
            items.append(msgspec.structs.replace(random.choice(items), via=f"{via}.1"))
        page = 0
        while random.random() < 0.2:
            page += 1
            cut = random.randrange(len(items) + 1)
            self.steps.append(Step("list", items=items[:cut], version=str(version), token=f"{via} {page}"))
            if random.random() < 0.25 and not self.calm:
                self.steps.append(Step("list", error=random.choice((*EXPIRED, *FAILED))))
                return
            items = items[cut:]
        self.steps.append(Step("list", items=items, version=str(version)))
        self.seen = version
        self.waits_for = "watch"

    def open(self) -> None:
        """Answer a watch."""
        random = self.random
        if random.random() < 0.2:
            failure = random.choice((REFUSED, random.choice(OVERLOADED)))
            if not self.calm and random.random() < 0.6:
                failure = random.choice((random.choice(EXPIRED), random.choice(TOO_LARGE), *FAILED))
                self.relist()
                if random.random() < 0.03:
                    failure = RESET
            self.steps.append(Step("open", error=failure))
            return
        if random.random() < 0.4:
            self.stream("open")
        else:
            self.steps.append(Step("open"))
            self.waits_for = "stream"

    def open_initial(self) -> None:
        """Answer a WatchList."""
        random = self.random
        if not self.calm and random.random() < 0.2:
            failure = random.choice((REFUSED, random.choice((*OVERLOADED, *EXPIRED, *TOO_LARGE)), *FAILED))
            if random.random() < 0.02:
                failure = RESET
            self.steps.append(Step("open", error=failure))
            if failure in FAILED:
                self.waits_for = "list"
            return
        self.gathered = []
        self.initial("open")

    def initial(self, do: str) -> None:
        """Send initial events, sometimes the closing bookmark, sometimes a sudden end."""
        random = self.random
        self.mutate(random.choice((0, 0, 1, 3)))
        via = f"e{self.via()}"
        events: list[Event] = []
        wanted = list(self.objects.values())
        missing = [name for name in wanted if name not in self.gathered]
        for obj in missing[: random.randrange(8)]:
            events.append(_event("ADDED", obj, f"{via}.{len(events)}"))
            self.gathered.append(obj)
        for gone in [obj for obj in self.gathered if obj not in wanted]:
            changed = self.objects.get((gone.namespace, gone.name))
            self.gathered.remove(gone)
            if changed is None:
                events.append(_event("DELETED", gone, f"{via}.{len(events)}"))
        if random.random() < 0.1:
            events.append(self.oddity(f"{via}.{len(events)}"))
        if random.random() < 0.1:
            bookmark = Object("", str(self.version), "", via=via)
            events.append(Event("BOOKMARK", bookmark, closes=random.choice(("", "false"))))
        if self.calm or random.random() < 0.7:
            for new in [name for name in wanted if name not in self.gathered]:
                events.append(_event("ADDED", new, f"{via}.{len(events)}"))
            events.append(Event("BOOKMARK", Object("", str(self.version), "", via=via), closes="true"))
            self.steps.append(Step(do, events=events))
            self.seen = self.version
            self.waits_for = "stream"
            return
        self.waits_for = "initial stream"
        end = ""
        if random.random() < 0.4:
            if random.random() < 0.4 and (events or random.random() < 0.1):
                end = random.choice(("close", "cut"))
                self.waits_for = "initial"
            else:
                status = random.choice(
                    (random.choice((*OVERLOADED, *EXPIRED, *TOO_LARGE)), *FAILED, NONSENSE)
                )
                events.append(Event("ERROR", status=status))
                self.waits_for = "list" if status in (*FAILED, NONSENSE) else "initial"
        self.steps.append(Step(do, events=events, end=end))

    def stream(self, do: str) -> None:
        """Send events, and sometimes the end, on an open stream or on one that this step opens."""
        random = self.random
        self.mutate(random.choice((0, 0, 1, 1, 2, 4)))
        via = f"e{self.via()}"
        behind = [change for change in self.changes if change.version > self.seen]
        events: list[Event] = []
        for change in behind[: random.randrange(5)]:
            events.append(_event(change.type, change.object, f"{via}.{len(events)}"))
            self.seen = change.version
            if random.random() < 0.12:
                events.append(self.oddity(f"{via}.{len(events)}"))
        if random.random() < 0.12:
            events.append(self.oddity(f"{via}.{len(events)}"))
        if random.random() < 0.15:
            events.append(self.bookmark(via))
        end = ""
        self.waits_for = "stream"
        if random.random() < (0.1 if self.calm else 0.3):
            if self.calm or random.random() < 0.5:
                end = random.choice(("close", "cut"))
                if events or do == "events":
                    self.waits_for = "watch"
                elif self.calm:
                    end = ""
                else:
                    self.relist()
            else:
                status = random.choice(
                    (random.choice(EXPIRED), random.choice(OVERLOADED), *FAILED, *TOO_LARGE[:1], NONSENSE)
                )
                events.append(Event("ERROR", status=status))
                if status in OVERLOADED:
                    self.waits_for = "watch"
                else:
                    self.relist()
        self.steps.append(Step(do, events=events, end=end))

    def oddity(self, via: str) -> Event:
        """Return an event that a server should not send at this point."""
        random = self.random
        if not self.changes or random.random() < 0.2:
            return Event(random.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK")))
        change = random.choice(self.changes[-6:])
        return _event(random.choice((change.type, "ADDED", "MODIFIED", "DELETED")), change.object, via)

    def bookmark(self, via: str) -> Event:
        if self.random.random() < 0.5:
            behind = [change.version for change in self.changes if change.version > self.seen]
            self.seen = min(behind, default=self.version + 1) - 1
        closes = self.random.choice(("", "", "", "true", "false"))
        return Event("BOOKMARK", Object("", str(self.seen), "", via=via), closes=closes)


def _event(kind: str, obj: Object, via: str) -> Event:
    return Event(kind, msgspec.structs.replace(obj, via=via))
