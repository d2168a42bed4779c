"""Why a difference remains, where we know and accept it."""

from __future__ import annotations

import re
from typing import NamedTuple

from .results import Case


class Reason(NamedTuple):
    """An accepted difference.

    Attributes:
        cases: Matches "part: name: cause" of the cases that it is about.
        why: The reason, for the page.
    """

    cases: str
    why: str


BUILD = "The build information is that of another program."
NO_KUBELET = "No kubelet runs containers, so there is nothing to read from or to connect to."
NO_RBAC = "Roles have no effect: the embedded server allows everything."
KEYS = "Each server has its own keys and addresses."
OWNERS = (
    "The embedded server tracks the owners of fields from the first apply on, and names earlier ones "
    "`before-first-apply`."
)
RULES = (
    "The embedded server checks types, required fields and common mistakes, not every rule of Kubernetes' "
    "validation."
)
MORE_FAULTS = (
    "Both refuse the object; the real server lists more faults, another order or Go's own form of a value."
)
WARNINGS = "The embedded server warns of unknown and duplicate fields, not of values that are odd but valid."
GENERATION = "A table of the real server omits the annotation that the conversion of a DaemonSet adds."

REASONS: tuple[Reason, ...] = (
    Reason(r"^kubectl: discovery: (version -o yaml|get --raw /version)", BUILD),
    Reason(r"^kubectl: access: (auth can-i (--list|.*--as=)|get \w+ --as=)", NO_RBAC),
    Reason(r"^kubectl: pods: (logs|exec|attach|cp|port-forward) ", NO_KUBELET),
    Reason(r"^kubectl: discovery: get --raw /(openid/v1/jwks|api)( \(\d+\))?:", KEYS),
    Reason(
        r"^requests: .* apply, step \d+: (409 in other words|refused with 409|500 instead of 409)", OWNERS
    ),
    Reason(r"^requests: .*: accepted, the real server answers 422 \(FieldValue", RULES),
    Reason(r"^requests: .*: (400|422|500) in other words$", MORE_FAULTS),
    Reason(r"^requests: .*: warnings$", WARNINGS),
    Reason(r"^requests: .* DaemonSet: get as table.*annotations", GENERATION),
)


def reason_of(case: Case) -> str:
    """Return why a difference is accepted; empty if it should go."""
    text = f"{case.part}: {case.name}: {case.cause}"
    return next((reason.why for reason in REASONS if re.search(reason.cases, text)), "")
