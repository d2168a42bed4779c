"""What all checks know: the client, the operator, and what the first checks have learned."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..client import Client
from ..client.credentials import Access
from ..listwatch.collection import Collection
from ..operator import Manager, Operator, RunOptions
from .connection import Answer


@dataclass(slots=True)
class Examination:
    """One examination of a server.

    Attributes:
        client: Of the server.
        options: How the operator runs.
        operator: The operator; None for none, and for a function that makes a manager.
        manager: The operator's manager, which is not started.
        wall: This machine's wall clock.
        access: The server and the credentials, once the configuration is read.
        answer: The server's answer to a request without credentials.
        user: How the server calls this client's user.
        collections: What the operator reads; without one, what most informers read.
        in_pod: Whether this process runs in the cluster, and so reaches its Services.
    """

    client: Client
    options: RunOptions = field(default_factory=RunOptions)
    operator: Operator | None = None
    manager: Manager | None = None
    wall: Callable[[], float] = time.time
    access: Access | None = None
    answer: Answer | None = None
    user: str = ""
    collections: list[Collection] = field(default_factory=list)
    in_pod: bool = False

    @property
    def server_time(self) -> float:
        """The server's wall clock, as far as it is known."""
        skew = None if self.answer is None else self.answer.skew
        return self.wall() + (skew or 0.0)

    @property
    def name(self) -> str:
        """The operator's name, or that of the function that makes its manager."""
        return self.options.target.replace(":", ".") if self.operator is None else self.operator.name
