"""Whether rules of RBAC permit what the embedded server was asked, and which of them it was never asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
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


def assert_rbac_covers(
    server: APIServer, rules: Iterable[Rule], *, user: str | None = None, unused: Iterable[str] | None = None
) -> list[str]:
    """Check that rules permit all requests that the server got. Return the verbs that none of them needed.

        assert_rbac_covers(server, operator.rights())
        assert_rbac_covers(server, yaml.safe_load(Path("rbac.yaml").read_text())["rules"])
        assert_rbac_covers(server, operator.rights(), unused=["delete configmaps"])

    With the pytest plugin, the end of the test run lists the verbs that no test needed.

    An apply that creates an object needs ``create`` and ``patch``. Requests that every user may send, such as
    discovery, are skipped. The namespaces in which the rules apply are not checked. The server keeps its latest 10,000
    requests.

    Args:
        server: The server that the operator ran on. Calls of its own methods, such as ``create``, are no requests.
        rules: Rights, or rules of Roles and ClusterRoles.
        user: Check only this user's requests; None for those of all users.
        unused: The verbs that no request may need; None for any.

    Returns:
        What no request needed: ``["delete configmaps", "update configmaps"]``. Of ``*``, and of the finalizers of
        owners, which admission asks for, it is not known.

    Raises:
        AssertionError: Some requests are not permitted, or other verbs than ``unused`` are not needed; it names them.
    """
    __tracebackhide__ = True
    rules = [*rules]
    requests = [request for request in server.requests if user is None or request.user == user]
    refused = refused_requests(requests, rules)
    if refused:
        lines = [
            f"  {access}: {len(its)} request{'s' if len(its) > 1 else ''}, such as {its[0].method} {its[0].path}"
            for access, its in refused.items()
        ]
        raise AssertionError("the rules do not permit these requests:\n" + "\n".join(lines))
    needless = unused_verbs(requests, rules)
    usage.record(requests, rules)
    if unused is not None and (wrong := sorted({*needless} ^ {*unused})):
        described = (f"  {verb}: {'not needed' if verb in needless else 'needed'}" for verb in wrong)
        raise AssertionError("unused has not the verbs that no request needed:\n" + "\n".join(described))
    return needless


def refused_requests(requests: Iterable[Request], rules: Iterable[Rule]) -> dict[str, list[Request]]:
    """Return the requests that rules do not permit, by what they lack: ``"patch pods/status"``."""
    granted = [part for rule in rules for part in _as_mappings(rule)]
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


def unused_verbs(requests: Iterable[Request], rules: Iterable[Rule]) -> list[str]:
    """Return the verbs of rules that no request needed: ``"delete configmaps"``."""
    needed = {access for request in requests for access in _access_of(request)}
    return [
        str(verb)
        for verb, part in _single_verbs(rules)
        if not any(permits(part, access) for access in needed)
    ]


class Usage:
    """The verbs of all rules that tests checked, and those that one of them needed."""

    def __init__(self) -> None:
        self.granted: set[str] = set()
        self.needed: set[str] = set()

    @property
    def unused(self) -> list[str]:
        """What no test needed."""
        return sorted(self.granted - self.needed)

    def record(self, requests: Iterable[Request], rules: Sequence[Rule]) -> None:
        """Record what a test checked."""
        granted = {str(verb) for verb, _ in _single_verbs(rules)}
        self.granted |= granted
        self.needed |= granted.difference(unused_verbs(requests, rules))


usage = Usage()
"""That of this process."""


def _single_verbs(rules: Iterable[Rule]) -> Iterator[tuple[Access, Mapping[str, Any]]]:
    """Yield each verb on each resource of rules, with the rule for it alone."""
    for rule in rules:
        for part in _as_mappings(rule):
            groups, resources, verbs = (
                part.get(field) or () for field in ("apiGroups", "resources", "verbs")
            )
            for group, resource, verb in product(groups, resources, verbs):
                if "*" not in (group, resource, verb) and not resource.endswith("/finalizers"):
                    single = {**part, "apiGroups": [group], "resources": [resource], "verbs": [verb]}
                    yield Access(verb, group, resource), single


def _as_mappings(rule: Rule) -> list[Mapping[str, Any]]:
    """Return a right as rules; of named objects the creation is apart, because a rule cannot name what is new."""
    if isinstance(rule, Mapping):
        return [rule]
    whole = {"apiGroups": [rule.group], "resources": [rule.resource], "verbs": [*rule.verbs]}
    names = getattr(rule, "names", ())
    if not names:
        return [whole]
    named = {**whole, "resourceNames": [*names], "verbs": [verb for verb in rule.verbs if verb != "create"]}
    return [named, {**whole, "verbs": ["create"]}] if "create" in rule.verbs else [named]
