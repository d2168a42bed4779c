"""Settings of an operator: what environment variables can be, and what is refused."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aioinformer import ConfigError
from aioinformer.operator import Operator
from aioinformer.operator.settings import read_setting, settings_from


class Limits(msgspec.Struct):
    """A part of settings."""

    cpu: int


class Settings(msgspec.Struct):
    """Settings of all forms."""

    zones: Path
    tags: list[str] = []
    sizes: dict[int, int] = {}
    limits: Limits | None = None
    address: IPv4Address | None = None
    folders: tuple[Path, ...] = ()
    note: str | list[str] = ""


def test_lists_dicts_and_structs_are_json_and_paths_are_texts() -> None:
    environment = {
        "KEEPER_ZONES": "/etc/zones",
        "KEEPER_TAGS": '["a", "b"]',
        "KEEPER_SIZES": '{"7": 1}',
        "KEEPER_LIMITS": ' {"cpu": 2}\n',
        "KEEPER_ADDRESS": "10.0.0.1",
        "KEEPER_FOLDERS": '["/a", "/b"]',
        "KEEPER_NOTE": "[a text]",
    }
    assert settings_from("keeper", Settings, environment) == Settings(
        zones=Path("/etc/zones"),
        tags=["a", "b"],
        sizes={7: 1},
        limits=Limits(2),
        address=IPv4Address("10.0.0.1"),
        folders=(Path("/a"), Path("/b")),
        note="[a text]",
    )


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("secret,b", list[str], r'write it in JSON, such as \["a", "b"\]'),
        ("secret", dict[str, int] | None, "write it in JSON"),
        ('["secret"', list[str], "Input data was truncated"),
        ('{"cpu": "secret"}', Limits, r"Expected `int`, got `str` - at `\$.cpu`"),
        ("secret", IPv4Address, r"IPv4Address refuses it \(AddressValueError\)"),
        ('["secret\udcff"]', list[str], "its bytes are not UTF-8"),
        ("secret", int, "^Expected `int`, got `str`$"),
    ],
)
def test_what_is_invalid_is_named_without_its_value(text: str, kind: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read_setting(text, kind)
    assert "secret" not in str(caught.value)


def test_fields_that_no_variable_can_set_are_refused_when_the_operator_is_declared() -> None:
    class Odd(msgspec.Struct):
        place: Path | str
        pairs: dict[tuple[str, str], int] = {}
        fine: int = 0

    with pytest.raises(ConfigError, match="the settings Odd") as caught:
        Operator("keeper", settings=Odd)
    assert "the field place cannot be read from an environment variable" in str(caught.value)
    assert "fine" not in str(caught.value)
