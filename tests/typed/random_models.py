"""Random pydantic models as specs; the counterpart of ``random_kinds``."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, RootModel, StringConstraints, create_model

from aioinformer.typed import Condition, IntOrString, MapOf, PreserveUnknown, Quantity, SetOf

from . import random_kinds
from .models import CamelModel, Http, Open, Probe
from .random_kinds import Level, Member, Shade


class Strict(CamelModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    mode: Literal["on", "off"] | None
    size: int | None
    moment: datetime | None = None
    shades: set[Shade] = set()
    host_name: Annotated[str, Field(pattern=r"^([a-z0-9]+[-.]?)+$")] = "a"


class Names(RootModel[dict[str, NonNegativeInt]]): ...


SCALARS: list[Any] = [
    *(str, bytes, bool, int, float, datetime, date, time, timedelta, Decimal, UUID, Any),
    *(IntOrString, Quantity, int | float, Shade, Level),
    *(Literal["a", "b"], Literal[1, 2, 3], Literal["x", None]),
    *(
        Annotated[str, StringConstraints(pattern=pattern)]
        for pattern in (r"^\S+$", r"^(a+)+$", r"^\W?$", "b[^x]", r"^(?:\w+\s?)*$")
    ),
    *(Annotated[str, Field(min_length=1, max_length=3)], Annotated[str, Field(max_length=0)]),
    *(Annotated[int, Field(ge=-5, le=5)], Annotated[int, Field(gt=0, multiple_of=3)]),
    *(Annotated[float, Field(gt=0, lt=1)], Annotated[float, Field(multiple_of=2)]),
]
HASHABLE: list[Any] = [str, int, bool, date, UUID, Shade, Literal["a", "b"], NonNegativeInt]
OBJECTS: list[Any] = [
    *(Strict, Http, Open, Names, Probe, Condition, Member),
    *(Annotated[Strict, PreserveUnknown], dict[str, Any]),
]


def _models(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(st.builds(random_kinds.Field, kinds, st.booleans()), min_size=1, max_size=3)
    return fields.map(lambda parts: model_of("Inner", parts))


def model_of(name: str, parts: list[random_kinds.Field]) -> type[BaseModel]:
    """Return a model with these fields; a default is None."""
    fields: dict[str, Any] = {
        f"f_{number}": (part.kind | None, None) if part.has_default else (part.kind, ...)
        for number, part in enumerate(parts)
    }
    return create_model(name, __base__=CamelModel, **fields)


leaves = st.sampled_from([*SCALARS, *OBJECTS])
special = st.sampled_from(
    [
        *(set[kind] for kind in HASHABLE),  # type: ignore[valid-type]
        *(Annotated[list[kind], SetOf] for kind in HASHABLE),  # type: ignore[valid-type]
        *(Annotated[list[Member], MapOf("name")], Annotated[list[Condition], MapOf("type")]),
        *(
            Annotated[list[int], Field(min_length=1, max_length=2)],
            Annotated[dict[str, int], Field(max_length=1)],
        ),
    ]
)
kinds = st.recursive(
    leaves | special,
    lambda inner: (
        random_kinds.lists_of(inner)
        | random_kinds.dicts_of(inner)
        | random_kinds.optional(inner)
        | _models(inner)
    ),
    max_leaves=4,
)
