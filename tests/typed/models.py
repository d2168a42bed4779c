"""A custom resource whose spec and status are pydantic models, with every feature of a schema."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    computed_field,
    field_validator,
)
from pydantic.alias_generators import to_camel

from aioinformer.typed import Condition, CustomResource, IntOrString, MapOf, Rule, Scale, SetOf


class CamelModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Port(CamelModel):
    """A port."""

    number: Annotated[int, Field(ge=1, le=65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"
    host_name: str | None = None


class Http(CamelModel):
    """Calls a URL."""

    kind: Literal["http"] = "http"
    url: str
    tries: PositiveInt = 3


class Tcp(CamelModel):
    kind: Literal["tcp"] = "tcp"
    port: int = Field(gt=0, description="The port.")
    tries: PositiveInt = 3


Probe = Annotated[Http | Tcp, Field(discriminator="kind")]


class Open(CamelModel):
    """Keeps fields that it does not know."""

    model_config = ConfigDict(extra="allow")

    level: int = 1


class SiteSpec(CamelModel):
    """The wanted state."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: Annotated[
        str,
        StringConstraints(min_length=3, max_length=40, pattern="^[a-z.]+$"),
        Rule("self == oldSelf", "fixed"),
    ]
    replicas: int = Field(default=2, ge=0, le=10, multiple_of=2, description="Wanted pods.", examples=[4])
    ratio: Annotated[float, Field(ge=0.5)] = 0.5
    enabled: bool = True
    size: Size = Size.SMALL
    mode: Literal["fast", "slow"] | None = None
    target_port: IntOrString = "http"
    budget: int | None = Field(default=None, ge=1)
    ports: Annotated[list[Port], MapOf("number", "protocol"), Field(max_length=3)] = []
    aliases: Annotated[list[str], SetOf] = []
    tags: set[int] = set()
    env: Annotated[dict[str, str], Field(max_length=2)] = {}
    settings: dict[str, Any] = {}
    open: Open = Open()
    probe: Probe | None = None
    probes: list[Probe] = []
    home: AnyUrl | None = None
    since: datetime | None = None
    day: date | None = None
    wait: timedelta = timedelta(minutes=5)
    price: Decimal = Decimal("1.50")
    token: UUID | None = None
    rows: list[list[int]] = []

    @field_validator("host")
    @classmethod
    def check_host(cls, host: str) -> str:
        if host.startswith("secret"):
            raise ValueError(f"{host} is refused")
        return host

    @computed_field  # type: ignore[prop-decorator]
    @property
    def title(self) -> str:
        return self.host.upper()


class SiteStatus(CamelModel):
    replicas: int = 0
    selector: str = ""
    conditions: Annotated[list[Condition], MapOf("type")] = []


class Site(
    CustomResource,
    group="models.example.com",
    version="v1",
    short_names=("st",),
    categories=("all",),
    scale=Scale(selector=".status.selector"),
    selectable_fields=(".spec.host", ".spec.replicas", ".spec.enabled"),
    labels={"app.kubernetes.io/part-of": "sites"},
    annotations={"example.com/docs": "https://example.com/sites"},
):
    """A site."""

    spec: SiteSpec
    status: SiteStatus | None = None
