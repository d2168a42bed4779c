"""Manifests as YAML: one text, or a folder for kustomize."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..._core.yaml_text import dump_yaml
from ...errors import ConfigError
from .installation import Object

HEADER = "# Written by aioinformer manifests, again at each call: make changes in an overlay of this kustomization.\n"
"""The first line of each file."""


def to_yaml(objects: Iterable[Object]) -> str:
    """Return objects as YAML documents."""
    return dump_yaml(objects)


def write_kustomization(objects: Iterable[Object], folder: Path) -> list[Path]:
    """Write objects into a folder: one file for each kind, and ``kustomization.yaml``.

    Files of an earlier call that are not part of this one are removed.

    Returns:
        The written files.

    Raises:
        ConfigError: The folder has a file of the same name that this function did not write, or cannot be written.
    """
    by_kind: dict[str, list[Object]] = {}
    for obj in objects:
        by_kind.setdefault(f"{obj['kind'].lower()}.yaml", []).append(obj)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*by_kind],
    }
    texts = {name: to_yaml(its) for name, its in by_kind.items()} | {
        "kustomization.yaml": to_yaml([kustomization])
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, texts)
        for name, text in texts.items():
            (folder / name).write_text(HEADER + text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the manifests into {folder}: {error.strerror}") from error
    return [folder / name for name in texts]


def _make_room(folder: Path, names: Iterable[str]) -> None:
    """Remove what an earlier call wrote.

    Raises:
        ConfigError: Another file has one of the names.
    """
    earlier = [file for file in folder.glob("*.yaml") if _is_ours(file)]
    foreign = [name for name in names if (folder / name).exists() and folder / name not in earlier]
    if foreign:
        raise ConfigError(
            f"{folder} has a {' and a '.join(foreign)} that aioinformer manifests did not write: name another folder, "
            "or remove it"
        )
    for file in earlier:
        file.unlink()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER.encode()
