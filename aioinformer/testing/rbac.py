"""Whether rules of RBAC permit what the embedded server was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from aioinformer.testing.access.authorization import Access, permits
from aioinformer.testing.requests import VERBS, Request
from aioinformer.testing.server import APIServer

_OPEN_TO_ALL = frozenset(["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"])
"""What every user may create, by the roles that a cluster has from the start."""


class GrantedRight(Protocol):
    """A right, as ``Operator.rights()`` returns them."""

    @property
    def group(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def verbs(self) -> Sequence[str]: ...


Rule = GrantedRight | Mapping[str, Any]
"""A right; or a rule of a Role or ClusterRole, as in YAML."""


def assert_rbac_covers(server: APIServer, rules: Iterable[Rule], *, user: str | None = None) -> None:
    """Check that rules permit all requests that the server got.

        assert_rbac_covers(server, operator.rights())
        assert_rbac_covers(server, yaml.safe_load(Path("rbac.yaml").read_text())["rules"])

    An apply that creates an object needs ``create`` and ``patch``. Requests that every user may send, such as
    discovery, are skipped. The namespaces in which the rules apply are not checked. The server keeps its latest 10,000
    requests.

    Args:
        server: The server that the operator ran on. Calls of its own methods, such as ``create``, are no requests.
        rules: Rights, or rules of Roles and ClusterRoles.
        user: Check only this user's requests; None for those of all users.

    Raises:
        AssertionError: Some requests are not permitted; it names them.
    """
    __tracebackhide__ = True
    refused = refused_requests(
        (request for request in server.requests if user is None or request.user == user), rules
    )
    if refused:
        lines = [
            f"  {access}: {len(its)} request{'s' if len(its) > 1 else ''}, such as {its[0].method} {its[0].path}"
            for access, its in refused.items()
        ]
        raise AssertionError("the rules do not permit these requests:\n" + "\n".join(lines))


def refused_requests(requests: Iterable[Request], rules: Iterable[Rule]) -> dict[str, list[Request]]:
    """Return the requests that rules do not permit, by what they lack: ``"patch pods/status"``."""
    granted = [_as_mapping(rule) for rule in rules]
    refused: dict[str, list[Request]] = {}
    for request in requests:
        for access in _access_of(request):
            if not any(permits(rule, access) for rule in granted):
                refused.setdefault(str(access), []).append(request)
    return refused


def _access_of(request: Request) -> list[Access]:
    """Return what a request needs: nothing if every user may send it."""
    if not request.resource or request.verb not in VERBS or request.resource in _OPEN_TO_ALL:
        return []
    needed = Access.of(request)
    if request.verb in ("patch", "update") and request.status == 201:
        return [needed, needed._replace(verb="create")]
    return [needed]


def _as_mapping(rule: Rule) -> Mapping[str, Any]:
    if isinstance(rule, Mapping):
        return rule
    return {"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs}
