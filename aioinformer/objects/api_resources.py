"""The resources of an API server, and the table of those that every cluster has."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

_STABLE = re.compile(r"v[0-9]+")


class APIResource(NamedTuple):
    """A resource in a version of its API group.

    Attributes:
        api_version: ``"v1"``, ``"apps/v1"``.
        plural: ``"deployments"``.
        kind: ``"Deployment"``.
        namespaced: Whether its objects live in namespaces.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def group(self) -> str:
        """``""`` for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """``"v1"``."""
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_TABLE = """
v1
  bindings Binding
  componentstatuses* ComponentStatus cs
  configmaps ConfigMap cm
  endpoints Endpoints ep
  events Event ev
  limitranges LimitRange limits
  namespaces* Namespace ns
  nodes* Node no
  persistentvolumeclaims PersistentVolumeClaim pvc
  persistentvolumes* PersistentVolume pv
  pods Pod po
  podtemplates PodTemplate
  replicationcontrollers ReplicationController rc
  resourcequotas ResourceQuota quota
  secrets Secret
  serviceaccounts ServiceAccount sa
  services Service svc
apps/v1
  controllerrevisions ControllerRevision
  daemonsets DaemonSet ds
  deployments Deployment deploy
  replicasets ReplicaSet rs
  statefulsets StatefulSet sts
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler hpa
batch/v1
  cronjobs CronJob cj
  jobs Job
policy/v1
  poddisruptionbudgets PodDisruptionBudget pdb
admissionregistration.k8s.io/v1
  mutatingadmissionpolicies* MutatingAdmissionPolicy
  mutatingadmissionpolicybindings* MutatingAdmissionPolicyBinding
  mutatingwebhookconfigurations* MutatingWebhookConfiguration
  validatingadmissionpolicies* ValidatingAdmissionPolicy
  validatingadmissionpolicybindings* ValidatingAdmissionPolicyBinding
  validatingwebhookconfigurations* ValidatingWebhookConfiguration
apiextensions.k8s.io/v1
  customresourcedefinitions* CustomResourceDefinition crd crds
apiregistration.k8s.io/v1
  apiservices* APIService
authentication.k8s.io/v1
  selfsubjectreviews* SelfSubjectReview
  tokenreviews* TokenReview
authorization.k8s.io/v1
  localsubjectaccessreviews LocalSubjectAccessReview
  selfsubjectaccessreviews* SelfSubjectAccessReview
  selfsubjectrulesreviews* SelfSubjectRulesReview
  subjectaccessreviews* SubjectAccessReview
certificates.k8s.io/v1
  certificatesigningrequests* CertificateSigningRequest csr
certificates.k8s.io/v1beta1
  clustertrustbundles* ClusterTrustBundle
coordination.k8s.io/v1
  leases Lease
coordination.k8s.io/v1beta1
  leasecandidates LeaseCandidate
discovery.k8s.io/v1
  endpointslices EndpointSlice
events.k8s.io/v1
  events Event ev
flowcontrol.apiserver.k8s.io/v1
  flowschemas* FlowSchema
  prioritylevelconfigurations* PriorityLevelConfiguration
internal.apiserver.k8s.io/v1alpha1
  storageversions* StorageVersion
networking.k8s.io/v1
  ingressclasses* IngressClass
  ingresses Ingress ing
  ipaddresses* IPAddress ip
  networkpolicies NetworkPolicy netpol
  servicecidrs* ServiceCIDR
node.k8s.io/v1
  runtimeclasses* RuntimeClass
rbac.authorization.k8s.io/v1
  clusterrolebindings* ClusterRoleBinding
  clusterroles* ClusterRole
  rolebindings RoleBinding
  roles Role
resource.k8s.io/v1
  deviceclasses* DeviceClass
  resourceclaims ResourceClaim
  resourceclaimtemplates ResourceClaimTemplate
  resourceslices* ResourceSlice
resource.k8s.io/v1alpha3
  resourcepoolstatusrequests* ResourcePoolStatusRequest
resource.k8s.io/v1beta2
  devicetaintrules* DeviceTaintRule
scheduling.k8s.io/v1
  priorityclasses* PriorityClass pc
storage.k8s.io/v1
  csidrivers* CSIDriver
  csinodes* CSINode
  csistoragecapacities CSIStorageCapacity
  storageclasses* StorageClass sc
  volumeattachments* VolumeAttachment
  volumeattributesclasses* VolumeAttributesClass vac
storagemigration.k8s.io/v1beta1
  storageversionmigrations* StorageVersionMigration
"""
"""Plural, kind and short names of the built-in resources; a star marks cluster-scoped ones. A test compares it with the
real server. A group's preferred version comes first."""


@cache
def built_in_resources() -> dict[APIResource, tuple[str, ...]]:
    """Return the built-in resources with their short names, in the order in which names are searched."""
    resources: dict[APIResource, tuple[str, ...]] = {}
    api_version = ""
    for line in _TABLE.strip().splitlines():
        if not line.startswith(" "):
            api_version = line
            continue
        plural, kind, *short = line.split()
        resources[APIResource(api_version, plural.rstrip("*"), kind, not plural.endswith("*"))] = tuple(short)
    return resources


@cache
def built_in(name: str) -> APIResource | None:
    """Return the built-in resource that a name means, by kubectl's rules; None if there is none.

    Resources without a stable version are not found: not every server has them.

    Args:
        name: ``"pods"``, ``"po"``, ``"Pod"``, ``"deployments.apps"``, ``"deployments.v1.apps"``,
            ``"leases.coordination"``.
    """
    word, _, group = name.lower().partition(".")
    offered = [
        (resource, short)
        for resource, short in built_in_resources().items()
        if _STABLE.fullmatch(resource.version)
    ]
    for resource, _ in offered:
        if word in (resource.plural, resource.kind.lower()) and _is_in(resource, group):
            return resource
    return next((resource for resource, short in offered if word in short and _is_in(resource, group)), None)


def did_you_mean(name: str) -> str:
    """Return ``". Did you mean 'services'?"`` for a name like that of a built-in resource; "" for others."""
    word, _, group = name.lower().partition(".")
    names = {
        known: resource.plural
        for resource, short in built_in_resources().items()
        for known in (resource.plural, resource.kind.lower(), *short)
        if _STABLE.fullmatch(resource.version)
    }
    for close in get_close_matches(word, names, n=1):
        plural = names[close]
        meant = f"{plural}.{group}" if group and built_in(f"{plural}.{group}") else plural
        return f". Did you mean {meant!r}?" if meant != name else ""
    return ""


def is_built_in_group(group: str) -> bool:
    """Return whether Kubernetes itself has resources in this API group."""
    return any(resource.group == group for resource in built_in_resources())


def is_cluster_scoped(group: str, plural: str) -> bool:
    """Return whether this is a built-in cluster-scoped resource, in any version."""
    return (group, plural) in _cluster_scoped()


@cache
def _cluster_scoped() -> frozenset[tuple[str, str]]:
    return frozenset(
        (resource.group, resource.plural) for resource in built_in_resources() if not resource.namespaced
    )


def _is_in(resource: APIResource, group: str) -> bool:
    """Return whether a resource is in a group as names have it: empty, a prefix, or with a version in front."""
    version, _, rest = group.partition(".")  # the core group has the version alone, maybe with a dot
    return resource.group.startswith(group) or (resource.group, resource.version) == (rest, version)
