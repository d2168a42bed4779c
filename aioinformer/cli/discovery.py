"""Which resource a name means: plural, singular, short name or kind, with or without its group."""

from __future__ import annotations

import asyncio
import logging
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

import msgspec

from ..errors import AioInformerError, ApiError, ConfigError, DecodeError, TransportError
from ..listwatch import Client
from ..listwatch.health import UNAVAILABLE
from ..listwatch.transport import READ_TIMEOUT

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

    Args:
        client: Whom to ask.
        name: ``pods``, ``po``, ``deployments.apps``, ``deployments.v1.apps``, ``leases.coordination``.
        patience: Seconds for each group that the name does not name.

    Raises:
        ConfigError: The server has no such resource that can be watched; this names one that is spelt alike.
        AioInformerError: It could not be asked; a TransportError also where a group that could not be may have it.
    """
    word, _, group = name.lower().partition(".")
    paths = _group_versions((await _ask(client, "/apis", _Groups)).groups or [], group)
    is_one_group = len({path.rpartition("/")[0] for path in paths}) == 1
    matches: list[tuple[int, bool, str, _Resource]] = []
    plurals: dict[str, str] = {}
    failures: dict[str, AioInformerError] = {}
    for batch in (paths[:1], paths[1:]) if paths[:1] == [CORE] else (paths,):
        for path, offered in zip(batch, await _offered(client, batch, is_one_group, patience), strict=True):
            if isinstance(offered, AioInformerError):
                if is_one_group or path == CORE:
                    raise offered
                failures[path] = offered
                continue  # a group whose own server is down hides no other's
            for each in offered:
                ranks = each.ranks()
                is_watchable = "watch" in (each.verbs or ())
                if word in ranks:
                    matches.append((ranks[word], not is_watchable, path, each))
                if is_watchable:
                    plurals |= dict.fromkeys(ranks, each.name)
        if any((rank, is_hidden) == (0, False) for rank, is_hidden, _, _ in matches):
            break  # whatever other groups have comes after it
    if matches:
        _, is_hidden, path, found = min(matches, key=lambda match: match[:2])
        if is_hidden:
            raise ConfigError(f"the server {client.server} has {found.name!r}, but not to be watched")
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
    text = f"the server {client.server} has no resource {name!r}{hint}{unless}"
    if any(_is_away(each) for each in why):
        raise TransportError(text)  # it may be there in a moment
    raise ConfigError(text)


def _is_away(error: AioInformerError) -> bool:
    """Whether what could not be asked may answer in a moment."""
    if isinstance(error, ApiError):
        return error.is_too_many_requests or error.status in UNAVAILABLE
    return isinstance(error, TransportError)


def _group_versions(groups: list[_Group], group: str) -> list[str]:
    """Paths of the API versions in which to look: the core's first; of each group the preferred one first."""
    version, _, rest = group.partition(".")
    if version == "v1" and not rest:
        return [CORE]
    if (named := f"/apis/{rest}/{version}") in (path for each in groups for path in each.paths()):
        return [named]
    named_so = [each for each in groups if group and each.name == group]
    asked = named_so or [each for each in groups if each.name.startswith(group)]
    return [*(() if group else (CORE,)), *(path for each in asked for path in each.paths())]


async def _offered(
    client: Client, paths: list[str], is_one_group: bool, patience: float
) -> list[list[_Resource] | AioInformerError]:
    """The resources of each version, or why they are not known."""

    async def offered(path: str) -> list[_Resource] | AioInformerError:
        timeout = READ_TIMEOUT if is_one_group or path == CORE else patience
        try:
            resources = (await _ask(client, path, _Resources, timeout)).resources or []
        except AioInformerError as error:
            return error
        return [each for each in resources if "/" not in each.name]

    return await asyncio.gather(*map(offered, paths))


async def _ask(client: Client, path: str, form: type[T], timeout: float = READ_TIMEOUT) -> T:
    answer = await client.get_json(path, timeout=timeout)
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise DecodeError(f"get {path}: the answer is no discovery document: {error}") from error
