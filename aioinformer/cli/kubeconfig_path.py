"""Where ``--dev`` writes its kubeconfig: the same path at each start, so that a shell's KUBECONFIG remains right."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def kubeconfig_of(target: str, fallback: Path) -> Iterator[Path]:
    """Return the path of a project's kubeconfig, which is removed at the end.

    Args:
        target: ``MODULE:OBJECT``. Together with the current folder, it decides the path.
        fallback: The folder to use if another ``--dev`` of this project runs, or the user's cache cannot be written.
    """
    name = hashlib.sha256(f"{os.getcwd()}\n{target}".encode()).hexdigest()[:12]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aioinformer" / f"dev-{name}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield fallback / "kubeconfig"
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield fallback / "kubeconfig"
            return
        try:
            yield folder / "kubeconfig"
        finally:
            (folder / "kubeconfig").unlink(missing_ok=True)
    finally:
        os.close(lock)
