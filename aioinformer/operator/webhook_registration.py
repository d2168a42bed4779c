"""The registration of an operator's admission webhooks at the server, as long as they are served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ..client import Client
from ..errors import AioInformerError, message_of
from ..resources import Resource
from .operator import Operator
from .rights import Right
from .webhooks import Reached

logger = logging.getLogger(__name__)

GROUP = "admissionregistration.k8s.io"

CHECK_EVERY = 10.0
"""Seconds between two applies: the authority may have changed, or another user the configurations."""
POLL = 1.0
"""Seconds between checks whether this process leads."""


def registration_rights(operator: Operator, name: str) -> list[Right]:
    """Return what an operator needs to register its webhooks in configurations of this name that exist."""
    return [
        Right(GROUP, f"{kind.lower()}s", False, ("patch",), names=(name,))
        for kind in operator.admission_kinds
    ]


async def register(
    client: Client,
    operator: Operator,
    *,
    name: str | None = None,
    only: Sequence[str] = (),
    **reached: Unpack[Reached],
) -> None:
    """Create or update the configurations of an operator's admission webhooks.

    Args:
        client: Of the server.
        operator: The operator.
        name: The name of the configurations; the operator's if not given.
        only: The only namespaces for which the webhooks are called; ``()`` for all.
        **reached: How the server reaches the webhooks.

    Raises:
        AioInformerError: The server refused, or does not answer.
    """
    for configuration in operator.webhook_configurations(name=name, only=only, **reached):
        kind = configuration["kind"]
        configurations: Resource[dict[str, Any]] = Resource(
            client, f"{GROUP}/v1", f"{kind.lower()}s", dict, kind=kind, field_manager=operator.name
        )
        await configurations.apply(configuration, force=True)


async def keep_registered(
    client: Client,
    operator: Operator,
    address: Callable[[], Reached],
    leads: Callable[[], bool],
    *,
    delay: float,
    name: str,
    only: Sequence[str],
) -> None:
    """Register the webhooks while this process leads, and again when others changed that, until cancelled.

    So the server calls no webhook before a pod serves it, and during a rolling update it calls those of the leader's
    release. The registration stays when the process ends: from then on, the failure policies decide.

    Args:
        client: Of the server.
        operator: The operator.
        address: Returns how the server reaches the webhooks, with the current authority.
        leads: Whether this process leads.
        delay: Seconds until the Service sends requests to this pod.
        name: The name of the configurations.
        only: The only namespaces for which the webhooks are called; ``()`` for all.
    """
    await asyncio.sleep(delay)
    failure: str | None = None
    is_registered = False
    while True:
        if not leads():
            await asyncio.sleep(POLL)
            continue
        try:
            await register(client, operator, name=name, only=only, **address())
        except AioInformerError as error:
            if (text := message_of(error)) != failure:
                logger.warning(
                    "the webhooks were not registered in the configurations %s, which are tried again every %g s. They "
                    "must exist, and the operator must be permitted to patch them, as aioinformer manifests does: %s",
                    name, CHECK_EVERY, text,
                )  # fmt: skip
            failure, is_registered = text, False
        else:
            if not is_registered:
                logger.info("the API server calls the webhooks, as the configurations %s say", name)
            failure, is_registered = None, True
        await asyncio.sleep(CHECK_EVERY)
