"""Load what ``MODULE:OBJECT`` names."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from .._core.own_code import failure_text
from ..errors import ConfigError
from ..operator import Manager, Operator
from ..operator.protocols import ManagerFactory

DEFAULT_OBJECT = "operator"


def load(target: str) -> Operator | ManagerFactory:
    """Return the Operator or Manager factory that ``MODULE:OBJECT`` names. ``MODULE`` means ``MODULE:operator``.

    Modules of the current folder are found, too.

    Raises:
        ConfigError: The module cannot be imported, or has no such object.
    """
    name, path = names_of(target)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _import(name)
    target_object: Any = module
    for part in path.split("."):
        try:
            target_object = getattr(target_object, part)
        except AttributeError:
            raise ConfigError(_missing(module, path)) from None
    is_factory = callable(target_object) and not inspect.isclass(target_object)
    if not (isinstance(target_object, Operator) or is_factory):
        kind = "a class" if inspect.isclass(target_object) else f"a {type(target_object).__name__}"
        advice = (
            "; a Manager needs a client: write a function of one that returns it"
            if isinstance(target_object, Manager)
            else ""
        )
        raise ConfigError(
            f"{name}:{path} is {kind}, neither an Operator nor a function that returns a Manager{advice}"
        )
    return target_object  # type: ignore[no-any-return]


def names_of(target: str) -> tuple[str, str]:
    """Return the names of the module and of the object in ``MODULE:OBJECT``.

    Raises:
        ConfigError: It has another form.
    """
    name, colon, path = target.partition(":")
    is_path = name.endswith(".py") or os.sep in name
    if is_path or not all(part.isidentifier() for part in name.split(".")):
        advice = f"; here {_module_of(name)}:{path or DEFAULT_OBJECT}" if is_path else ""
        raise ConfigError(
            f"{name!r} is no module: write MODULE:OBJECT, such as websites.main:operator{advice}"
        )
    if colon and not path:
        raise ConfigError(f"{target!r} names no object: write MODULE:OBJECT, such as {name}:operator")
    return name, path or DEFAULT_OBJECT


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"there is no module {error.name!r} in {os.getcwd()} or where Python looks; run this in the folder "
                f"that has {name.partition('.')[0]}, or install it"
            ) from error
        raise ConfigError(failure_text(f"{name} cannot be imported", error)) from error
    except BaseException as error:  # a module may even call sys.exit
        raise ConfigError(failure_text(f"{name} cannot be imported", error)) from error


def _missing(module: ModuleType, path: str) -> str:
    operators = [name for name, value in vars(module).items() if isinstance(value, Operator)]
    close = get_close_matches(path, [name for name in vars(module) if not name.startswith("_")], n=1)
    text = f"the module {module.__name__} has no {path!r}"
    if operators:
        return (
            f"{text}; its operators: {', '.join(f'{module.__name__}:{operator}' for operator in operators)}"
        )
    return f"{text}; did you mean {module.__name__}:{close[0]}?" if close else text


def _module_of(path: str) -> str:
    return path.removesuffix(".py").strip("./").replace(os.sep, ".")
