"""Files of a configuration and their last good content, which a client uses after a file is deleted."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import ConfigError

logger = logging.getLogger(__name__)

T = TypeVar("T")

LARGEST_FILE = 16 * 1024 * 1024
"""Bytes of the largest token, certificate or kubeconfig that is read."""


class KeptFiles:
    """Reads files again, and keeps the last good content of each (client-go reads most of them only once)."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._missing: set[str] = set()

    def read(self, path: str, parse: Callable[[bytes], T]) -> T:
        """Return a file's current content. A pipe is read only once. Blocks.

        Args:
            path: The file.
            parse: Turns the content into a value; raises ConfigError for invalid content.

        Raises:
            OSError: The file cannot be read.
            ConfigError: ``parse`` raised it, or the file is larger than LARGEST_FILE.
        """
        if path in self._values and _is_pipe(path):
            return self._keep(path, parse)
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path} is larger than {LARGEST_FILE} bytes")
        value = parse(content)
        self._values[path] = value
        self._missing.discard(path)
        return value

    def read_or_keep(self, what: str, path: str, parse: Callable[[bytes], T]) -> T:
        """Return a file's current content, or its last good content and log one WARNING. Blocks.

        Args:
            what: The kind of file, for the warning.
            path: As for ``read``.
            parse: As for ``read``.

        Raises:
            OSError: As for ``read``, if the file was never read before.
            ConfigError: Likewise.
        """
        try:
            return self.read(path, parse)
        except (OSError, ConfigError) as error:
            if path not in self._values:
                raise
            if path not in self._missing:
                self._missing.add(path)
                logger.warning(
                    "%s %s cannot be used any more (%s): its last content is used until it can be read again",
                    what,
                    path,
                    getattr(error, "strerror", None) or error,
                )
            return self._keep(path, parse)

    def describe(self, path: str) -> str:
        """Return a path for messages, with a note if the last attempt to read it failed."""
        return f"{path} (its last content, as it cannot be read any more)" if self.is_missing(path) else path

    def has(self, path: str) -> bool:
        """Return whether this file was read before."""
        return path in self._values

    def is_missing(self, path: str) -> bool:
        """Return whether the last attempt to read this file failed."""
        return path in self._missing

    def _keep(self, path: str, parse: Callable[[bytes], T]) -> T:
        value: T = self._values[path]  # each file is always parsed by the same function
        return value


def _is_pipe(path: str) -> bool:
    """Return whether a path is a pipe or device: reading it consumes the content, or waits for a writer."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
