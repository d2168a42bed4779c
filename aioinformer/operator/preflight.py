"""Checks before an operator starts: whether the server has its collections and permits what it does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from .._core.tasks import gather
from ..client import Client
from ..errors import AioInformerError, ApiError, ConfigError, message_of
from ..informer import SharedIndexInformer
from ..listwatch.collection import Collection
from ..listwatch.list_watch import ResourceListWatch
from .definitions import compare
from .kinds import ResourceReference, base_of, resource_named
from .leases import election_lease_of
from .manager import Manager
from .operator import Operator
from .reviews import AUTHENTICATION, AUTHORIZATION, TIMEOUT, review
from .rights import ELECT, LEASES, REVIEW_TOKENS, SHARE, Right, merge
from .run_options import RunOptions
from .webhook_registration import registration_rights

logger = logging.getLogger(__name__)


async def check(operator: Operator | None, options: RunOptions, manager: Manager) -> None:
    """Check that the server has what an operator reads, and permits what it does. Log what else is missing.

    Args:
        operator: The operator; None if a function made the manager.
        options: How it runs.
        manager: The manager.

    Raises:
        ConfigError: The operator cannot work at this server.
    """
    client, target = manager.client, options.target
    try:
        if operator is None:
            await _require_collections(manager, "Install its CustomResourceDefinition")
        else:
            await _require_collections(
                manager,
                f"Install it: pass --install-crds, or apply what aioinformer manifests {target} prints; --dev needs "
                "no cluster",
            )
            if options.watched:
                _require_scopes(client, operator.resources)
            compared = () if options.installs else (await compare(client, operator)).differences
            for difference in compared:
                logger.warning(
                    "%s. If the class is newer, install its definition: aioinformer manifests %s prints it. If the "
                    "server's is newer, run the newer operator",
                    difference, target,
                )  # fmt: skip
        missing = await missing_rights(client, list_needed(operator, options, manager))
    except ConfigError:
        raise
    except AioInformerError as error:
        logger.warning("the rights were not checked, and the operator starts anyway: %s", message_of(error))
        return
    if not missing:
        return
    rights = f"{await user_of(client)} may not {in_words(missing)}"
    grant = "Grant it by a Role or ClusterRole"
    if operator is not None:
        grant = f"Grant it: {options.manifests_command} prints the rules"
    if any({"list", "watch"} & set(needed_right.right.verbs) for needed_right in missing):
        elsewhere = "" if options.watched else ", or pass --namespace to work in a single one"
        raise ConfigError(f"{rights}. {grant}{elsewhere}")
    logger.warning("%s; the operator starts anyway. %s", rights, grant)


class Needed(NamedTuple):
    """A right that is needed somewhere.

    Attributes:
        right: The right.
        namespace: The namespace; ``""`` for all, and for cluster-scoped resources.
        name: The object's name; ``""`` for all.
    """

    right: Right
    namespace: str = ""
    name: str = ""


def list_needed(operator: Operator | None, options: RunOptions, manager: Manager) -> Iterator[Needed]:
    """Yield the rights that an operator needs, where it needs them. Arguments: see ``check``."""
    if options.metrics_auth:
        yield from map(Needed, REVIEW_TOKENS)
    if operator is None:
        for collection in collections_of(manager):
            right = Right(collection.group, collection.plural, bool(collection.namespace), ("list", "watch"))
            yield Needed(right, collection.namespace or "")
        return
    for right in operator.rights(leader_election=False):
        for namespace in (options.watched if right.namespaced else ()) or ("",):
            for name in right.names or ("",):
                yield Needed(right, namespace, name)
    if options.webhook_service and options.webhook_port:
        name = options.webhook_configuration or operator.name
        for right in registration_rights(operator, name):
            yield Needed(right, name=name)
    if options.leader_elect:
        yield Needed(
            Right.of(LEASES, ELECT),
            options.lease_namespace or manager.client.namespace,
            election_lease_of(operator.name, options),
        )
    if options.shards:
        yield Needed(Right.of(LEASES, SHARE), options.lease_namespace or manager.client.namespace)


def collections_of(manager: Manager) -> list[Collection]:
    """Return the collections that the informers of a manager read."""
    return _collections_of(manager.informers)


def required_collections_of(manager: Manager) -> list[Collection]:
    """Return the collections that the server must have: all but those that are optional."""
    return _collections_of(informer for informer in manager.informers if not informer.is_optional)


def _collections_of(informers: Iterable[SharedIndexInformer[Any]]) -> list[Collection]:
    reading = (list_watch for informer in informers for list_watch in informer.list_watches.values())
    return list(
        dict.fromkeys(
            list_watch.resource for list_watch in reading if isinstance(list_watch, ResourceListWatch)
        )
    )


async def missing_rights(client: Client, needed: Iterable[Needed]) -> list[Needed]:
    """Return the rights that the server does not give this client, with the missing verbs.

    Raises:
        AioInformerError: The server does not answer, or reviews no access.
    """
    asked = [
        (needed_right, verb) for needed_right in dict.fromkeys(needed) for verb in needed_right.right.verbs
    ]
    allowed = await gather(*(_is_allowed(client, needed_right, verb) for needed_right, verb in asked))
    refused: dict[str, list[Right]] = {}
    for (needed_right, verb), is_allowed in zip(asked, allowed, strict=True):
        if not is_allowed:
            missing = msgspec.structs.replace(needed_right.right, verbs=(verb,))
            refused.setdefault(needed_right.namespace, []).append(missing)
    return [Needed(right, namespace) for namespace, rights in refused.items() for right in merge(rights)]


async def user_of(client: Client) -> str:
    """Return how the server calls this client's user; ``"this user"`` if it does not say."""
    try:
        status = await review(client, AUTHENTICATION, "SelfSubjectReview")
    except ApiError:
        return "this user"
    return str(status.get("userInfo", {}).get("username") or "this user")


