"""The resources that every cluster has."""

from __future__ import annotations

from functools import partial

from aioinformer.testing.resources import FieldLabel, ResourceType

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
    FieldLabel("source", "source.component"),
    FieldLabel("type"),
)

_NEW_EVENT_FIELDS = (
    FieldLabel("regarding.kind"),
    FieldLabel("regarding.namespace"),
    FieldLabel("regarding.name"),
    FieldLabel("regarding.uid"),
    FieldLabel("regarding.apiVersion"),
    FieldLabel("regarding.resourceVersion"),
    FieldLabel("regarding.fieldPath"),
    FieldLabel("reason"),
    FieldLabel("reportingController"),
    FieldLabel("type"),
)

_WITH_GENERATION = frozenset(
    [
        "CronJob",
        "CustomResourceDefinition",
        "DaemonSet",
        "Deployment",
        "DeviceClass",
        "EndpointSlice",
        "FlowSchema",
        "Ingress",
        "IngressClass",
        "Job",
        "MutatingWebhookConfiguration",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "PodTemplate",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ReplicaSet",
        "ReplicationController",
        "ResourceSlice",
        "StatefulSet",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ]
)

_CONDITIONAL_UPDATE = frozenset(["CustomResourceDefinition", "Lease", "PodDisruptionBudget"])


def _grouped(
    group: str,
    version: str,
    plural: str,
    kind: str,
    *short_names: str,
    namespaced: bool = True,
    subresources: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    fields: tuple[FieldLabel, ...] = (),
    create_on_update: bool = False,
) -> ResourceType:
    return ResourceType(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        short_names=short_names,
        subresources=subresources,
        categories=categories,
        fields=fields,
        custom=False,
        generation=kind in _WITH_GENERATION,
        create_on_update=create_on_update,
        unconditional_update=kind not in _CONDITIONAL_UPDATE,
    )


_core = partial(_grouped, "", "v1")


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> ResourceType:
    return ResourceType(
        group=group,
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        subresources=(),
        custom=False,
        stored=False,
    )


_STATUS = ("status",)
_SCALED = ("status", "scale")
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_FLOWCONTROL = "flowcontrol.apiserver.k8s.io"

NAMESPACES = _core(
    "namespaces",
    "Namespace",
    "ns",
    namespaced=False,
    subresources=("status", "finalize"),
    fields=(FieldLabel("status.phase"),),
)
PODS = _core(
    "pods", "Pod", "po", subresources=("status", "binding", "eviction"), categories=_ALL, fields=_POD_FIELDS
)
CLAIMS = _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=_STATUS)
VOLUMES = _core("persistentvolumes", "PersistentVolume", "pv", namespaced=False, subresources=_STATUS)
DEFINITIONS = _grouped(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    "crd",
    "crds",
    namespaced=False,
    subresources=_STATUS,
    categories=_EXTENSIONS,
)

BUILTIN: tuple[ResourceType, ...] = (
    _core("configmaps", "ConfigMap", "cm"),
    _core("endpoints", "Endpoints", "ep", create_on_update=True),
    _core("events", "Event", "ev", fields=_EVENT_FIELDS, create_on_update=True),
    _core("limitranges", "LimitRange", "limits", create_on_update=True),
    NAMESPACES,
    _core(
        "nodes",
        "Node",
        "no",
        namespaced=False,
        subresources=_STATUS,
        fields=(FieldLabel("spec.unschedulable", default="false"),),
    ),
    CLAIMS,
    VOLUMES,
    PODS,
    _core("podtemplates", "PodTemplate"),
    _core(
        "replicationcontrollers",
        "ReplicationController",
        "rc",
        subresources=_SCALED,
        categories=_ALL,
        fields=(FieldLabel("status.replicas", default="0"),),
    ),
    _core("resourcequotas", "ResourceQuota", "quota", subresources=_STATUS),
    _core("secrets", "Secret", fields=(FieldLabel("type"),)),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    _core(
        "services",
        "Service",
        "svc",
        subresources=_STATUS,
        categories=_ALL,
        fields=(FieldLabel("spec.clusterIP"), FieldLabel("spec.type")),
        create_on_update=True,
    ),
    _grouped(
        _ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
        categories=_EXTENSIONS,
    ),
    _grouped(
        _ADMISSION,
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        namespaced=False,
        subresources=_STATUS,
        categories=_EXTENSIONS,
    ),
    _grouped(
        _ADMISSION,
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
        categories=_EXTENSIONS,
    ),
    _grouped(
        _ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        categories=_EXTENSIONS,
    ),
    _grouped(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "APIService",
        namespaced=False,
        subresources=_STATUS,
        categories=_EXTENSIONS,
    ),
    _grouped(
        "apps",
        "v1",
        "controllerrevisions",
        "ControllerRevision",
    ),
    _grouped("apps", "v1", "daemonsets", "DaemonSet", "ds", subresources=_STATUS, categories=_ALL),
    _grouped("apps", "v1", "deployments", "Deployment", "deploy", subresources=_SCALED, categories=_ALL),
    _grouped(
        "apps",
        "v1",
        "replicasets",
        "ReplicaSet",
        "rs",
        subresources=_SCALED,
        categories=_ALL,
    ),
    _grouped("apps", "v1", "statefulsets", "StatefulSet", "sts", subresources=_SCALED, categories=_ALL),
    _review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    _review(_AUTHENTICATION, "tokenreviews", "TokenReview"),
    _review(_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    _review(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
    _grouped(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "hpa",
        subresources=_STATUS,
        categories=_ALL,
    ),
    _grouped("batch", "v1", "cronjobs", "CronJob", "cj", subresources=_STATUS, categories=_ALL),
    _grouped(
        "batch",
        "v1",
        "jobs",
        "Job",
        subresources=_STATUS,
        categories=_ALL,
        fields=(FieldLabel("status.successful", "status.succeeded", "0"),),
    ),
    _grouped(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "csr",
        namespaced=False,
        subresources=("approval", "status"),
        fields=(FieldLabel("spec.signerName"),),
    ),
    _grouped("coordination.k8s.io", "v1", "leases", "Lease", create_on_update=True),
    _grouped("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    _grouped("events.k8s.io", "v1", "events", "Event", "ev", fields=_NEW_EVENT_FIELDS, create_on_update=True),
    _grouped(_FLOWCONTROL, "v1", "flowschemas", "FlowSchema", namespaced=False, subresources=_STATUS),
    _grouped(
        _FLOWCONTROL,
        "v1",
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        namespaced=False,
        subresources=_STATUS,
    ),
    _grouped("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False),
    _grouped("networking.k8s.io", "v1", "ingresses", "Ingress", "ing", subresources=_STATUS),
    _grouped("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol"),
    _grouped("networking.k8s.io", "v1", "ipaddresses", "IPAddress", "ip", namespaced=False),
    _grouped(
        "networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", namespaced=False, subresources=_STATUS
    ),
    _grouped("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    _grouped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", subresources=_STATUS),
    _grouped(
        _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False, create_on_update=True
    ),
    _grouped(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False, create_on_update=True),
    _grouped(_RBAC, "v1", "rolebindings", "RoleBinding", create_on_update=True),
    _grouped(_RBAC, "v1", "roles", "Role", create_on_update=True),
    _grouped("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False),
    _grouped("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", subresources=_STATUS),
    _grouped("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _grouped("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False),
    _grouped("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc", namespaced=False),
    _grouped("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    _grouped("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    _grouped("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    _grouped("storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc", namespaced=False),
    _grouped(
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        namespaced=False,
        subresources=_STATUS,
    ),
    DEFINITIONS,
)
