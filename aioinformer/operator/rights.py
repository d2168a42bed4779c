"""The rights that an operator needs, as rules of a Role name them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..errors import ConfigError
from ..objects.api_resources import APIResource

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")

EVENTS = APIResource("events.k8s.io/v1", "events", "Event", True)
LEASES = APIResource("coordination.k8s.io/v1", "leases", "Lease", True)

ELECT = ("get", "create", "update")
"""What a LeaderElector does with its Lease."""

_ORDER = (*READ, *WRITE, "deletecollection")


class Right(msgspec.Struct, frozen=True):
    """What an operator may do with one resource.

    Attributes:
        group: The API group; ``""`` for the core group.
        plural: ``"deployments"``.
        namespaced: Whether its objects live in namespaces.
        verbs: ``("get", "list", "watch")``.
        subresource: ``"status"``; ``""`` for the objects themselves.
    """

    group: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresource: str = ""

    @classmethod
    def of(cls, resource: APIResource, verbs: Iterable[str], subresource: str = "") -> Right:
        """Return the right to use a resource by some verbs.

        Raises:
            ConfigError: The verbs are a string, or there are none.
        """
        if isinstance(verbs, str) or not (verbs := tuple(verbs)):
            raise ConfigError(
                f"{resource.plural}: verbs must be a tuple such as ('get', 'list'), not {verbs!r}"
            )
        return cls(resource.group, resource.plural, resource.namespaced, verbs, subresource)

    @property
    def resource(self) -> str:
        """The resource as a rule names it: ``"pods"``, ``"pods/status"``."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    def __str__(self) -> str:
        of_group = f".{self.group}" if self.group else ""
        return f"{', '.join(self.verbs)} {self.resource}{of_group}"


def merge(rights: Iterable[Right]) -> list[Right]:
    """Return one right for each resource, in a fixed order. It is cluster-scoped if one of its rights says so."""
    rights = list(rights)
    cluster_scoped = {(right.group, right.plural) for right in rights if not right.namespaced}
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.plural, right.subresource), set()).update(right.verbs)
    return [
        Right(
            group,
            plural,
            (group, plural) not in cluster_scoped,
            tuple(sorted(verbs[group, plural, subresource], key=_rank)),
            subresource,
        )
        for group, plural, subresource in sorted(verbs)
    ]


def _rank(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)
