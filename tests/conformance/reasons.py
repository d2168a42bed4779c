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
PARENTS = "The embedded server tracks the owners of fields, but not those of whole maps and lists."
GO_VALUES = "The real server shows values as its internal Go types have them."
GO_PATCH = "The real server quotes the patch as Go shows it; the embedded one quotes the patched object."
ORDER = "The same causes are in another order."
HPA_V1 = "The embedded server serves autoscaling/v2 alone."
NO_COMPONENTS = "The embedded server has no components besides itself, so it lists no ComponentStatus."
SUBRESOURCES = "Without a kubelet there are no subresources of pods and nodes that it answers."
CHECKS = "The checks of the embedded server are those of its own parts."
INDEX = "The embedded server has OpenAPI documents of resources only."
OPENAPI_V2 = "The OpenAPI v2 document of the embedded server has no fields; OpenAPI v3 has them."
NO_TRACKING = "The embedded server does not track legacy tokens of service accounts."
NO_ENDPOINTS = "The real server runs here without the reconciler of its own Endpoints."
NO_LIMITS = "The embedded server does not apply the defaults of a LimitRange to pods."
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

OWN_EVENTS = "A controller of the real server sometimes reports a conflict of its own as an Event."
PANIC = "The real server's code panics on this patch, and drops the connection."

REASONS: tuple[Reason, ...] = (
    Reason(r"^kubectl: network: describe svc web", OWN_EVENTS),
    Reason(r"^requests: 30\.14 Service: strategic patch", PANIC),
    Reason(r"^kubectl: discovery: (version -o yaml|get --raw /version)", BUILD),
    Reason(r"^kubectl: access: (auth can-i (--list|.*--as=)|get \w+ --as=)", NO_RBAC),
    Reason(r"^kubectl: pods: (logs|exec|attach|cp|port-forward) ", NO_KUBELET),
    Reason(r"^kubectl: discovery: get --raw /openid/v1/jwks( \(\d+\))?:", KEYS),
    Reason(r"^kubectl: network: get svc kubernetes -n default", KEYS),
    Reason(r"^kubectl: \w+: get \w+ \w+ -o yaml --show-managed-fields", PARENTS),
    Reason(r"^kubectl: (pods|storage): (patch|set) .*error in other words", GO_VALUES),
    Reason(r"^kubectl: workloads: patch deploy web .*Nonsense", GO_VALUES),
    Reason(r"^kubectl: \w+: patch .*error in other words", GO_PATCH),
    Reason(r"^kubectl: \w+: (create|apply) -f (vault-invalid|pod-bad-values|service-bad)\.yaml", ORDER),
    Reason(r"^kubectl: discovery: (api-versions|get --raw /apis:)", HPA_V1),
    Reason(r"^kubectl: discovery: get --raw /api/v1:", SUBRESOURCES),
    Reason(r"^kubectl: discovery: get componentstatuses", NO_COMPONENTS),
    Reason(r"^kubectl: discovery: get --raw /readyz\?verbose", CHECKS),
    Reason(r"^kubectl: discovery: get --raw /openapi/v3:", INDEX),
    Reason(r"^kubectl: explain: .* -o plaintext-openapiv2", OPENAPI_V2),
    Reason(r"^kubectl: discovery: get cm -n kube-system", NO_TRACKING),
    Reason(r"^kubectl: discovery: get endpoints -A", NO_ENDPOINTS),
    Reason(r"^kubectl: policies: get pod web -o jsonpath=.*resources", NO_LIMITS),
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
