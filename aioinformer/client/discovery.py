"""Find a resource by its plural, singular, short name or kind, with or without its group."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import Any, Protocol, TypeVar

import msgspec

from .._core.tasks import gather
from ..errors import AioInformerError, ApiError, ConfigError, DecodeError, TransportError
from ..objects.api_resources import APIResource, built_in
from .health import UNAVAILABLE
from .transport import READ_TIMEOUT, Query

logger = logging.getLogger(__name__)

T = TypeVar("T")

CORE = "/api/v1"

GROUP_TIMEOUT = 32.0
"""Seconds to wait for a group that the user did not name, as in client-go: its server may hang."""


class Server(Protocol):
    """What discovery needs of a Client."""

    @property
    def server(self) -> str: ...

    async def get_json(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> Any: ...


Documents = Callable[[str, float], Awaitable[Any]]
"""Return the decoded JSON document at a path; the second argument is the timeout in seconds."""


# Go encodes an empty list as null


class _Version(msgspec.Struct, rename="camel"):
    group_version: str = ""
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    versions: list[_Version] | None = None
    preferred_version: _Version | None = None

    def paths(self) -> list[str]:
        """Return the paths of its versions, the preferred version first."""
        offered = [self.preferred_version, *(self.versions or ())]
        return list(
            dict.fromkeys(
                f"/apis/{version.group_version}" for version in offered if version and version.version
            )
        )


class _Groups(msgspec.Struct):
    groups: list[_Group] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    name: str = ""
    singular_name: str | None = None
    short_names: list[str] | None = None
    kind: str | None = None
    namespaced: bool | None = None
    verbs: list[str] | None = None

    def ranks(self) -> dict[str, int]:
        """Return its names with their ranks; of several resources with a name, the lowest rank wins."""
        full = dict.fromkeys((self.name, self.singular_name or self.name), 0)
        return {(self.kind or "").lower(): 2, **dict.fromkeys(self.short_names or (), 1), **full}


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


def check_name(name: str) -> None:
    """Check that a name can be the name of a single resource.

    Raises:
        ConfigError: It cannot; the message says what to write instead.
    """
    if not name.strip():
        raise ConfigError("the resource name is empty")
    if "," in name:
        raise ConfigError(f"{name!r} names several resources; watch a single resource at a time")
    if "/" in name:
        raise ConfigError(
            f"{name!r} is no resource name: select an object with --field-selector metadata.name=NAME, and a version "
            "as in deployments.v1.apps"
        )


class Discovery:
    """Finds resources by their names, and remembers those that it found.

    Args:
        client: The server's client.
        known: The resources that were found, by name.
    """

    def __init__(self, client: Server, known: dict[str, APIResource]) -> None:
        self._client = client
        self._known = known

    async def find(self, name: str, *, refresh: bool = False) -> APIResource:
        """Return the resource that a name means, by kubectl's rules; see ``find_resource``.

        A found resource is remembered. A missing one is searched again at each call, since its
        CustomResourceDefinition may have been created meanwhile.

        Args:
            name: ``"certificates.cert-manager.io"``.
            refresh: Ask the server again, for example because a version is no longer served.
        """
        check_name(name)
        if refresh or name not in self._known:
            self._known.pop(name, None)
            self._known[name] = await find_resource(self._client, name)
        return self._known[name]

    def known(self, name: str) -> APIResource | None:
        """Return a resource that ``find`` found before, or None. Sends no request."""
        return self._known.get(name)


async def find_resource(client: Server, name: str, group_timeout: float = GROUP_TIMEOUT) -> APIResource:
    """Return the resource that a name means, by kubectl's rules.

    If the server refuses discovery, the names of built-in resources still work: the package knows them.

    Args:
        client: The server's client.
        name: ``pods``, ``po``, ``deployments.apps``, ``deployments.v1.apps``, ``leases.coordination``.
        group_timeout: Seconds to wait for each group that the name does not contain.

    Raises:
        ConfigError: The server has no such resource that can be watched; the message suggests a similar name.
        AioInformerError: Discovery failed. A TransportError may also mean that an unavailable group has the resource.
    """

    async def documents(path: str, timeout: float) -> Any:
        return await client.get_json(path, timeout=timeout)

    failures: dict[str, AioInformerError] = {}
    try:
        return await _find(documents, client.server, name, group_timeout, failures)
    except AioInformerError as error:
        known = built_in(name)
        if known is None:
            raise
        why = [error, failures.get(f"/apis/{known.api_version}")]
        refusal = next((reason for reason in why if _is_refusal(reason)), None)
        if refusal is None:
            raise
    logger.warning(
        "%s; assuming that %s means the built-in %s of %s", refusal, name, known.plural, known.api_version
    )
    return known


async def _find(
    documents: Documents, server: str, name: str, group_timeout: float, failures: dict[str, AioInformerError]
) -> APIResource:
    """Find a resource in discovery documents; add the error of each unreadable group to ``failures``."""
    word, _, group = name.lower().partition(".")
    paths: list[str] = []
    matches: list[tuple[int, bool, str, _Resource]] = []
    plurals: dict[str, str] = {}

    async def search(asked: list[str]) -> bool:
        """Search some versions; return whether a match ranks before everything in other versions."""
        paths.extend(asked)
        is_one_group = asked == [CORE] or (
            bool(group) and len({path.rpartition("/")[0] for path in asked}) == 1
        )
        for path, offered in zip(
            asked, await _read_versions(documents, asked, is_one_group, group_timeout), strict=True
        ):
            if isinstance(offered, AioInformerError):
                if is_one_group:
                    raise offered
                failures[path] = offered
                continue  # an unavailable group must not hide the others
            for resource in offered:
                ranks = resource.ranks()
                is_watchable = "watch" in (resource.verbs or ())
                if word in ranks:
                    matches.append((ranks[word], not is_watchable, path, resource))
                if is_watchable:
                    plurals.update(dict.fromkeys(ranks, resource.name))
        return any((rank, is_hidden) == (0, False) for rank, is_hidden, _, _ in matches)

    is_core = group.removesuffix(".") == "v1"
    if not ((is_core or not group) and await search([CORE])) and not is_core:
        groups = await _ask(documents, "/apis", _Groups)
        await search(_group_versions(groups.groups or [], group))
    if matches:
        _, is_hidden, path, best = min(matches, key=lambda match: match[:2])
        if is_hidden:
            raise ConfigError(f"the server {server} has {best.name!r}, but it cannot be watched")
        for earlier in paths[: paths.index(path)]:
            if earlier in failures:
                logger.warning(
                    "%s: using the resource of %s; a preferred version could not be read: %s",
                    name,
                    path,
                    failures[earlier],
                )
        api_version = path.removeprefix("/apis/").removeprefix("/api/")
        return APIResource(api_version, best.name, best.kind or "", bool(best.namespaced))
    alike = (plurals[known] + name[len(word) :] for known in get_close_matches(word, plurals, n=1))
    hint = "".join(f". Did you mean {similar!r}?" for similar in alike)
    if "." in name and not hint:
        hint = ". If the name is right, install its CustomResourceDefinition"
    errors = [*failures.values()]
    unless = f" (unreadable API groups may have it: {'; '.join(map(str, errors))})" if errors else ""
    text = f"the server {server} has no resource {name!r}{hint}{unless}"
    if any(_is_unavailable(error) for error in errors):
        raise TransportError(text)  # a retry may find it
    raise ConfigError(text)


def _is_unavailable(error: AioInformerError) -> bool:
    """Return whether a retry may succeed."""
    if isinstance(error, ApiError):
        return error.is_too_many_requests or error.status in UNAVAILABLE
    return isinstance(error, TransportError)


def _is_refusal(error: AioInformerError | None) -> bool:
    """Return whether the server permanently refuses discovery, though it knows the user."""
    return isinstance(error, DecodeError) or (
        isinstance(error, ApiError) and error.status != 401 and not _is_unavailable(error)
    )


def _group_versions(groups: list[_Group], group: str) -> list[str]:
    """Return the paths of the versions to search; each group's preferred version comes first."""
    version, _, rest = group.partition(".")
    if (named := f"/apis/{rest}/{version}") in (path for api_group in groups for path in api_group.paths()):
        return [named]
    named_so = [api_group for api_group in groups if group and api_group.name == group]
    asked = named_so or [api_group for api_group in groups if api_group.name.startswith(group)]
    return [path for api_group in asked for path in api_group.paths()]


async def _read_versions(
    documents: Documents, paths: list[str], is_one_group: bool, group_timeout: float
) -> list[list[_Resource] | AioInformerError]:
    """Return the resources of each version, or the error of reading them."""

    async def read_version(path: str) -> list[_Resource] | AioInformerError:
        timeout = READ_TIMEOUT if is_one_group else group_timeout
        try:
            resources = (await _ask(documents, path, _Resources, timeout)).resources or []
        except AioInformerError as error:
            return error
        return [resource for resource in resources if "/" not in resource.name]

    return await gather(*map(read_version, paths))


async def _ask(documents: Documents, path: str, form: type[T], timeout: float = READ_TIMEOUT) -> T:
    answer = await documents(path, timeout)
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise DecodeError(f"get {path}: the answer is no discovery document: {error}") from error
