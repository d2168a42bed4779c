"""Write a file in one step: a reader sees the old content or the new."""

from __future__ import annotations

import os
import stat
import tempfile


def replace_file(path: str | os.PathLike[str], content: bytes, like: os.stat_result | None = None) -> None:
    """Replace a file atomically, or create it. Blocks.

    Args:
        path: The file.
        content: Its new content.
        like: Whose owner and mode it gets; without it only this user may read it.

    Raises:
        OSError: The folder or the file cannot be written. The file is as it was.
    """
    folder, name = os.path.split(path)
    descriptor, new = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}-")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        if like is not None:
            if hasattr(os, "chown"):
                os.chown(new, like.st_uid, like.st_gid)
            os.chmod(new, stat.S_IMODE(like.st_mode))
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
