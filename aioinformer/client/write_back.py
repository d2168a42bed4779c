"""Write new OIDC tokens into the user's kubeconfig. Only the two values change; every other byte stays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._core.files import replace_file
from ..errors import ConfigError
from .sections import decode, without_tabs


def write_back(yaml: Any, path: str, user_name: str, used: str, new: Mapping[str, str]) -> None:
    """Write new values into the ``auth-provider.config`` of a user. Blocks.

    Args:
        yaml: The library's yaml module.
        path: The kubeconfig.
        user_name: The user's name.
        used: The refresh-token that was exchanged. If the file has another one, the user has logged in again.
        new: The new values.

    Raises:
        ConfigError: The file has changed, or its format is not supported; nothing was written.
        OSError: The file cannot be read or written.
    """
    path = os.path.realpath(path)
    text, mark, encoding = decode(Path(path).read_bytes())
    try:
        text = _with_values(yaml, text, user_name, used, new)
    except (yaml.YAMLError, TypeError, AttributeError, KeyError, ValueError) as error:
        # The error's text is not quoted, and the error not chained: they may hold tokens.
        raise ConfigError(f"its format is not supported ({type(error).__name__})") from None
    content = mark + text.encode(encoding)
    try:
        replace_file(path, content, like=os.stat(path))
    except OSError:  # the file is a mount of its own, or its directory is not writable
        Path(path).write_bytes(content)


def _with_values(yaml: Any, text: str, user_name: str, used: str, new: Mapping[str, str]) -> str:
    """Return the text with these values, and nothing else changed."""
    before = without_tabs(text)
    user = next(
        (
            user
            for user in _items(_value(yaml.compose(before, yaml.SafeLoader), "users"))
            if getattr(_value(user, "name"), "value", None) == user_name
        ),
        None,
    )
    section = _value(_value(_value(user, "user"), "auth-provider"), "config")
    if getattr(_value(section, "refresh-token"), "value", None) != used:
        raise ConfigError(f"user {user_name!r} has logged in or out in the meantime")
    newline = "\r\n" if "\r\n" in text else "\n"
    changes = sorted((_change(section, name, value, newline) for name, value in new.items()), reverse=True)
    after = text
    for begin, end, replacement in changes:
        after = after[:begin] + replacement + after[end:]
    expected = _update(yaml.safe_load(before), user_name, new)
    if yaml.safe_load(without_tabs(after)) != expected:  # for example, other values use it through an anchor
        raise ConfigError(f"the tokens of user {user_name!r} cannot be changed without changing other values")
    return after


def _change(section: Any, name: str, value: str, newline: str) -> tuple[int, int, str]:
    """Return the edit that sets a value in a section: begin, end and replacement."""
    written, old = json.dumps(value), _value(section, name)
    if old is not None:
        begin, end = old.start_mark.index, old.end_mark.index
        if begin == end:  # the old value is empty, without a space after the colon
            written = f" {written}"
        if old.style in ("|", ">"):
            written += newline
        return begin, end, written
    first = section.value[0][0].start_mark
    if section.flow_style:
        return first.index, first.index, f"{json.dumps(name)}: {written}, "
    return first.index, first.index, f"{name}: {written}{newline}{' ' * first.column}"


def _update(config: dict[str, Any], user_name: str, new: Mapping[str, str]) -> dict[str, Any]:
    """Return the expected content of the changed file. Copies sections, as an anchor can make several of them one."""
    users = list(config["users"])
    place = next(place for place, user in enumerate(users) if user["name"] == user_name)
    user = users[place]["user"]
    provider = user["auth-provider"]
    provider = {**provider, "config": {**provider["config"], **new}}
    users[place] = {**users[place], "user": {**user, "auth-provider": provider}}
    return {**config, "users": users}


def _value(node: Any, name: str) -> Any:
    """Return the value of a mapping's key, the last one as in PyYAML; None if there is none."""
    values = [value for key, value in _items(node) if key.value == name] if _is_mapping(node) else []
    return values[-1] if values else None


def _items(node: Any) -> list[Any]:
    return node.value if node is not None and not isinstance(node.value, str) else []


def _is_mapping(node: Any) -> bool:
    return node is not None and node.id == "mapping"
