"""The names of a new project: what its package may be called, and the kind that follows from its name."""

from __future__ import annotations

import keyword
import os
import re
import sys
from importlib import metadata
from importlib.machinery import PathFinder

from ..operator.manifests.installation import LONGEST_NAME

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_NEEDED = frozenset({
    "aiohttp", "aioinformer", "anyio", "conftest", "hatchling", "kubernetes_asyncio", "msgspec", "mypy", "pip",
    "pydantic", "pytest", "pytest_aioinformer", "pytest_asyncio", "ruff", "setuptools", "test", "typer", "yaml",
})  # fmt: skip
"""Modules that the project or its tools import, which its own package would hide. They may be missing here."""

_FOLDERS = {
    "build": "what packaging writes, which git ignores",
    "chart": "what make chart writes",
    "dist": "what packaging writes, which git ignores",
    "manifests": "what make manifests writes",
    "tests": "the project's tests",
    "wheels": "wheels that your package index lacks",
}

_IRREGULAR = {
    "aliases": "alias", "buses": "bus", "cookies": "cookie", "gases": "gas", "indices": "index", "movies": "movie",
    "people": "person", "statuses": "status",
}  # fmt: skip
_SINGULAR = frozenset({
    "alias", "atlas", "bias", "canvas", "chaos", "jenkins", "kubernetes", "lens", "news", "pandas", "postgres",
    "series", "species", "windows",
})  # fmt: skip
"""Words that end in ``s`` and are no plurals."""

_SHORTEST_PLURAL = 4
"""Letters. A shorter word that ends in ``s`` is mostly an acronym: AWS, DNS, TLS."""


def name_mistake(name: str) -> str:
    """Return why an operator cannot have a name; "" if it can."""
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name):
        return (
            "the name must be lower-case letters, digits and single dashes, and begin with a letter: "
            f"{name!r} is not, {_valid(name)!r} is"
        )
    if len(name) > LONGEST_NAME:
        return f"the name {name!r} has {len(name)} characters: use at most {LONGEST_NAME}"
    if keyword.iskeyword(package):
        return f"{name!r} is a keyword of Python: choose another name"
    if package in _FOLDERS:
        return f"{name!r} is the folder of {_FOLDERS[package]}: choose another name"
    if package in _NEEDED:
        return f"{name!r} is a Python package that the project needs: choose another name, like '{name}-operator'"
    if package in sys.stdlib_module_names or _is_installed(name, package):
        return f"{name!r} is an installed Python package already: choose another name, like '{name}-operator'"
    return ""


def kind_of(name: str) -> str:
    """Return the kind that a name means: ``Website`` for ``websites`` and ``website-operator``."""
    words = name.removesuffix("-operator").split("-")
    words[-1] = singular(words[-1])
    return "".join(word.capitalize() for word in words)


def singular(word: str) -> str:
    """Return the singular of an English plural with a common ending; other words as they are."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _SINGULAR or len(word) < _SHORTEST_PLURAL or re.search(r"(ss|us|is)$", word):
        return word
    if re.search(r"[^aeiou]ies$", word) and len(word) > len("ties"):
        return f"{word[:-3]}y"
    if re.search(r"(ss|x|zz|sh|[^a]ch|tch)es$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


def _is_installed(name: str, package: str) -> bool:
    """Return whether there is a distribution or a module of this name, outside of the current folder."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        pass
    else:
        return True
    here = os.getcwd()
    return PathFinder.find_spec(package, [path for path in sys.path if path not in ("", here)]) is not None


def _valid(name: str) -> str:
    """Return a valid name that resembles one: ``my-app`` for ``My_App``."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-0123456789") or "websites"
