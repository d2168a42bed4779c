"""The examples of docs/simulation.md run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from aioinformer.testing import TROUBLES, Simulation

PAGE = Path(__file__).parents[3] / "docs" / "simulation.md"


EXAMPLES = re.findall(r"^```python simulation\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("source", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(source: str) -> None:
    exec(compile(source, PAGE, "exec"), {"asyncio": asyncio, "__name__": PAGE.stem})


def test_documented_attributes_exist() -> None:
    table = re.findall(r"^\| `(?:await )?world\.(\w+)", PAGE.read_text(), re.MULTILINE)
    assert len(table) == 11
    attributes = ("server", "client", "network", "random")
    assert [name for name in table if name not in attributes and not hasattr(Simulation, name)] == []


def test_documentation_lists_every_trouble() -> None:
    assert len(TROUBLES) == 20, "the list in the docs says what there is"
