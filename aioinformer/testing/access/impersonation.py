"""Impersonation: a request acts as the user in its `Impersonate-*` headers, as `kubectl --as` sends them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from aioinformer.testing.requests import Request
from aioinformer.testing.users import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multidict import CIMultiDictProxy

_EXTRA = "impersonate-extra-"
_IDENTITY = "authentication.k8s.io"


def impersonated_user(headers: CIMultiDictProxy[str]) -> User | None:
    """Return the user that a request wants to act as, with no other groups than the headers name, or None.

    The name is empty if the headers have a group, uid or extra alone, which the server refuses.
    """
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            key = unquote(header[len(_EXTRA) :].lower())
            extra[key] = (*extra.get(key, ()), value)
    return User(name, groups, uid, extra) if name or uid or groups or extra else None


RESOURCES = frozenset(["users", "groups", "serviceaccounts", "uids", "userextras"])
"""The resources of the verb `impersonate`."""


def permissions(wanted: User, user: str) -> Iterator[Request]:
    """Yield what `user` must be permitted to do, as requests of the verb `impersonate`."""

    def request_for(resource: str, name: str, group: str = "") -> Request:
        verb = "impersonate"
        return Request("", "", verb=verb, group=group, version="v1", resource=resource, name=name, user=user)

    kind, *account = wanted.name.rsplit(":", 2)
    if kind == "system:serviceaccount" and len(account) == 2:
        yield replace(request_for("serviceaccounts", account[1]), namespace=account[0])
    else:
        yield request_for("users", wanted.name)
    for group in wanted.groups:
        yield request_for("groups", group)
    if wanted.uid:
        yield request_for("uids", wanted.uid, _IDENTITY)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(request_for("userextras", value, _IDENTITY), subresource=key)


def refused_verb(wanted: User, verb: str) -> str:
    """Return the verb that the real server names when it refuses to impersonate in a request of a verb."""
    modes = {"system:serviceaccount:": "serviceaccount", "system:node:": "arbitrary-node"}
    mode = next((mode for start, mode in modes.items() if wanted.name.startswith(start)), "user-info")
    return f"impersonate-on:{mode}:{verb}"
