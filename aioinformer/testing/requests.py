"""What a request asks for: verb, resource, namespace, name, read off the method and the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aioinformer.testing.errors import bad_request

ANONYMOUS = "system:anonymous"
"""Who asks without a token that is known."""

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""What can be asked of a resource."""

_FALSE = frozenset(["0", "false"])


@dataclass(slots=True)
class Request:
    """One request to the server, as the log of requests keeps it and as faults are matched with it.

    Attributes:
        method: The HTTP method.
        path: The path.
        query: The query's parameters; of repeated ones the first.
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; for what is no
            resource the method in lower case.
        group: The API group; empty for the core group.
        version: The version.
        resource: The resource's plural name; empty for what is no resource.
        namespace: The namespace, if any.
        name: The object's name, if any.
        subresource: The subresource, if any.
        user: Who asks: a name out of the server's `users`, `"embedded"` for another token that it takes, or
            `"system:anonymous"`.
        status: The HTTP status of the answer; 0 while there is none, and for a connection that was cut first.
        time: When it came, in seconds, by the server's `clock`.
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
    status: int = 0
    time: float = 0.0

    @property
    def is_continue(self) -> bool:
        """Whether it asks for a further page of a list."""
        return bool(self.query.get("continue"))

    def about(self, resource: str | None) -> bool:
        """Whether it is about a resource, named as `"pods"` or `"deployments.apps"`; None is any."""
        return resource is None or resource in (self.resource, f"{self.resource}.{self.group}")

    def flag(self, name: str) -> bool | None:
        """A boolean parameter; None if it is not given.

        As for the real server, everything is true but `false` and `0`.
        """
        value = self.query.get(name)
        return None if value is None else value.lower() not in _FALSE

    def number(self, name: str) -> int | None:
        """A whole-number parameter; None if it is not given.

        Raises:
            StatusError: 400 for what is no number.
        """
        value = self.query.get(name)
        if value is None or value == "":
            return None
        try:
            return int(value)
        except ValueError as error:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from error


def parse_request(method: str, path: str, query: Mapping[str, str]) -> Request:
    """Read a request, by the rules of the real server's RequestInfo."""
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
    request.subresource = "/".join(rest[2:])
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
