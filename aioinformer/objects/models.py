"""pydantic models inside of Structs: how msgspec decodes and encodes them.

pydantic is optional. A class can only be a model if a program has imported pydantic.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError
    from pydantic.fields import FieldInfo

_EXTRA = "extra_forbidden"
"""pydantic's type of error for an unknown field."""


class ModelMismatchError(ValueError):
    """A value does not fit a model.

    Attributes:
        problems: The path of each field and what is wrong there, without the value, which may be secret.
    """

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {problem}" if path else problem for path, problem in problems))
        self.problems = problems


def is_model(kind: Any) -> TypeGuard[type[BaseModel]]:
    """Return whether a class is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def decode_hook(kind: Any, value: Any) -> Any:
    """Return a decoded value as a type that msgspec does not know; the value itself if it is no model.

    Raises:
        ModelMismatchError: The value does not fit the model.
    """
    return _validate(kind, value) if is_model(kind) else value


def _validate(model: type[BaseModel], value: Any) -> BaseModel:
    """Return a value as a model. Unknown fields are dropped where the model forbids them: a newer release wrote them.

    It is JSON that the server has checked, so a text is taken for a datetime also by a strict model.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(value, strict=False, by_alias=True)
    except ValidationError as error:
        mismatch = error
    if any(part["type"] == _EXTRA for part in mismatch.errors(include_url=False)):
        try:
            return model.model_validate(value, strict=False, by_alias=True, extra="ignore")
        except ValidationError as error:
            mismatch = error
    raise ModelMismatchError(_problems(mismatch, value)) from None


def _problems(error: ValidationError, value: Any) -> list[tuple[str, str]]:
    return [
        (
            _path(part["loc"], value),
            "is required"
            if part["type"] == "missing"
            else f"{part['type']}, from a {type(part['input']).__name__}",
        )
        for part in error.errors(include_url=False)
    ]


def _path(steps: tuple[int | str, ...], value: Any) -> str:
    """Return the path of a field, without the tags of unions, which pydantic puts among the steps."""
    path = ""
    for number, step in enumerate(steps):
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            path, value = f"{path}[{step}]", value[step]
        elif isinstance(value, dict) and (step in value or number == len(steps) - 1):
            path, value = f"{path}.{step}", value.get(step)
    return path.removeprefix(".")


def read_field(model: type[BaseModel], name: str, value: Any) -> Any:
    """Return a value in JSON as the type of one field of a model, without the model's own checks.

    Raises:
        ModelMismatchError: The value does not fit the type.
    """
    from pydantic import ValidationError

    try:
        return _adapter_of(model, name).validate_python(value, strict=False)
    except ValidationError as error:
        raise ModelMismatchError(_problems(error, value)) from None


@lru_cache(maxsize=1024)
def _adapter_of(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    annotation: Any = model.model_fields[name].annotation
    return TypeAdapter(annotation)


def encode_hook(value: Any) -> Any:
    """Return a value that msgspec cannot encode in types that it can.

    Raises:
        TypeError: It is neither a model nor of another type that pydantic knows, or a serializer failed.
        RecursionError: It is nested more deeply than pydantic writes.
    """
    name = type(value).__name__
    if "pydantic" not in sys.modules:
        raise TypeError(f"Encoding objects of type {name} is unsupported")
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        if is_model(type(value)):
            return value.model_dump(mode="json", by_alias=True, exclude_computed_fields=True)
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise TypeError(f"Encoding objects of type {name} is unsupported: {error}") from error
    except ValueError as error:
        raise RecursionError(f"a {name} is nested too deeply: {error}") from error


def content_of(value: Any) -> Any:
    """Return what a RootModel contains; other values as they are."""
    return value.root if is_model(type(value)) and value.__pydantic_root_model__ else value


def json_name(name: str, info: FieldInfo) -> str | None:
    """Return the name of a model's field in JSON; None if it is read by another name than it is written by."""
    read = info.validation_alias or info.alias or name
    written = info.serialization_alias or info.alias or name
    return written if read == written else None


@lru_cache(maxsize=1024)
def model_fields(model: type[BaseModel]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the attributes of a model by their names in JSON, and the names of those that are None by default."""
    names = {
        info.serialization_alias or info.alias or name: name for name, info in model.model_fields.items()
    }
    omitted = (
        encoded
        for encoded, name in names.items()
        if not (info := model.model_fields[name]).is_required()
        and info.default is None
        and info.default_factory is None
    )
    return names, frozenset(omitted)
