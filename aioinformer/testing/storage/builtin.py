"""The resources that every cluster has.

``tests/kubernetes/resources.py`` writes ``schema/resources.json``: what the real server's discovery tells, and how it
writes an example of each resource. The rest is here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from aioinformer.testing.resources import Conversion, FieldLabel, ResourceType, Subresource
from aioinformer.testing.storage import autoscalers, events

_POD_FIELDS = (
    FieldLabel("spec.nodeName"),
    FieldLabel("spec.restartPolicy", default="Always"),
    FieldLabel("spec.schedulerName", default="default-scheduler"),
    FieldLabel("spec.serviceAccountName"),
    FieldLabel("spec.hostNetwork", default="false"),
    FieldLabel("status.phase"),
    FieldLabel("status.podIP"),
    FieldLabel("status.podIPs", "status.podIP"),
    FieldLabel("status.nominatedNodeName"),
)

_EVENT_FIELDS = (
    FieldLabel("involvedObject.kind"),
    FieldLabel("involvedObject.namespace"),
    FieldLabel("involvedObject.name"),
    FieldLabel("involvedObject.uid"),
    FieldLabel("involvedObject.apiVersion"),
    FieldLabel("involvedObject.resourceVersion"),
    FieldLabel("involvedObject.fieldPath"),
    FieldLabel("reason"),
    FieldLabel("reportingComponent"),
    FieldLabel("type"),
    FieldLabel("source", "source.component"),
)

_NEW_EVENT_FIELDS = (
    *(
        FieldLabel(field.label.replace("involvedObject", "regarding"), field.label)
        for field in _EVENT_FIELDS
        if field.label.startswith("involvedObject")
    ),
    FieldLabel("reason"),
    FieldLabel("reportingController", "reportingComponent"),
    FieldLabel("type"),
    FieldLabel("", "source.component"),  # not selectable, but its value is stored
)
"""The values of these fields are stored in the order of `_EVENT_FIELDS`."""

_FIELDS = {
    ("", "Event"): _EVENT_FIELDS,
    ("", "Namespace"): (FieldLabel("status.phase"),),
    ("", "Node"): (FieldLabel("spec.unschedulable", default="false"),),
    ("", "Pod"): _POD_FIELDS,
    ("", "ReplicationController"): (FieldLabel("status.replicas", default="0"),),
    ("", "Secret"): (FieldLabel("type"),),
    ("", "Service"): (FieldLabel("spec.clusterIP"), FieldLabel("spec.type")),
    ("batch", "Job"): (FieldLabel("status.successful", "status.succeeded", "0"),),
    ("certificates.k8s.io", "CertificateSigningRequest"): (FieldLabel("spec.signerName"),),
    (events.GROUP, "Event"): _NEW_EVENT_FIELDS,
}

_CONVERSIONS = {
    (f"{events.GROUP}/v1", "Event"): Conversion("", events.to_core, events.from_core),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion(
        "autoscaling", autoscalers.to_v2, autoscalers.from_v2
    ),
}


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What the real server tells of a resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    generation: bool = False
    create_on_update: bool = False
    unconditional_update: bool = False
    returns_deleted: bool = False
    warning: str = ""
    built_in_subresources: dict[str, Subresource] = msgspec.field(name="subresources")


def _resource(listed: _Listed) -> ResourceType:
    name = (listed.group, listed.kind)
    return ResourceType(
        **msgspec.structs.asdict(listed),
        subresources=tuple(listed.built_in_subresources),
        fields=_FIELDS.get(name, ()),
        custom=False,
        stored=listed.verbs != ("create",),
        conversion=_CONVERSIONS.get((f"{listed.group}/{listed.version}", listed.kind)),
    )


def _load() -> tuple[ResourceType, ...]:
    file = Path(__file__).parents[1] / "schema" / "resources.json"
    listed = msgspec.json.decode(file.read_bytes(), type=list[_Listed])
    return tuple(_resource(entry) for entry in listed)


BUILTIN: tuple[ResourceType, ...] = _load()
"""The resources in the order of the real server's discovery."""

_BY_NAME = {resource.group_resource: resource for resource in BUILTIN}

BINDINGS = _BY_NAME["bindings"]
BUDGETS = _BY_NAME["poddisruptionbudgets.policy"]
CLUSTER_ROLES = _BY_NAME["clusterroles.rbac.authorization.k8s.io"]
CLUSTER_ROLE_BINDINGS = _BY_NAME["clusterrolebindings.rbac.authorization.k8s.io"]
CLAIMS = _BY_NAME["persistentvolumeclaims"]
CRON_JOBS = _BY_NAME["cronjobs.batch"]
DAEMON_SETS = _BY_NAME["daemonsets.apps"]
DEFINITIONS = _BY_NAME["customresourcedefinitions.apiextensions.k8s.io"]
DEPLOYMENTS = _BY_NAME["deployments.apps"]
LIMIT_RANGES = _BY_NAME["limitranges"]
ENDPOINT_SLICES = _BY_NAME["endpointslices.discovery.k8s.io"]
JOBS = _BY_NAME["jobs.batch"]
MUTATING_WEBHOOKS = _BY_NAME["mutatingwebhookconfigurations.admissionregistration.k8s.io"]
NAMESPACES = _BY_NAME["namespaces"]
NODES = _BY_NAME["nodes"]
PODS = _BY_NAME["pods"]
REPLICA_SETS = _BY_NAME["replicasets.apps"]
ROLES = _BY_NAME["roles.rbac.authorization.k8s.io"]
ROLE_BINDINGS = _BY_NAME["rolebindings.rbac.authorization.k8s.io"]
SECRETS = _BY_NAME["secrets"]
SERVICES = _BY_NAME["services"]
SERVICE_ACCOUNTS = _BY_NAME["serviceaccounts"]
STATEFUL_SETS = _BY_NAME["statefulsets.apps"]
VALIDATING_WEBHOOKS = _BY_NAME["validatingwebhookconfigurations.admissionregistration.k8s.io"]
VOLUMES = _BY_NAME["persistentvolumes"]
