"""The cells of kinds that say who may do what: RBAC, admission, certificates, flow control, aggregated APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.objects import condition_of
from aioinformer.testing.tables.formats import at, duration, size

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell


def _subjects(kind: str) -> Cell:
    """Return a cell with the names of a binding's subjects of a kind."""

    def cell(binding: Object) -> str:
        subjects = [subject for subject in binding.get("subjects") or () if subject.get("kind") == kind]
        accounts = kind == "ServiceAccount"
        return ", ".join(
            f"{subject.get('namespace', '')}/{subject['name']}" if accounts else subject["name"]
            for subject in subjects
        )

    return cell


def _parameter_kind(policy: Object) -> str:
    kind = at("spec.paramKind", None)(policy)
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"


def _parameters(binding: Object) -> str:
    reference = at("spec.paramRef", None)(binding) or {}
    if name := reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{name}"
    return _selector_in_go(reference["selector"]) if "selector" in reference else "<unset>"


def _selector_in_go(selector: Object) -> str:
    """Return a label selector as Go prints the struct."""
    pairs = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{expression['key']},Operator:{expression['operator']},"
        f"Values:[{' '.join(expression.get('values') or ())}],}},"
        for expression in selector.get("matchExpressions") or ()
    )
    maps = f"MatchLabels:map[string]string{{{pairs}}}"
    return f"&LabelSelector{{{maps},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"


def _request_status(request: Object) -> str:
    """Return the status of a CertificateSigningRequest."""
    status = next((kind for kind in ("Denied", "Approved") if condition_of(request, kind)), "Pending")
    failed = ",Failed" if condition_of(request, "Failed") else ""
    return status + failed + (",Issued" if at("status.certificate")(request) else "")


def _requested_duration(request: Object) -> str:
    seconds = at("spec.expirationSeconds", None)(request)
    return "<none>" if seconds is None else duration(seconds)


def _service(api: Object) -> str:
    service = at("spec.service", None)(api)
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _available(api: Object) -> str:
    condition = condition_of(api, "Available") or {"status": "Unknown"}
    reason = condition.get("reason")
    return (
        f"{condition['status']} ({reason})"
        if reason and condition["status"] != "True"
        else str(condition["status"])
    )


def _queuing_cell(field: str) -> Cell:
    """Return a cell of a priority level that queues requests."""

    def cell(level: Object) -> Any:
        queuing = at("spec.limited.limitResponse.queuing", None)(level)
        return "<none>" if queuing is None else queuing.get(field, 0)

    return cell


_BINDING: dict[str, Cell] = {
    "Role": lambda obj: f"{obj['roleRef'].get('kind', '')}/{obj['roleRef'].get('name', '')}",
    "Users": _subjects("User"),
    "Groups": _subjects("Group"),
    "ServiceAccounts": _subjects("ServiceAccount"),
}
_POLICY: dict[str, Cell] = {
    "Validations": size("spec.validations"),
    "Mutations": size("spec.mutations"),
    "ParamKind": _parameter_kind,
}
_POLICY_BINDING: dict[str, Cell] = {"PolicyName": at("spec.policyName"), "ParamRef": _parameters}
_WEBHOOKS: dict[str, Cell] = {"Webhooks": size("webhooks")}

ACCESS: dict[str, dict[str, Cell]] = {
    "APIService.apiregistration.k8s.io": {"Service": _service, "Available": _available},
    "CertificateSigningRequest.certificates.k8s.io": {
        "SignerName": at("spec.signerName", "<none>"),
        "Requestor": at("spec.username"),
        "RequestedDuration": _requested_duration,
        "Condition": _request_status,
    },
    "ClusterRoleBinding.rbac.authorization.k8s.io": _BINDING,
    "RoleBinding.rbac.authorization.k8s.io": _BINDING,
    "FlowSchema.flowcontrol.apiserver.k8s.io": {
        "PriorityLevel": at("spec.priorityLevelConfiguration.name"),
        "MatchingPrecedence": at("spec.matchingPrecedence"),
        "DistinguisherMethod": at("spec.distinguisherMethod.type", "<none>"),
        "MissingPL": lambda obj: (condition_of(obj, "Dangling") or {}).get("status", "?"),
    },
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": {
        "Type": at("spec.type"),
        "NominalConcurrencyShares": at("spec.limited.nominalConcurrencyShares", "<none>"),
        "Queues": _queuing_cell("queues"),
        "HandSize": _queuing_cell("handSize"),
        "QueueLengthLimit": _queuing_cell("queueLengthLimit"),
    },
    "MutatingAdmissionPolicy.admissionregistration.k8s.io": _POLICY,
    "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": _POLICY_BINDING,
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _WEBHOOKS,
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": _POLICY,
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": _POLICY_BINDING,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _WEBHOOKS,
}
