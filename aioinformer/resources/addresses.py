"""Where an object of a collection is asked for: from a key, or an object, to a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..errors import ConfigError, KeyFuncError
from ..listwatch.collection import Collection
from ..objects.keys import meta_namespace_key_func, namespace_of, split_meta_namespace_key

_WITHOUT_NAMESPACE = {
    "": "componentstatuses namespaces nodes persistentvolumes",
    "admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings "
    "mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings "
    "validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "apiregistration.k8s.io": "apiservices",
    "certificates.k8s.io": "certificatesigningrequests clustertrustbundles",
    "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
    "internal.apiserver.k8s.io": "storageversions",
    "networking.k8s.io": "ingressclasses ipaddresses servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles",
    "resource.k8s.io": "deviceclasses devicetaintrules resourcepoolstatusrequests resourceslices",
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": "csidrivers csinodes storageclasses volumeattachments volumeattributesclasses",
    "storagemigration.k8s.io": "storageversionmigrations",
}
"""The built-in collections whose objects live in no namespace, by their groups."""


def lives_in_no_namespace(collection: Collection) -> bool:
    """Whether this is a built-in collection whose objects live in no namespace."""
    return collection.plural in _WITHOUT_NAMESPACE.get(collection.group, "").split()


@dataclass(frozen=True, slots=True)
class Addresses:
    """The paths of one resource.

    Args:
        collection: The resource, in all namespaces.
        namespaced: Whether its objects live in namespaces.
    """

    collection: Collection
    namespaced: bool

    def key_of(self, target: Any) -> str:
        """The key of what a caller names: a key, or an object.

        Raises:
            ConfigError: It has no name, or one that no path can have, or a namespace too many or too few.
        """
        try:
            key = target if isinstance(target, str) else meta_namespace_key_func(target)
            namespace, name = split_meta_namespace_key(key)
        except KeyFuncError as error:
            raise ConfigError(f"{self.collection}: {error}") from error
        self._check(namespace, name)
        return key

    def of(self, key: str, subresource: str = "") -> str:
        """The path of an object, or of a subresource of it. The key is one that ``key_of`` gave."""
        namespace, name = split_meta_namespace_key(key)
        path = f"{self.within(namespace)}/{quote(name, safe='')}"
        return f"{path}/{quote(subresource, safe='')}" if subresource else path

    def for_new(self, obj: Any) -> tuple[str, str]:
        """``(path, key)`` of the collection that an object is to be created in; the key is for messages.

        Raises:
            ConfigError: As for ``key_of``; but the server may be left to give a name.
        """
        namespace = namespace_of(obj)
        try:
            key = meta_namespace_key_func(obj)
        except KeyFuncError:
            key = f"{namespace}/" if namespace else ""
        self._check(namespace, key.rpartition("/")[2] or "generated")
        return self.within(namespace), key

    def within(self, namespace: str) -> str:
        """The path of the collection in a namespace; in all of them for ``""``."""
        path = self.collection.path
        if not namespace:
            return path
        root, _, plural = path.rpartition("/")
        return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}"

    def _check(self, namespace: str, name: str) -> None:
        if self.namespaced and not namespace:
            raise ConfigError(
                f"{self.collection} are taken to live in namespaces, and {name!r} names none: name it as "
                "'namespace/name'; if they live in none, give the resource that: namespaced=False"
            )
        if namespace and not self.namespaced:
            why = "" if lives_in_no_namespace(self.collection) else " (namespaced=False)"
            raise ConfigError(
                f"{self.collection} live in no namespace{why}, but {name!r} is said to be in {namespace!r}"
            )
        for part in (namespace, name) if namespace else (name,):
            # A path would lead elsewhere: deleting "default/.." must not be deleting a namespace.
            if not part.isprintable() or part in ("", ".", "..") or "/" in part or "%" in part:
                raise ConfigError(f"{self.collection}: {part!r} is no name")
