"""Collection: the path, query parameters and name of one collection of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .._core.checks import LABEL, require_text
from ..client.error_mapping import add_detail
from ..client.transport import JSON, PROTOBUF
from ..errors import ApiError, ConfigError
from ..objects.api_resources import built_in, is_built_in_group
from ..objects.meta import PARTIAL_KIND, ListOptions
from ..objects.protobuf import is_known

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VERSION = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CORE_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection of the API, in one namespace or in all.

    Attributes:
        api_version: ``"v1"``, ``"apps/v1"``.
        plural: ``"pods"``.
        namespace: None for all namespaces, and for cluster-scoped resources.
        label_selector: Default for options without a label selector.
        field_selector: Default for options without a field selector.
        metadata_only: Ask only for the objects' metadata (PartialObjectMetadata).
        protobuf: Ask for protobuf if the objects can be read from it. A server without protobuf sends JSON.
    """

    api_version: str
    plural: str
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    protobuf: bool = False

    def __post_init__(self) -> None:
        for name in ("api_version", "plural"):
            require_text(name, getattr(self, name))
        require_selectors(self.label_selector, self.field_selector)
        if self.namespace is not None:
            require_text("namespace", self.namespace)
        if not _is_api_version(self.api_version):
            first = f"; the api_version {self.plural!r} comes first" if _is_api_version(self.plural) else ""
            raise ConfigError(
                "api_version must be 'v1' for the core group, or a group and its version, like 'apps/v1', "
                f"not {self.api_version!r}{first}"
            )
        if self.group == "core":
            version = self.api_version.removeprefix("core/")
            raise ConfigError(f"the core group's api_version is {version!r}, not {self.api_version!r}")
        if not LABEL.fullmatch(self.plural):
            raise ConfigError(
                f"a resource is named by its plural in lower case, like 'pods', not {self.plural!r}"
            )
        if self.namespace is not None and not LABEL.fullmatch(self.namespace):
            raise ConfigError(
                f"namespace must be a namespace's name, or None for all, not {self.namespace!r}"
            )

    @property
    def group(self) -> str:
        """``""`` for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def path(self) -> str:
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        within = f"/namespaces/{self.namespace}" if self.namespace is not None else ""
        return f"{root}{within}/{self.plural}"

    def accept(self, *, lists: bool) -> str:
        """Return the Accept header: the media types that can be read.

        Args:
            lists: Whether the request is a list; False for a watch.
        """
        is_read = self.protobuf and (self.metadata_only or is_known(self.api_version, self.plural))
        types = [PROTOBUF, JSON] if is_read else [JSON]
        if self.metadata_only:
            kind = f"{PARTIAL_KIND}List" if lists else PARTIAL_KIND
            types = [*(f"{media_type};as={kind};g=meta.k8s.io;v=v1" for media_type in types), JSON]
        return ",".join(types)

    def overlaps(self, other: Collection) -> bool:
        """Whether an object may be in both. Different selectors are taken to pick different ones."""
        return (self.group, self.plural) == (other.group, other.plural) and all(
            not mine or not theirs or mine == theirs
            for mine, theirs in (
                (self.namespace, other.namespace),
                (self.label_selector, other.label_selector),
                (self.field_selector, other.field_selector),
            )
        )

    def with_selectors(self, options: ListOptions) -> ListOptions:
        """Return the options, with this collection's selectors as defaults."""
        return replace(
            options,
            label_selector=options.label_selector or self.label_selector,
            field_selector=options.field_selector or self.field_selector,
        )

    @contextmanager
    def explain_errors(self, subresource: str = "") -> Iterator[None]:
        """Wrap a request: a 404 about the resource, and a 400 about a field selector, get a hint."""
        try:
            yield
        except ApiError as error:
            if error.is_missing_resource:
                if self.plural.endswith("s"):
                    within = f" with the subresource {subresource!r}" if subresource else ""
                    hint = (
                        f"check api_version {self.api_version!r}{self._where()}, plural {self.plural!r} and whether "
                        "it lives in namespaces (if not: namespaced=False, or no namespace), or create its "
                        f"CustomResourceDefinition{within}"
                    )
                else:
                    hint = "resources are named by their plural, like 'pods'"
                add_detail(error, hint)
            elif self.field_selector and error.status == 400 and "field label" in error.message:
                add_detail(
                    error,
                    "servers select by metadata.name, metadata.namespace and few other fields; for more read without "
                    "field_selector, and use an index or a predicate",
                )
            raise

    def _where(self) -> str:
        """Return the api_version of the built-in resource that was probably meant, for an error."""
        built_in_resource = built_in(self.plural)
        if (
            built_in_resource is None
            or built_in_resource.api_version == self.api_version
            or not is_built_in_group(self.group)
        ):
            return ""
        return f" ({built_in_resource.plural} are in {built_in_resource.api_version!r})"

    def __str__(self) -> str:
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        if self.metadata_only:
            name = f"metadata of {name}"
        if self.namespace is not None:
            name = f"{name} in {self.namespace}"
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{name} with {selectors}" if selectors else name


def require_selectors(label_selector: object, field_selector: object) -> None:
    """Check that selectors are strings.

    Raises:
        ConfigError: One is not.
    """
    require_text("label_selector", label_selector, like="app=web")
    require_text("field_selector", field_selector, like="spec.nodeName=worker-1")


def _is_api_version(text: str) -> bool:
    group, slash, version = text.rpartition("/")
    if not slash:
        return _CORE_VERSION.fullmatch(version) is not None
    return _GROUP.fullmatch(group) is not None and _VERSION.fullmatch(version) is not None


def query_of(options: ListOptions, *, watch: bool = False) -> list[tuple[str, str]]:
    """Return the query parameters for these options, without empty ones."""
    query: list[tuple[str, str]] = []
    if watch:
        query.append(("watch", "true"))
    for name, value in (
        ("resourceVersion", options.resource_version),
        ("resourceVersionMatch", options.resource_version_match),
        ("limit", str(options.limit) if options.limit else ""),
        ("continue", options.continue_token),
        ("labelSelector", options.label_selector),
        ("fieldSelector", options.field_selector),
        ("shardSelector", options.shard_selector),
        ("allowWatchBookmarks", "true" if options.allow_watch_bookmarks else ""),
        ("sendInitialEvents", _bool(options.send_initial_events)),
        ("timeoutSeconds", "" if options.timeout_seconds is None else str(options.timeout_seconds)),
    ):
        if value:
            query.append((name, value))
    return query


def request_text(verb: str, description: str, options: ListOptions) -> str:
    """Return the request in words, for messages: ``"list pods in default at resourceVersion 0"``."""
    if options.continue_token:
        return f"{verb} {description}, a further page"
    version = f" at resourceVersion {options.resource_version}" if options.resource_version else ""
    return f"{verb} {description}{version}"


def _bool(value: bool | None) -> str:
    return "" if value is None else str(value).lower()
