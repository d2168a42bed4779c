"""The CustomResourceDefinitions of an operator at the server: install them, or compare them with the classes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Unpack

import anyio

from ..client import Client
from ..errors import (
    AioInformerError,
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    RefusedError,
    message_of,
)
from ..resources import Resource
from ..typed import crd, diff
from ..typed.pruning import unconverted_fields
from .definition_updates import digest, lacks_versions, reason_to_keep, with_lineage
from .operator import Operator
from .owning import ABSENT
from .published import published_definition
from .webhooks import Reached

logger = logging.getLogger(__name__)

Object = dict[str, Any]

TIMEOUT = 30.0
"""Seconds until the server has to serve a new definition."""
POLL = 0.1
CHECK_EVERY = 10.0
"""Seconds between checks whether the definitions are still there."""
MOST_LISTED = 5
"""Differences that a message lists."""

IF_NEWER = (
    "If the server's definition is newer than the class, run the newer operator; otherwise change the class"
)
FORCE = "pass --force-crds, or install(..., force=True)"


class BeingDeletedError(ConfigError):
    """A CustomResourceDefinition is being deleted, and its objects keep it."""


async def install(
    client: Client, operator: Operator, *, force: bool = False, **reached: Unpack[Reached]
) -> None:
    """Create or update the CustomResourceDefinitions of an operator's classes, and wait until they are served.

    A definition at the server that is newer stays, with a WARNING: it has replaced this one before, or has served
    versions or fields that the classes lack. One that is being deleted is created again when it is gone.

    Args:
        client: Of the server.
        operator: The operator.
        force: Whether to replace newer definitions, too. The server drops the fields that the classes lack.
        **reached: How the server reaches its conversion webhooks. Without it, the definitions have no conversion.

    Raises:
        BeingDeletedError: A definition is still being deleted after TIMEOUT.
        ConfigError: The server does not serve one of them, or calls one invalid; or a newer one lacks a version of the
            classes.
        AioInformerError: The server refused, or does not answer.
    """
    for text in find_unconverted(operator):
        logger.warning("%s", text)
    definitions = _definitions(client, operator)
    wanted = operator.definitions(**reached)
    installed = [await _install(definitions, definition, force=force) for definition in wanted]
    for definition in installed:
        if lacks := _lacks_conversion(operator, definition):
            logger.warning("%s. aioinformer manifests prints a definition with it", lacks)
    for definition in installed:
        await _wait_served(definitions, definition["metadata"]["name"])


async def keep_installed(client: Client, operator: Operator, **reached: Unpack[Reached]) -> None:
    """Install the definitions again whenever one is deleted, until cancelled. Arguments: see ``install``."""
    definitions = _definitions(client, operator)
    names = [definition["metadata"]["name"] for definition in operator.definitions()]
    logged = ""
    while True:
        await asyncio.sleep(CHECK_EVERY)
        try:
            missing = [name for name in names if await _read(definitions, name) is None]
            if missing:
                logger.warning("%s: deleted while the operator runs; installing it again", ", ".join(missing))
                await install(client, operator, **reached)
            logged = ""
        except AioInformerError as error:
            if (text := message_of(error)) != logged:
                logger.warning("the CustomResourceDefinitions cannot be checked or installed: %s", text)
            logged = text


def find_unconverted(operator: Operator) -> list[str]:
    """Return which kinds have versions with different fields and no conversion: one text each."""
    texts = []
    for versions in operator.custom_resources():
        definition = crd(*versions)
        name = definition["metadata"]["name"]
        if name in operator.converted_kinds or not (fields := unconverted_fields(definition)):
            continue
        more = f" and {len(fields) - MOST_LISTED} more" if len(fields) > MOST_LISTED else ""
        texts.append(
            f"{name}: its versions have different fields and no conversion, so the server drops what another version "
            f"lacks: {', '.join(fields[:MOST_LISTED])}{more}. Declare conversions: @operator.convert(Old, New)"
        )
    return texts


def digests_of(operator: Operator) -> dict[str, str]:
    """Return a digest of each definition, by its name; without the classes that cannot be a definition."""
    digests = {}
    for versions in operator.custom_resources():
        with suppress(ConfigError):  # which matters to install alone
            definition = crd(*versions)
            digests[definition["metadata"]["name"]] = digest(definition)
    return digests


class Comparison(NamedTuple):
    """How the server's CustomResourceDefinitions differ from the classes.

    Attributes:
        differences: One text each.
        unread: The names of those that are missing, or that this client cannot read.
    """

    differences: list[str]
    unread: list[str]


async def compare(client: Client, operator: Operator) -> Comparison:
    """Compare the server's CustomResourceDefinitions with the classes.

    A definition that this client may not read is taken from what the server publishes for all.

    Raises:
        AioInformerError: The server does not answer.
    """
    comparison = Comparison(find_unconverted(operator), [])
    definitions = _definitions(client, operator)
    for versions in operator.custom_resources():
        wanted = crd(*versions)
        present: Object | None
        try:
            present = await definitions.get(wanted["metadata"]["name"])
        except ForbiddenError:
            present = await published_definition(client, wanted)
        except RefusedError:
            present = None
        if present is None:
            comparison.unread.append(wanted["metadata"]["name"])
            continue
        if lacks := _lacks_conversion(operator, present):
            comparison.differences.append(lacks)
        if changes := [*_changes(present, wanted)]:
            classes = " and ".join(kind.__name__ for kind in versions)
            more = f" and {len(changes) - MOST_LISTED} more" if len(changes) > MOST_LISTED else ""
            comparison.differences.append(
                f"{wanted['metadata']['name']} at the server differs from the class {classes}: "
                f"{', '.join(changes[:MOST_LISTED])}{more}"
            )
    return comparison


def _definitions(client: Client, operator: Operator) -> Resource[Object]:
    return _resource(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", operator)


def _resource(client: Client, api_version: str, kind: str, operator: Operator) -> Resource[Object]:
    return Resource(client, api_version, f"{kind.lower()}s", dict, kind=kind, field_manager=operator.name)


async def _install(definitions: Resource[Object], wanted: Object, *, force: bool) -> Object:
    """Create or update a definition unless the server's must stay; return what the server has then."""
    name, deadline = wanted["metadata"]["name"], asyncio.get_running_loop().time() + TIMEOUT
    while True:
        present = await _until_not_deleted(definitions, name, deadline)
        if present is not None and not force and (reason := reason_to_keep(present, wanted)):
            _report_kept(name, reason, present, wanted)
            return present
        version = ABSENT if present is None else present["metadata"]["resourceVersion"]
        try:
            return await _apply(definitions, with_lineage(wanted, present), version)
        except ConflictError:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(POLL)  # it has changed since it was read


