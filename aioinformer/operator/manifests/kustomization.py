"""Manifests as YAML: one text, or a folder for kustomize."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..._core.yaml_text import dump_yaml
from .folder import MARK, write_files
from .installation import Object

HEADER = f"# {MARK}make changes in an overlay of this kustomization.\n"
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
    return write_files(folder, {name: HEADER + text for name, text in texts.items()})
