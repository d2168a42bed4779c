"""Which resource a name means: plural, singular, kind or short name, with or without its group."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import Any, NamedTuple

from ..errors import ApiError, ConfigError
from ..listwatch import Client

CORE = "/api/v1"


class APIResource(NamedTuple):
    """A resource as the server offers it."""

    api_version: str
    plural: str
    namespaced: bool


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


async def find_resource(client: Client, name: str) -> APIResource:
    """The resource that a name means, as kubectl understands it.

    Args:
        client: Whom to ask.
        name: ``pods``, ``po``, ``deployments.apps``, ``deployments.v1.apps``, ``caves.example.com``.

    Raises:
        ConfigError: The server has no such resource; this names one that is spelt alike.
        AioInformerError: It could not be asked.
    """
    word, _, group = name.lower().partition(".")
    paths = await _group_versions(client, group)
    lists = await asyncio.gather(*(_resources(client, path) for path in paths))
    plurals: dict[str, str] = {}
    failure = ""
    for path, offered in zip(paths, lists, strict=True):
        if isinstance(offered, ApiError):
            if group or path == CORE:
                raise offered
            failure = failure or f" (unless it is where this failed: {offered})"
            continue  # a group whose own server is down hides no other's
        for each in offered:
            plural: str = each["name"]
            names = _names(each)
            if word in names:
                api_version = path.removeprefix("/apis/").removeprefix("/api/")
                return APIResource(api_version, plural, bool(each.get("namespaced")))
            plurals |= dict.fromkeys(names, plural)
    alike = (plurals[known] + name[len(word) :] for known in get_close_matches(word, plurals, n=1))
    hint = "".join(f". Did you mean {each!r}?" for each in alike)
    raise ConfigError(f"the server {client.server} has no resource {name!r}{hint}{failure}")


async def _group_versions(client: Client, group: str) -> list[str]:
    """Paths of the API versions in which to look: the core's first; of each group the preferred one first."""
    groups: list[dict[str, Any]] = (await client.get_json("/apis")).get("groups") or []
    if not group:
        return [CORE, *(path for each in groups for path in _versions(each))]
    version, _, rest = group.partition(".")
    for each in groups:
        if each["name"] == group:
            return _versions(each)
        if each["name"] == rest and version in {offered["version"] for offered in each["versions"]}:
            return [f"/apis/{rest}/{version}"]
    return [CORE] if group == "v1" else []


def _versions(group: dict[str, Any]) -> list[str]:
    offered = [group["preferredVersion"], *group["versions"]]
    return list(dict.fromkeys(f"/apis/{each['groupVersion']}" for each in offered))


async def _resources(client: Client, path: str) -> list[dict[str, Any]] | ApiError:
    """The resources of one version that can be watched, or why they are not known."""
    try:
        offered: list[dict[str, Any]] = (await client.get_json(path)).get("resources") or []
    except ApiError as error:
        return error
    return [each for each in offered if "/" not in each["name"] and "watch" in each.get("verbs", ())]


def _names(resource: dict[str, Any]) -> set[str]:
    return {
        resource["name"],
        resource.get("singularName") or resource["name"],
        str(resource.get("kind", "")).lower(),
        *(resource.get("shortNames") or ()),
    }
