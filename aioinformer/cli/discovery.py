"""Which resource a name means: plural, singular, short name or kind, with or without its group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..client import Client
from ..client.health import UNAVAILABLE
from ..client.transport import READ_TIMEOUT
from ..errors import AioInformerError, ApiError, ConfigError, DecodeError, TransportError

logger = logging.getLogger(__name__)

T = TypeVar("T")

CORE = "/api/v1"

GROUP_PATIENCE = 32.0
"""Seconds for a group that nobody has named, as in client-go: its server may hang for ever."""


class APIResource(NamedTuple):
    """A resource as the server offers it."""

    api_version: str
    plural: str
    namespaced: bool


Documents = Callable[[str, float], Awaitable[Any]]
"""Gives what a path says of resources, as decoded JSON, within so many seconds."""


# null is what Go writes for an empty list


class _Version(msgspec.Struct, rename="camel"):
    group_version: str = ""
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    versions: list[_Version] | None = None
    preferred_version: _Version | None = None

    def paths(self) -> list[str]:
        """Of its versions, the preferred one first."""
        offered = [self.preferred_version, *(self.versions or ())]
        return list(dict.fromkeys(f"/apis/{each.group_version}" for each in offered if each and each.version))


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
        """What it is called; of resources that are called the same, one with the lowest number is meant."""
        full = dict.fromkeys((self.name, self.singular_name or self.name), 0)
        return {(self.kind or "").lower(): 2, **dict.fromkeys(self.short_names or (), 1), **full}


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


def check_name(name: str) -> None:
    """Find out that a name cannot be one resource's.

    Raises:
        ConfigError: It cannot; this says how to ask for what it may mean.
    """
    if not name.strip():
        raise ConfigError("a resource has a name")
    if "," in name:
        raise ConfigError(f"{name!r} is several resources; one is watched at a time")
    if "/" in name:
        raise ConfigError(
            f"{name!r} is no resource's name: one object is chosen by --field-selector metadata.name=NAME, "
            "a version is named as in deployments.v1.apps"
        )


async def find_resource(client: Client, name: str, patience: float = GROUP_PATIENCE) -> APIResource:
    """The resource that a name means, as kubectl understands it.

    The name of a built-in resource needs no discovery: where the server refuses that, the package knows it.

    Args:
        client: Whom to ask.
        name: ``pods``, ``po``, ``deployments.apps``, ``deployments.v1.apps``, ``leases.coordination``.
        patience: Seconds for each group that the name does not name.

    Raises:
        ConfigError: The server has no such resource that can be watched; this names one that is spelt alike.
        AioInformerError: It could not be asked; a TransportError also where a group that could not be may have it.
    """

    async def documents(path: str, timeout: float) -> Any:
        return await client.get_json(path, timeout=timeout)

    failures: dict[str, AioInformerError] = {}
    try:
        return await _find(documents, client.server, name, patience, failures)
    except AioInformerError as error:
        try:
            known = await _find(_built_in, "built in", name, patience, {})
        except ConfigError:
            raise error from None
        why = [error, failures.get(f"/apis/{known.api_version}")]
        refusal = next((each for each in why if _is_refusal(each)), None)
        if refusal is None:
            raise
    logger.warning(
        "%s; %s is taken for the built-in %s of %s", refusal, name, known.plural, known.api_version
    )
    return known


async def _find(
    documents: Documents, server: str, name: str, patience: float, failures: dict[str, AioInformerError]
) -> APIResource:
    """The resource that a name means by some documents; ``failures`` gets why a group's could not be read."""
    word, _, group = name.lower().partition(".")
    paths: list[str] = []
    matches: list[tuple[int, bool, str, _Resource]] = []
    plurals: dict[str, str] = {}

    async def look(asked: list[str]) -> bool:
        """Look among some versions; whether all that others have comes after what is there."""
        paths.extend(asked)
        is_one_group = asked == [CORE] or (
            bool(group) and len({path.rpartition("/")[0] for path in asked}) == 1
        )
        for path, offered in zip(
            asked, await _offered(documents, asked, is_one_group, patience), strict=True
        ):
            if isinstance(offered, AioInformerError):
                if is_one_group:
                    raise offered
                failures[path] = offered
                continue  # a group whose own server is down hides no other's
            for each in offered:
                ranks = each.ranks()
                is_watchable = "watch" in (each.verbs or ())
                if word in ranks:
                    matches.append((ranks[word], not is_watchable, path, each))
                if is_watchable:
                    plurals.update(dict.fromkeys(ranks, each.name))
        return any((rank, is_hidden) == (0, False) for rank, is_hidden, _, _ in matches)

    is_core = group.removesuffix(".") == "v1"
    if not ((is_core or not group) and await look([CORE])) and not is_core:
        groups = await _ask(documents, "/apis", _Groups)
        await look(_group_versions(groups.groups or [], group))
    if matches:
        _, is_hidden, path, found = min(matches, key=lambda match: match[:2])
        if is_hidden:
            raise ConfigError(f"the server {server} has {found.name!r}, but not to be watched")
        for earlier in paths[: paths.index(path)]:
            if earlier in failures:
                logger.warning(
                    "%s is that of %s; what comes before failed: %s", name, path, failures[earlier]
                )
        return APIResource(
            path.removeprefix("/apis/").removeprefix("/api/"), found.name, bool(found.namespaced)
        )
    alike = (plurals[known] + name[len(word) :] for known in get_close_matches(word, plurals, n=1))
    hint = "".join(f". Did you mean {each!r}?" for each in alike)
    why = [*failures.values()]
    unless = f" (unless it is where this failed: {'; '.join(map(str, why))})" if why else ""
    text = f"the server {server} has no resource {name!r}{hint}{unless}"
    if any(_is_away(each) for each in why):
        raise TransportError(text)  # it may be there in a moment
    raise ConfigError(text)


