"""The page about changing a class shows the code of its releases."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_code_of_the_page_is_that_of_the_releases() -> None:
    page = (ROOT / "docs" / "changing-a-class.md").read_text()
    releases = [path.read_text() for path in (ROOT / "examples" / "changing_a_class").glob("release_*.py")]
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        assert any(block in release for release in releases), block
