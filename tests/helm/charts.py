"""Run helm on charts that ``aioinformer manifests --helm`` writes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]


class HelmError(Exception):
    """helm failed; the message is its output."""


class Helm:
    """The program helm.

    Args:
        program: Its path.
        home: The folder of its caches.
    """

    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        self._variables = {
            f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")
        }

    async def run(self, *arguments: str | Path, stdin: str = "") -> str:
        """Run it, and return its output.

        Raises:
            HelmError: Its exit code was not 0.
        """
        process = await asyncio.create_subprocess_exec(
            self._program, *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **self._variables},
        )  # fmt: skip
        output, _ = await process.communicate(stdin.encode())
        if process.returncode:
            raise HelmError(output.decode())
        return output.decode()

    async def render(self, name: str, chart: Path, *arguments: str, namespace: str = "home") -> list[Object]:
        """Return the objects of a release."""
        text = await self.run("template", name, chart, f"--namespace={namespace}", *arguments)
        return [obj for obj in yaml.safe_load_all(text) if obj is not None]