def in_words(missing: Iterable[Needed]) -> str:
    """Return rights in words: ``"list, watch pods in all namespaces"``."""
    return "; ".join(
        f"{needed_right.right} in {needed_right.namespace}"
        if needed_right.namespace
        else f"{needed_right.right}{' in all namespaces' if needed_right.right.namespaced else ''}"
        for needed_right in missing
    )


async def _require_collections(manager: Manager, advice: str) -> None:
    """Check that the server has the collections of a manager's informers, unless they are optional.

    Raises:
        ConfigError: Some are missing; the message ends with the advice.
        AioInformerError: The server does not answer.
    """
    if texts := await missing_collections(manager.client, required_collections_of(manager)):
        raise ConfigError(f"{'; '.join(texts)}. {advice}")


async def missing_collections(client: Client, collections: Sequence[Collection]) -> list[str]:
    """Return which collections the server does not have: one text each, with what it has instead.

    Raises:
        AioInformerError: The server does not answer.
    """
    items = await gather(*(_exists(client, collection) for collection in collections))
    missing = [collection for collection, is_there in zip(collections, items, strict=True) if not is_there]
    return [await _explain(client, collection) for collection in missing]


def _require_scopes(client: Client, resources: Iterable[ResourceReference]) -> None:
    """Check that discovered custom resources have the scope that is declared: rights in a namespace follow from it.

    Raises:
        ConfigError: One is cluster-scoped, and declared as namespaced.
    """
    for resource in resources:
        name = base_of(resource)
        served = client.discovery.known(name) if isinstance(name, str) else None
        if served is not None and not served.namespaced and resource_named(resource).namespaced:
            raise ConfigError(
                f"{name} is cluster-scoped at the server {client.server}, and rights in one namespace do not suffice: "
                f"declare it as Kind({name!r}, namespaced=False), and install the rules that aioinformer manifests "
                "prints then"
            )


async def _is_allowed(client: Client, needed: Needed, verb: str) -> bool:
    right = needed.right
    wanted = {
        "namespace": needed.namespace,
        "name": needed.name,
        "verb": verb,
        "group": right.group,
        "resource": right.plural,
        "subresource": right.subresource,
    }
    spec = {"resourceAttributes": wanted}
    status = await review(client, AUTHORIZATION, "SelfSubjectAccessReview", spec=spec)
    return bool(status.get("allowed"))


async def _exists(client: Client, collection: Collection) -> bool:
    try:
        await client.get(collection.path, [("limit", "1")], timeout=TIMEOUT)
    except ApiError as error:
        if error.status == 403:
            return True  # the rights are checked elsewhere
        if error.status == 404:
            return False
        raise
    return True


async def _explain(client: Client, collection: Collection) -> str:
    """Return that a collection is missing, and what the server has in its place."""
    name = f"{collection.plural}.{collection.group}"
    text = f"the server {client.server} has no {name} in {collection.api_version}"
    for wanted in (name, collection.plural):
        try:
            served = await client.discovery.find(wanted, refresh=True)
        except AioInformerError:
            continue  # there is none of this name, or the server does not say
        if served.plural == collection.plural and served.group == collection.group:
            return f"{text}; it serves {served.api_version}"
        if served.plural == collection.plural:
            return f"{text}; it has {served.plural}.{served.group}: is the group of the class right?"
    return text
