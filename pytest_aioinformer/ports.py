"""Ports for servers that a test starts."""

from __future__ import annotations

import random
import socket


def free_ports(count: int) -> list[int]:
    """Return different unused ports, below those that the kernel assigns to clients.

    Clients retry while a server is down. If its port is in the kernel's range, such a client can get the same port as
    its source port and connect to itself; then the server cannot listen there again.
    """
    dice = random.SystemRandom()  # with a seed, two workers could choose the same ports
    ports: set[int] = set()
    while len(ports) < count:
        port = dice.randrange(20000, 30000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.add(port)
    return list(ports)
