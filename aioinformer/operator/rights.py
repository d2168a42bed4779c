"""The rights that an operator needs, as rules of a Role name them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..errors import ConfigError
from ..objects.api_resources import APIResource

READ = ("get", "list", "watch")
APPLY = ("create", "patch")
"""What server-side apply needs: create, for an object that is missing."""
WRITE = ("create", "update", "patch", "delete")

EVENTS = APIResource("events.k8s.io/v1", "events", "Event", True)
LEASES = APIResource("coordination.k8s.io/v1", "leases", "Lease", True)

ELECT = ("get", "create", "update")
"""What a LeaderElector does with its Lease."""

SHARE = ("get", "list", "create", "update", "delete")
"""What a Sharding does with its Leases."""

TOKEN_REVIEWS = APIResource("authentication.k8s.io/v1", "tokenreviews", "TokenReview", False)
ACCESS_REVIEWS = APIResource("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", False)

_ORDER = (*READ, *WRITE, "deletecollection")


class Right(msgspec.Struct, frozen=True):
    """What an operator may do with one resource.

    Attributes:
        group: The API group; ``""`` for the core group.
        plural: ``"deployments"``.
        namespaced: Whether its objects live in namespaces.
        verbs: ``("get", "list", "watch")``.
        subresource: ``"status"``; ``""`` for the objects themselves.
        names: The names of the objects; ``()`` for all. They do not limit ``create``: a rule cannot name what is new.
    """

    group: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, resource: APIResource, verbs: Iterable[str], subresource: str = "", names: Iterable[str] = ()
    ) -> Right:
        """Return the right to use a resource by some verbs.

        Raises:
            ConfigError: The verbs are a string, or there are none.
        """
        if isinstance(verbs, str) or not (verbs := tuple(verbs)):
            raise ConfigError(
                f"{resource.plural}: verbs must be a tuple such as ('get', 'list'), not {verbs!r}"
            )
        return cls(resource.group, resource.plural, resource.namespaced, verbs, subresource, tuple(names))

    @property
    def resource(self) -> str:
        """The resource as a rule names it: ``"pods"``, ``"pods/status"``."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    def __str__(self) -> str:
        of_group = f".{self.group}" if self.group else ""
        of_names = f" {'|'.join(self.names)}" if self.names else ""
        return f"{', '.join(self.verbs)} {self.resource}{of_group}{of_names}"


def split_names(right: Right) -> list[Right]:
    """Return a right as rules of a Role can express it: what creates objects is not limited to names."""
    if not right.names:
        return [right]
    parts = []
    if "create" in right.verbs:
        parts.append(msgspec.structs.replace(right, verbs=("create",), names=()))
    if limited := tuple(verb for verb in right.verbs if verb != "create"):
        parts.append(msgspec.structs.replace(right, verbs=limited))
    return parts


def merge(rights: Iterable[Right]) -> list[Right]:
    """Return one right for each resource and its names, in a fixed order.

    It is cluster-scoped if one of the resource's rights says so.
    """
    rights = list(rights)
    cluster_scoped = {(right.group, right.plural) for right in rights if not right.namespaced}
    verbs: dict[tuple[str, str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.plural, right.subresource, right.names), set()).update(
            right.verbs
        )
    return [
        Right(
            group,
            plural,
            (group, plural) not in cluster_scoped,
            tuple(sorted(verbs[group, plural, subresource, names], key=_rank)),
            subresource,
            names,
        )
        for group, plural, subresource, names in sorted(verbs)
    ]


def _rank(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)


REVIEW_TOKENS = (Right.of(TOKEN_REVIEWS, ("create",)), Right.of(ACCESS_REVIEWS, ("create",)))
"""What ``--metrics-auth`` needs."""
