"""What users do with Caves and Backends, and what they expect to come of it, whatever becomes of the operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from .mortal import Death
from .objects import PROTECTION, Object, backend, cave, csi_pod, finalizers, is_gated

BACKUP = "example.com/backup"
"""The finalizer of another controller."""

POINTS = 200
_REQUESTS = 58
"""About as many as the operator makes in the story."""


def death_at(seed: int) -> Death:
    """Each of the operator's requests in turn, lost on its way there and on its way back."""
    return Death(1 + seed // 2 % _REQUESTS, arrives=bool(seed % 2))


class Hands(ABC):
    """A user's, in one namespace."""

    @abstractmethod
    async def create(self, plural: str, obj: Object) -> None: ...

    @abstractmethod
    async def patch(self, plural: str, name: str, patch: Object) -> None: ...

    @abstractmethod
    async def json_patch(self, plural: str, name: str, patch: list[Object]) -> None: ...

    @abstractmethod
    async def delete(self, plural: str, name: str) -> None: ...

    @abstractmethod
    async def list(self, plural: str) -> dict[str, Object]:
        """By name."""

    @abstractmethod
    async def eventually(
        self, what: str, plural: str, condition: Callable[[dict[str, Object]], object]
    ) -> None:
        """Wait until the objects by name are as they should be."""

    @abstractmethod
    async def a_while(self) -> None:
        """Some time passes."""


async def before(hands: Hands) -> None:
    """Before there was an operator."""
    await hands.create("caves", cave("old"))
    await hands.create("pods", csi_pod("legacy", "old"))


async def story(hands: Hands) -> None:
    """With an operator."""
    await hands.create("caves", cave("deep"))
    await hands.create("backends", backend("web", "deep", 2))
    await hands.eventually(
        "both Caves are protected, one adopted",
        "caves",
        lambda caves: all(PROTECTION in finalizers(caves[name]) for name in ("old", "deep")),
    )
    await hands.eventually("web runs", "pods", lambda pods: _count_running(pods, "web") == 2)
    await hands.eventually(
        "the status says so",
        "caves",
        lambda caves: caves["deep"].get("status") == {"phase": "Protected", "pods": 2},
    )
    await _others(hands, "deep", "add")

    await hands.delete("caves", "deep")
    await hands.delete("caves", "old")
    await hands.create("backends", backend("late", "deep"))
    await hands.eventually(
        "late waits",
        "backends",
        lambda backends: backends["late"].get("status") == {"phase": "WaitingForCave", "pods": 0},
    )
    await hands.eventually(
        "both Caves wait for their pods",
        "caves",
        lambda caves: (
            [caves[name].get("status") for name in ("deep", "old")]
            == [{"phase": "Releasing", "pods": pods} for pods in (2, 1)]
        ),
    )
    await hands.a_while()
    caves = await hands.list("caves")
    assert finalizers(caves["deep"]) == [PROTECTION, BACKUP]
    assert finalizers(caves["old"]) == [PROTECTION]

    await hands.delete("pods", "legacy")
    await hands.eventually("old goes", "caves", lambda caves: "old" not in caves)
    await hands.patch("backends", "web", {"spec": {"replicas": 1}})
    await hands.eventually("web shrinks", "pods", lambda pods: _count_running(pods, "web") == 1)
    await hands.delete("backends", "web")
    await hands.eventually(
        "deep is released, and kept by others", "caves", lambda caves: finalizers(caves["deep"]) == [BACKUP]
    )
    await hands.a_while()
    assert finalizers((await hands.list("caves"))["deep"]) == [BACKUP]
    await _others(hands, "deep", "remove")
    await hands.eventually("deep goes", "caves", lambda caves: "deep" not in caves)

    await hands.create("caves", cave("deep"))
    await hands.eventually(
        "late has what it waited for", "pods", lambda pods: _count_running(pods, "late") == 1
    )
    await hands.delete("caves", "deep")
    await hands.delete("backends", "late")
    await hands.eventually("it is not needed", "caves", lambda caves: not caves)
    await hands.eventually("nothing is left", "pods", lambda pods: not pods)


def _count_running(pods: dict[str, Object], of: str) -> int:
    return sum(name.startswith(f"{of}-") and not is_gated(pod) for name, pod in pods.items())


async def _others(hands: Hands, name: str, op: str) -> None:
    """What the owner of the other finalizer does."""
    place = finalizers((await hands.list("caves"))[name])
    if op == "add":
        patch: list[Object] = [{"op": "add", "path": "/metadata/finalizers/-", "value": BACKUP}]
    else:
        path = f"/metadata/finalizers/{place.index(BACKUP)}"
        patch = [{"op": "test", "path": path, "value": BACKUP}, {"op": "remove", "path": path}]
    await hands.json_patch("caves", name, patch)
