"""Examine an API server and an operator there: ``aioinformer doctor``.

A check asks the server, and hands what it got to a plain function, which returns a Finding.
"""

from .checks import examine
from .findings import Finding, Level, Report

__all__ = ["Finding", "Level", "Report", "examine"]
