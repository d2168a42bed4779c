"""instructions.py: reading callgrind's profiles."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.instructions import apiece, counts_of, part_of

PROFILE = """\
# callgrind format
version: 1
positions: line
events: Ir
summary: 1000

ob=(1) /usr/bin/python3.11
fl=(1) ceval.c
fn=(1) _PyEval_EvalFrameDefault
10 100
+2 20
cob=(2) /somewhere/site-packages/msgspec/_core.cpython-311-x86_64-linux-gnu.so
cfn=(2) json_skip
calls=3 40
* 700
-1 5

ob=(2)
fn=(2)
40 690
cob=(3) /usr/lib/x86_64-linux-gnu/libc.so.6
cfn=(3) memcpy
calls=1 0
41 10

ob=(3)
fn=(3)
0 10

ob=(4) ???
fn=(4) 0x1234
0 175

totals: 1000
"""


def test_costs_are_counted_where_they_are_spent() -> None:
    counts = counts_of(PROFILE)
    assert counts == {"interpreter": 125, "JSON": 690, "C library": 10, "others": 175}
    assert counts.total() == 1000


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/usr/bin/python3.11", "interpreter"),
        ("/usr/lib/x86_64-linux-gnu/libpython3.13.so.1.0", "interpreter"),
        ("/venv/lib/python3.11/site-packages/orjson/orjson.cpython-311-x86_64-linux-gnu.so", "JSON"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "C library"),
        ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "others"),
        ("/venv/lib/python3.11/site-packages/aiohttp/_http_parser.so", "others"),
    ],
)
def test_object_file_belongs_to_a_part(path: str, part: str) -> None:
    assert part_of(path) == part


def test_cost_of_one_is_the_difference_of_two_runs() -> None:
    more, less = Counter({"JSON": 5_000, "others": 70}), Counter({"JSON": 2_000, "others": 70})
    assert apiece(more, less, 100) == {"JSON": 30, "others": 0}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_all_instructions_of_a_profile_are_counted(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    callgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    subprocess.run([*callgrind, sys.executable, "-I", "-S", "-c", "sum(range(1000))"], check=True)
    said = profile.read_text()
    summary = re.search(r"^summary: (\d+)$", said, re.MULTILINE)
    assert summary is not None
    counts = counts_of(said)
    assert counts.total() == int(summary[1])
    assert counts["interpreter"] > counts["C library"] > 0
