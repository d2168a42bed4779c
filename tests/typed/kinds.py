"""A custom resource that has every feature of a schema."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from aioinformer.typed import (
    CamelStruct,
    Column,
    CustomResource,
    IntOrString,
    MapOf,
    PreserveUnknown,
    Quantity,
    Rule,
    Scale,
    SetOf,
)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Port(CamelStruct):
    """A port."""

    number: int
    protocol: str = "TCP"
    host: str | None = None


class Limits(CamelStruct, kw_only=True):
    cpu: Quantity = "1"
    memory: Quantity | None = None
    timeout: Annotated[int, Meta(gt=0, lt=100)] = 10


class Feature(CamelStruct, kw_only=True):
    """The wanted state."""

    host: Annotated[
        str,
        Meta(
            min_length=3,
            max_length=40,
            pattern="^[a-z.]+$",
            description="The host name.",
            examples=["a.example"],
        ),
        Rule("self == oldSelf", message="host cannot change"),
    ]
    replicas: Annotated[int, Meta(ge=0, le=10, multiple_of=2)] = 2
    ratio: Annotated[float, Meta(ge=0.5)] = 0.5
    enabled: bool = True
    size: Size = Size.SMALL
    mode: Literal["fast", "slow"] | None = None
    level: Literal[1, 2, 3] = 1
    target_port: IntOrString = "http"
    limits: Limits = msgspec.field(default_factory=Limits)
    ports: Annotated[list[Port], MapOf("number", "protocol"), Meta(max_length=3)] = []
    aliases: Annotated[list[str], SetOf] = []
    tags: set[int] = set()
    env: Annotated[dict[str, str], Meta(max_length=2)] = {}
    settings: dict[str, Any] = {}
    extra: Annotated[Limits, PreserveUnknown] | None = None
    anything: Any = None
    since: datetime | None = None
    day: date | None = None
    data: bytes = b""
    rows: list[list[int]] = []


class Condition(CamelStruct, kw_only=True):
    type: str
    status: Literal["True", "False", "Unknown"]


class FeatureStatus(CamelStruct, kw_only=True):
    replicas: int = 0
    selector: str = ""
    ready_at: datetime | None = None
    conditions: Annotated[list[Condition], MapOf("type")] = []


class Website(
    CustomResource,
    group="typed.example.com",
    version="v1",
    short_names=("web",),
    categories=("all", "sites"),
    scale=Scale(selector=".status.selector"),
    columns=[
        Column("Host", ".spec.host"),
        Column("Replicas", ".spec.replicas", description="Wanted."),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("ReadyAt", ".status.readyAt", priority=1),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[
        Rule("self.metadata.name != 'forbidden'", message="this name is forbidden"),
        Rule(
            "self.spec.replicas < 9",
            message_expression="'too many replicas for ' + self.spec.host",
            reason="FieldValueForbidden",
            field_path=".spec.replicas",
        ),
    ],
):
    """A website."""

    spec: Feature
    status: FeatureStatus | None = None
