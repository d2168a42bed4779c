"""Objects at the server that do not fit the classes of an operator, such as those stored before a class changed."""

from __future__ import annotations

import logging

from ..client import Client
from ..client.lookup import resource_of_class
from ..errors import AioInformerError, DecodeError, message_of
from ..objects.decoders import decoder_of
from ..resources import Resource
from ..typed import CustomResource
from .operator import Operator

logger = logging.getLogger(__name__)

MOST_NAMED = 5
"""Objects that a warning names."""


async def warn_of_unfit_objects(client: Client, operator: Operator) -> None:
    """Log a WARNING for each class of an operator that some objects at the server do not fit."""
    for kind in (kind for versions in operator.custom_resources() for kind in versions):
        try:
            text = await describe_unfit_objects(client, kind)
        except AioInformerError as error:
            logger.warning(
                "the objects at the server were not compared with the class %s: %s",
                kind.__name__, message_of(error),
            )  # fmt: skip
        else:
            if text:
                logger.warning("%s. Give a new field a default, or correct the objects", text)


async def describe_unfit_objects(client: Client, kind: type[CustomResource]) -> str:
    """Return which objects at the server do not fit a class, and why; ``""`` if all fit.

    Raises:
        AioInformerError: The server did not list them.
    """
    decode = decoder_of(kind)
    objects = await Resource(client, resource_of_class(kind)).list()
    mistakes = []
    for obj in objects:
        try:
            decode(obj.raw, None)
        except DecodeError as error:
            mistakes.append(f"{obj.key}: {error}")
    if not mistakes:
        return ""
    more = f" and {len(mistakes) - MOST_NAMED} more" if len(mistakes) > MOST_NAMED else ""
    return (
        f"{len(mistakes)} of {len(objects)} objects do not fit the class {kind.__name__} and are not reconciled: "
        f"{'; '.join(mistakes[:MOST_NAMED])}{more}"
    )
