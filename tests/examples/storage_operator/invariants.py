"""What must hold after every single change of the cluster."""

from __future__ import annotations

from collections import defaultdict

from .objects import PROTECTION, Object, finalizers, is_gated, mounts


class Invariants:
    """Told of all changes, in their order, it says which should never have happened.

    Attributes:
        violations: Those.
        released: How many Caves were let go.
        opened: How many pods were let begin.
    """

    def __init__(self) -> None:
        self._objects: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self.violations: list[str] = []
        self.released = 0
        self.opened = 0

    def check(self) -> None:
        """Raise if anything is wrong."""
        assert self.violations == []

    def observe(self, plural: str, obj: Object, *, gone: bool = False) -> None:
        """Note a change.

        Args:
            plural: Of what.
            obj: The object as it is; as it was, if it is gone.
            gone: Whether it is.
        """
        name, objects = obj["metadata"]["name"], self._objects[plural]
        old, new = objects.get(name), None if gone else obj
        if new is None:
            objects.pop(name, None)
        else:
            objects[name] = new
        if plural == "caves" and old is not None:
            self._observe_cave(old, new)
        elif plural == "pods" and old is not None:
            self._observe_pod(old, new)

    def _observe_cave(self, old: Object, new: Object | None) -> None:
        """A Cave that was protected when it was asked to go is not let go while a pod mounts it."""
        if not _is_going(old) or PROTECTION not in finalizers(old):
            return
        if new is not None and PROTECTION in finalizers(new):
            return
        self.released += 1
        pods = self._objects["pods"].items()
        volume = old["spec"]["volume"]
        if mounting := [name for name, pod in pods if volume in mounts(pod) and not is_gated(pod)]:
            self.violations.append(f"{old['metadata']['name']} was released while {mounting} mount it")

    def _observe_pod(self, old: Object, new: Object | None) -> None:
        """No pod begins where there is no Cave; none that may have begun is deleted while it is wanted."""
        name = old["metadata"]["name"]
        if new is not None and is_gated(old) and not is_gated(new):
            self.opened += 1
            volumes = {cave["spec"]["volume"] for cave in self._objects["caves"].values()}
            if not mounts(new) <= volumes:
                self.violations.append(f"{name} may begin, and there is no {mounts(new)}")
        begins_to_go = not _is_going(old) and (new is None or _is_going(new))
        if begins_to_go and not is_gated(old) and self._is_wanted(old):
            self.violations.append(f"{name} was deleted while it was wanted")

    def _is_wanted(self, pod: Object) -> bool:
        """Whether its Backend still says that there shall be such a pod."""
        owners = [owner["uid"] for owner in pod["metadata"].get("ownerReferences") or []]
        number = pod["metadata"]["name"].rpartition("-")[2]
        return any(
            backend["metadata"]["uid"] in owners
            and int(number) < backend["spec"]["replicas"]
            and not _is_going(backend)
            for backend in self._objects["backends"].values()
        )


def _is_going(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]
