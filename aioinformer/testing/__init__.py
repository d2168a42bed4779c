"""Test support for code built on informers: an API server inside the process, fault injection, and simulation.

    from aioinformer.testing import APIServer

    async with APIServer() as server:
        server.create("v1", "configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        ...
        server.faults.drop_watches()

JSON patches and TLS need an extra: `pip install 'aioinformer[testing]'`.
"""

from __future__ import annotations

from aioinformer.testing.controllers.controlplane import CONTROLLERS
from aioinformer.testing.errors import (
    MatchingError,
    MissingExtraError,
    StatusError,
    TestingError,
    UnknownNameError,
)
from aioinformer.testing.faults import Fault, Faults
from aioinformer.testing.rbac import assert_rbac_covers
from aioinformer.testing.requests import Request
from aioinformer.testing.resources import FieldLabel, PrinterColumn, ResourceType, ScalePaths
from aioinformer.testing.server import APIServer
from aioinformer.testing.simulation import TROUBLES, Simulation, SimulationError, simulate
from aioinformer.testing.users import User
from aioinformer.testing.waiting import eventually

__all__ = [
    "APIServer",
    "CONTROLLERS",
    "Faults",
    "Fault",
    "Request",
    "PrinterColumn",
    "ResourceType",
    "assert_rbac_covers",
    "eventually",
    "simulate",
    "Simulation",
    "SimulationError",
    "TROUBLES",
    "FieldLabel",
    "ScalePaths",
    "TestingError",
    "StatusError",
    "MatchingError",
    "MissingExtraError",
    "UnknownNameError",
    "User",
]
