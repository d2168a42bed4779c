"""What a class says about its fields, as msgspec's types: of Structs by msgspec, of pydantic models by ``model_types``.

All that reads classes goes by these types: schemas, shapes of objects, checks of fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import inspect

from .models import is_model


class ModelType(inspect.DataclassType):
    """A pydantic model.

    Attributes:
        tag_field: The field that tells it from other models of a union; None for none.
        tag: Its value for this model.
        forbid_unknown_fields: Whether the model forbids other fields.
        keeps_unknown: Whether the model keeps other fields.
    """

    tag_field: str | None = None
    tag: Any = None
    forbid_unknown_fields: bool = False
    keeps_unknown: bool = False


class RefusedType(inspect.Type):
    """A type that has no schema.

    Attributes:
        reason: Why, and what to do.
    """

    reason: str


def type_info(kind: Any, read_model: Callable[[Any], inspect.Type] | None = None) -> inspect.Type:
    """Return the type of a class or annotation, as ``msgspec.inspect.type_info``, with the fields of pydantic models.

    Args:
        kind: The class or annotation.
        read_model: Returns the type of a model; None for a new ModelReader's.

    Raises:
        Exception: An annotation cannot be evaluated, or msgspec refuses it; of any type.
    """
    replaced: inspect.Type = _replace_models(inspect.type_info(kind), read_model, set())
    return replaced


def _replace_models(node: Any, read_model: Callable[[Any], inspect.Type] | None, seen: set[int]) -> Any:
    """Return a type with ModelTypes in place of the models inside. It is changed in place: it may contain itself."""
    if isinstance(node, inspect.CustomType):
        if not is_model(node.cls):
            return node
        if read_model is None:
            from .model_types import ModelReader  # which needs pydantic

            read_model = ModelReader().of
        return read_model(node.cls)
    if id(node) in seen or not isinstance(node, (inspect.Type, inspect.Field)):
        return node
    seen.add(id(node))
    for name in node.__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, tuple):
            setattr(node, name, tuple(_replace_models(part, read_model, seen) for part in value))
        elif isinstance(value, inspect.Type):
            setattr(node, name, _replace_models(value, read_model, seen))
    return node
