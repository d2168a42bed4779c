"""Users: who sends a request, as the reviews and `request.user` show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

ANONYMOUS = "system:anonymous"
"""The user of a request without a known token."""

_SERVICE_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9][a-z0-9-]*):([a-z0-9][a-z0-9.-]*)")
_AUTHENTICATED = "system:authenticated"
_UNAUTHENTICATED = "system:unauthenticated"


class User(NamedTuple):
    """A user who sends requests.

    Attributes:
        name: The name.
        groups: The groups.
        uid: The uid, if any.
        extra: What else the authenticator knows.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def info(self) -> Object:
        """The `userInfo` of a review."""
        info: Object = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {name: list(values) for name, values in self.extra.items()}
        return info


def user_of(
    name: str,
    groups: tuple[str, ...] = (),
    uid: str = "",
    extra: Mapping[str, tuple[str, ...]] | None = None,
) -> User:
    """Return a user with the groups that the real server adds to the given ones."""
    account = _SERVICE_ACCOUNT.fullmatch(name)
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[1]}")
    if not {_AUTHENTICATED, _UNAUTHENTICATED} & {*groups}:
        groups = (*groups, _UNAUTHENTICATED if name == ANONYMOUS else _AUTHENTICATED)
    return User(name, groups, uid, extra or {})
