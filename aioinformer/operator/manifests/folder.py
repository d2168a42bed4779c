"""Write generated files into a folder, in place of those of an earlier call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import ConfigError

MARK = "Written by aioinformer manifests, again at each call: "
"""In the first bytes of each file."""


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files, each with MARK at its beginning, and remove those of an earlier call that are not part of this one.

    Args:
        folder: Where to.
        texts: Their texts, by their paths in the folder.

    Returns:
        The written files.

    Raises:
        ConfigError: Another file has one of the paths, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, texts)
        for name, text in texts.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the manifests into {folder}: {error.strerror}") from error
    return [folder / name for name in texts]


def _make_room(folder: Path, names: Iterable[str]) -> None:
    """Remove what an earlier call wrote.

    Raises:
        ConfigError: Another file has one of the paths.
    """
    files = (path for pattern in ("*", "templates/*") for path in folder.glob(pattern))
    earlier = [path for path in files if path.is_file() and _is_ours(path)]
    foreign = [name for name in names if (folder / name).exists() and folder / name not in earlier]
    if foreign:
        raise ConfigError(
            f"{folder} has a {' and a '.join(foreign)} that aioinformer manifests did not write: name another folder, "
            "or remove it"
        )
    for path in earlier:
        path.unlink()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(200)