async def _apply(definitions: Resource[Object], definition: Object, version: str) -> Object:
    metadata = {**definition["metadata"], "resourceVersion": version}
    try:
        return await definitions.apply({**definition, "metadata": metadata}, force=True)
    except InvalidError as error:
        raise ConfigError(f"{metadata['name']} was not installed: {message_of(error)}. {IF_NEWER}") from error


def _report_kept(name: str, reason: str, present: Object, wanted: Object) -> None:
    """Log that the server's definition stays.

    Raises:
        ConfigError: The operator cannot work with it.
    """
    if lacks_versions(present, wanted):
        raise ConfigError(f"{name} was not installed: {reason}. {IF_NEWER}, or replace it: {FORCE}")
    logger.warning(
        "%s was not installed, and the server's definition stays: %s. To replace it nevertheless: %s",
        name, reason, FORCE,
    )  # fmt: skip


async def _until_not_deleted(definitions: Resource[Object], name: str, deadline: float) -> Object | None:
    """Return the server's definition, None if there is none; wait while it is being deleted.

    Raises:
        BeingDeletedError: It still is at the deadline.
    """
    is_logged = False
    while True:
        present = await _read(definitions, name)
        if present is None or (since := present["metadata"].get("deletionTimestamp")) is None:
            return present
        why = _conditions(present).get("Terminating", {}).get("message") or "the server does not say why"
        if asyncio.get_running_loop().time() >= deadline:
            raise BeingDeletedError(
                f"{name} is being deleted since {since} ({why}): the server deletes its objects first, and finalizers "
                "keep them, such as those of this operator, which has to run to remove them"
            )
        if not is_logged:
            is_logged = True
            logger.warning(
                "%s is being deleted (%s): waiting until it is gone, to create it again", name, why
            )
        await asyncio.sleep(POLL)


async def _read(definitions: Resource[Object], name: str) -> Object | None:
    try:
        return await definitions.get(name)
    except NotFoundError:
        return None


def _conditions(definition: Object) -> dict[str, Object]:
    """Return the conditions of a definition, by their type."""
    return {
        condition["type"]: condition for condition in (definition.get("status") or {}).get("conditions") or []
    }


async def _wait_served(definitions: Resource[Object], name: str) -> None:
    conditions: dict[str, Object] = {}
    with anyio.move_on_after(TIMEOUT):
        while True:
            conditions = _conditions(await definitions.get(name))
            if conditions.get("Established", {}).get("status") == "True":
                if unenforced := conditions.get("ValidationRulesNotEnforced"):
                    logger.warning("%s: %s", name, unenforced["message"])
                return
            await asyncio.sleep(POLL)
    why = conditions.get("NamesAccepted", {}).get("message") or "the server does not say why"
    raise ConfigError(f"{name} is not served after {TIMEOUT:g} s: {why}")


def _lacks_conversion(operator: Operator, present: Object) -> str:
    """Return what is wrong with a definition whose versions only the operator can convert; "" for others."""
    name = present["metadata"]["name"]
    strategy = (present["spec"].get("conversion") or {}).get("strategy")
    if name not in operator.converted_kinds or strategy == "Webhook":
        return ""
    return f"{name} at the server has no conversion webhook: the server drops fields that the stored version lacks"


def _changes(present: Object, wanted: Object) -> Iterator[str]:
    """Yield what an update to the classes would change."""
    if present["spec"]["scope"] != wanted["spec"]["scope"]:
        yield f"it is {present['spec']['scope']}, and the class {wanted['spec']['scope']}"
    served = {version["name"]: version for version in present["spec"]["versions"]}
    for version in wanted["spec"]["versions"]:
        name = version["name"]
        if name not in served:
            yield f"the server has no version {name}, only {', '.join(served)}"
            continue
        for part in ("schema", "subresources"):
            for change in diff(served[name].get(part) or {}, version.get(part) or {}):
                # With the path as objects have it.
                steps = [str(step) for step in change.path if step not in ("openAPIV3Schema", "properties")]
                yield f"{name} {change._replace(path=tuple(steps))}"
        for part in ("selectableFields", "deprecated", "deprecationWarning"):
            if (has := served[name].get(part)) != (wants := version.get(part)):
                yield f"{name} {part}: {has or 'none'} -> {wants or 'none'}"
