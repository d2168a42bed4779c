"""Which resource a name means: plural, singular, kind or short name, with or without its group."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import Any, NamedTuple

from ..errors import ApiError, ConfigError
from ..listwatch import Client


class Resource(NamedTuple):
    """A resource as the server offers it."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool


async def find_resource(client: Client, name: str) -> Resource:
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
    lists = await asyncio.gather(*(_resources(client, path, strict=bool(group)) for path in paths))
    for path, resources in zip(paths, lists, strict=True):
        for each in resources:
            if word in _names(each):
                api_version = path.removeprefix("/apis/").removeprefix("/api/")
                return Resource(api_version, each["name"], each.get("kind", ""), bool(each.get("namespaced")))
    plurals = {known: each["name"] for resources in lists for each in resources for known in _names(each)}
    alike = (plurals[known] + name[len(word) :] for known in get_close_matches(word, plurals, n=1))
    hint = "".join(f". Did you mean {each!r}?" for each in alike)
    raise ConfigError(f"the server {client.server} has no resource {name!r}{hint}")


async def _group_versions(client: Client, group: str) -> list[str]:
    """Paths of the API versions in which to look: the core's first, then each group's preferred one."""
    groups: list[dict[str, Any]] = (await client.get_json("/apis")).get("groups") or []
    if not group:
        return ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)]
    version, _, rest = group.partition(".")
    for each in groups:
        if each["name"] == group:
            return [f"/apis/{each['preferredVersion']['groupVersion']}"]
        if each["name"] == rest and version in {offered["version"] for offered in each["versions"]}:
            return [f"/apis/{rest}/{version}"]
    return ["/api/v1"] if group == "v1" else []


async def _resources(client: Client, path: str, strict: bool) -> list[dict[str, Any]]:
    """The resources of one version. A group whose own server is down hides no other group's."""
    try:
        offered: list[dict[str, Any]] = (await client.get_json(path)).get("resources") or []
    except ApiError:
        if strict:
            raise
        return []
    return [each for each in offered if "/" not in each["name"] and "watch" in each.get("verbs", ())]


def _names(resource: dict[str, Any]) -> set[str]:
    return {
        resource["name"],
        resource.get("singularName") or resource["name"],
        str(resource.get("kind", "")).lower(),
        *(resource.get("shortNames") or ()),
    }
