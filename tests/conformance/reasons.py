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
        real: Matches what the real server says, so that other differences of the same cause have no reason.
    """

    cases: str
    why: str
    real: str = ""


BUILD = "The build information is that of another program."
GO_VALUES = "The real server shows values as its internal Go types have them."
NO_COMPONENTS = "The embedded server has no components besides itself, so it lists no ComponentStatus."
OWN_EVENTS = "A controller of the real server sometimes reports a conflict of its own as an Event."
PANIC = "The real server's code panics on this patch, and drops the connection."
RULES = (
    "The embedded server checks types, required fields and common mistakes, not every rule of Kubernetes' "
    "validation."
)
EMPTY = "The embedded server does not tell an empty map or list from a missing one."
SELECTORS = (
    "Both refuse the labels or the selector; the real server finds further faults, or in another order."
)
NUMBERS = "Both refuse the number; the real server's decoder sees it as another type."
WARNINGS = "The embedded server warns of unknown and duplicate fields, not of values that are odd but valid."
GENERATION = "A table of the real server omits the annotation that the conversion of a DaemonSet adds."

SOMETIMES = ("network: describe svc web", "workloads: get all")
"""Commands that differ in some runs: what controllers of the real server have done meanwhile."""

REASONS: tuple[Reason, ...] = (
    Reason(r"^kubectl: network: describe svc web", OWN_EVENTS),
    Reason(r"^kubectl: discovery: (version -o yaml|get --raw /version)", BUILD),
    Reason(r"^kubectl: discovery: get componentstatuses", NO_COMPONENTS),
    Reason(r"^kubectl: (pods|storage): (patch|set) .*error in other words", GO_VALUES, r"\n@@ -\d"),
    Reason(r"^requests: 30\.14 Service: strategic patch", PANIC),
    Reason(r"^requests: .*: accepted, the real server answers 422 \(FieldValue", RULES),
    Reason(r"^requests: \S+ (Pod|Persistent\w+): .*: 422 in other words$", GO_VALUES, r"\n@@ -\d"),
    Reason(
        r"^requests: \S+ (Cron)?Job: .*: 422 in other words$",
        GO_VALUES,
        r'template: Invalid value: \{"(Spec|labels)"',
    ),
    Reason(r"^requests: .*: 422 in other words$", EMPTY, r"value: (\{\}|\[\]): "),
    Reason(
        r"^requests: .*: 422 in other words$",
        SELECTORS,
        r"labels: Invalid value|labels\[controller-uid\]|spec\.selector",
    ),
    Reason(r"^requests: .*: 422 in other words$", NUMBERS, r"of type integer|type int32|-2147483648"),
    Reason(r"^requests: .*: warnings$", WARNINGS),
    Reason(r"^requests: .* DaemonSet: get as table.*annotations", GENERATION),
)


def reason_of(case: Case) -> str:
    """Return why a difference is accepted; empty if it should go."""
    text = f"{case.part}: {case.name}: {case.cause}"
    reasons = (
        reason for reason in REASONS if re.search(reason.cases, text) and re.search(reason.real, case.real)
    )
    return next((reason.why for reason in reasons), "")
