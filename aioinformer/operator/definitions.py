"""The CustomResourceDefinitions of an operator at the server: install them, or compare them with the classes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Unpack

import anyio

from ..client import Client
from ..errors import ConfigError, InvalidError, RefusedError, said
from ..resources import Resource
from ..typed import crd, diff
from .operator import Operator
from .webhooks import Reached

logger = logging.getLogger(__name__)

Object = dict[str, Any]

TIMEOUT = 30.0
"""Seconds until the server has to serve a new definition."""
POLL = 0.1
MOST_LISTED = 5
"""Differences that a message lists."""


async def install(client: Client, operator: Operator, **reached: Unpack[Reached]) -> None:
    """Create or update the CustomResourceDefinitions of an operator's classes, and wait until they are served.

    Args:
        client: Of the server.
        operator: The operator.
        **reached: How the server reaches its conversion webhooks. Without it, the definitions have no conversion.

    Raises:
        ConfigError: The server does not serve one of them, or calls one invalid, such as one that lacks a version whose
            objects it stores.
        AioInformerError: The server refused, or does not answer.
    """
    definitions = _definitions(client, operator)
    applied = [await _applied(definitions, each) for each in operator.definitions(**reached)]
    for each in applied:
        if lacks := _lacks_conversion(operator, each):
            logger.warning("%s. aioinformer manifests prints a definition with it", lacks)
    for each in applied:
        await _served(definitions, each["metadata"]["name"])


async def register(client: Client, operator: Operator, **reached: Unpack[Reached]) -> None:
    """Create or update the configurations of an operator's admission webhooks.

    Raises:
        AioInformerError: The server refused, or does not answer.
    """
    for each in operator.webhook_configurations(**reached):
        configurations = _resource(client, "admissionregistration.k8s.io/v1", each["kind"], operator)
        await configurations.apply(each, force=True)


async def differences(client: Client, operator: Operator) -> list[str]:
    """Return how the server's CustomResourceDefinitions differ from the classes: one text each.

    A definition is skipped if it is missing, or if this client may not read it.

    Raises:
        AioInformerError: The server does not answer.
    """
    texts = []
    definitions = _definitions(client, operator)
    for versions in operator.custom_resources():
        wanted = crd(*versions)
        name = wanted["metadata"]["name"]
        try:
            found = await definitions.get(name)
        except RefusedError:
            continue
        if lacks := _lacks_conversion(operator, found):
            texts.append(lacks)
        changes = [*_changes(found, wanted)]
        if changes:
            classes = " and ".join(each.__name__ for each in versions)
            more = f" and {len(changes) - MOST_LISTED} more" if len(changes) > MOST_LISTED else ""
            texts.append(
                f"{name} at the server differs from the class {classes}: {', '.join(changes[:MOST_LISTED])}{more}"
            )
    return texts


def _definitions(client: Client, operator: Operator) -> Resource[Object]:
    return _resource(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", operator)


def _resource(client: Client, api_version: str, kind: str, operator: Operator) -> Resource[Object]:
    return Resource(client, api_version, f"{kind.lower()}s", dict, kind=kind, field_manager=operator.name)


async def _applied(definitions: Resource[Object], definition: Object) -> Object:
    try:
        return await definitions.apply(definition, force=True)
    except InvalidError as error:
        raise ConfigError(
            f"{definition['metadata']['name']} was not installed: {said(error)}. If the server's definition is newer "
            "than the class, run the newer operator; otherwise change the class"
        ) from error


async def _served(definitions: Resource[Object], name: str) -> None:
    conditions: dict[str, Object] = {}
    with anyio.move_on_after(TIMEOUT):
        while True:
            status = (await definitions.get(name)).get("status") or {}
            conditions = {each["type"]: each for each in status.get("conditions") or []}
            if conditions.get("Established", {}).get("status") == "True":
                if unenforced := conditions.get("ValidationRulesNotEnforced"):
                    logger.warning("%s: %s", name, unenforced["message"])
                return
            await asyncio.sleep(POLL)
    why = conditions.get("NamesAccepted", {}).get("message") or "the server does not say why"
    raise ConfigError(f"{name} is not served after {TIMEOUT:g} s: {why}")


def _lacks_conversion(operator: Operator, found: Object) -> str:
    """Return what is wrong with a definition whose versions only the operator can convert; "" for others."""
    name = found["metadata"]["name"]
    strategy = (found["spec"].get("conversion") or {}).get("strategy")
    if name not in operator.converted_kinds or strategy == "Webhook":
        return ""
    return f"{name} at the server has no conversion webhook: the server drops fields that the stored version lacks"


def _changes(found: Object, wanted: Object) -> Iterator[str]:
    """Yield what an update to the classes would change."""
    if found["spec"]["scope"] != wanted["spec"]["scope"]:
        yield f"it is {found['spec']['scope']}, and the class {wanted['spec']['scope']}"
    served = {each["name"]: each for each in found["spec"]["versions"]}
    for version in wanted["spec"]["versions"]:
        name = version["name"]
        if name not in served:
            yield f"the server has no version {name}, only {', '.join(served)}"
            continue
        for part in ("schema", "subresources"):
            for change in diff(served[name].get(part) or {}, version.get(part) or {}):
                # With the path as objects have it.
                steps = [str(each) for each in change.path if each not in ("openAPIV3Schema", "properties")]
                yield f"{name} {change._replace(path=tuple(steps))}"
