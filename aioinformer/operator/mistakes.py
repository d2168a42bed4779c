"""Mistakes: collects the mistakes of a declaration, to report all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..errors import AioInformerError
from ..typed.declaration import mistakes_error

P = ParamSpec("P")
T = TypeVar("T")


class Mistakes:
    """Collects the mistakes of a declaration.

    Args:
        where: What is declared, for the message.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._mistakes: list[str] = []

    def add(self, mistake: str) -> None:
        """Add one."""
        self._mistakes.append(mistake)

    def of(self, check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what a function returns; or None if it raises an error, which is collected as a mistake."""
        try:
            return check(*args, **kwargs)
        except AioInformerError as error:
            self._mistakes.append(str(error))
            return None

    def raise_if_any(self) -> None:
        """Raise all mistakes as one error.

        Raises:
            ConfigError: There are some.
        """
        if self._mistakes:
            raise mistakes_error(self._where, self._mistakes)