def _is_away(error: AioInformerError) -> bool:
    """Whether what could not be asked may answer in a moment."""
    if isinstance(error, ApiError):
        return error.is_too_many_requests or error.status in UNAVAILABLE
    return isinstance(error, TransportError)


def _is_refusal(error: AioInformerError | None) -> bool:
    """Whether a server answers, and will not say what it has: to those whom it knows, and not only for now."""
    return isinstance(error, DecodeError) or (
        isinstance(error, ApiError) and error.status != 401 and not _is_away(error)
    )


async def _built_in(path: str, timeout: float) -> Any:
    """What a server says that has the built-in resources: the embedded one."""
    return _built_in_documents()(path)


@cache
def _built_in_documents() -> Callable[[str], Any]:
    from ..testing.builtin import BUILTIN
    from ..testing.discovery import Discovery
    from ..testing.requests import parse_request
    from ..testing.resources import Registry

    discovery = Discovery(Registry(BUILTIN))

    def document(path: str) -> Any:
        body = discovery.answer(parse_request("GET", path, {}), "").body
        assert isinstance(body, bytes)
        return msgspec.json.decode(body)

    return document


def _group_versions(groups: list[_Group], group: str) -> list[str]:
    """Paths of the API versions of groups in which to look, of each group the preferred one first."""
    version, _, rest = group.partition(".")
    if (named := f"/apis/{rest}/{version}") in (path for each in groups for path in each.paths()):
        return [named]
    named_so = [each for each in groups if group and each.name == group]
    asked = named_so or [each for each in groups if each.name.startswith(group)]
    return [path for each in asked for path in each.paths()]


async def _offered(
    documents: Documents, paths: list[str], is_one_group: bool, patience: float
) -> list[list[_Resource] | AioInformerError]:
    """The resources of each version, or why they are not known."""

    async def offered(path: str) -> list[_Resource] | AioInformerError:
        timeout = READ_TIMEOUT if is_one_group else patience
        try:
            resources = (await _ask(documents, path, _Resources, timeout)).resources or []
        except AioInformerError as error:
            return error
        return [each for each in resources if "/" not in each.name]

    return await asyncio.gather(*map(offered, paths))


async def _ask(documents: Documents, path: str, form: type[T], timeout: float = READ_TIMEOUT) -> T:
    answer = await documents(path, timeout)
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise DecodeError(f"get {path}: the answer is no discovery document: {error}") from error
