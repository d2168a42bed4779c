"""Requests, with verb, resource, namespace and name parsed from the method and the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aioinformer.testing.errors import bad_request
from aioinformer.testing.strconv import parse_int
from aioinformer.testing.users import ANONYMOUS, User

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")
"""The verbs of resources."""

_FALSE = frozenset(["0", "false"])


@dataclass(slots=True)
class Request:
    """A request to the server, as `server.requests` and the `matching` of faults see it.

    Attributes:
        method: The HTTP method.
        path: The path.
        query: The query parameters; for a repeated parameter the first value.
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; for a path without a
            resource the method in lower case.
        group: The API group; empty for the core group.
        version: The version.
        resource: The resource's plural name; empty for a path without a resource.
        namespace: The namespace, if any.
        name: The object's name, if any.
        subresource: The subresource, if any.
        user: The user: a name from the server's `users`, `"system:serviceaccount:NAMESPACE:NAME"` for a token of a
            service account, `"embedded"` for another accepted token, or `"system:anonymous"`; the impersonated user
            if the request has `Impersonate-User`.
        groups: The user's groups.
        uid: The user's uid, if any.
        extra: What else is known of the user.
        impersonator: The user who impersonates `user`, if any.
        status: The HTTP status of the answer; 0 before the answer, or if the connection was reset first.
        time: When it arrived, in seconds, by the server's `clock`.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user: str = ANONYMOUS
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    impersonator: str = ""
    status: int = 0
    time: float = 0.0

    def act_as(self, user: User) -> None:
        """Set the user, with groups, uid and extra."""
        self.user, self.groups, self.uid, self.extra = user

    @property
    def is_continue(self) -> bool:
        """True if it requests a further page of a list."""
        return bool(self.query.get("continue"))

    def about(self, resource: str | None) -> bool:
        """Return whether it is for a resource, such as `"pods"` or `"deployments.apps"`; None matches any."""
        return resource is None or resource in (self.resource, f"{self.resource}.{self.group}")

    def flag(self, name: str) -> bool | None:
        """Return a boolean parameter, or None if it is missing.

        As on the real server, every value except `false` and `0` is true.
        """
        value = self.query.get(name)
        return None if value is None else value.lower() not in _FALSE

    def number(self, name: str) -> int | None:
        """Return an integer parameter, or None if it is missing.

        Raises:
            StatusError: 400 for a value that is no integer.
        """
        value = self.query.get(name)
        if value is None:
            return None
        try:
            return parse_int(value)
        except ValueError as error:
            raise bad_request(str(error)) from error


def parse_request(method: str, path: str, query: Mapping[str, str]) -> Request:
    """Parse a request by the rules of the real server's RequestInfo."""
    request = Request(method, path, query)
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        request.version, rest = parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        request.group, request.version, rest = parts[1], parts[2], parts[3:]
    else:
        request.verb = method.lower()
        return request
    watching = rest[0] == "watch" and len(rest) > 1
    if watching:
        rest = rest[1:]
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (rest[2] in ("status", "finalize") and len(rest) == 3)
    ):
        request.namespace, rest = rest[1], rest[2:]
    request.resource = rest[0]
    request.name = rest[1] if len(rest) > 1 else ""
    request.subresource = "proxy" if rest[2:3] == ["proxy"] else "/".join(rest[2:])
    request.verb = _verb(request, watching)
    return request


def _verb(request: Request, watching: bool) -> str:
    named = bool(request.name)
    match request.method:
        case "GET":
            if watching or (not named and request.flag("watch")):
                return "watch"
            return "get" if named else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if named else "deletecollection"
        case _:
            return request.method.lower()
