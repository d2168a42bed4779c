"""Run scripts through one of the Go programs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import msgspec

from tests.go_build import GoBuild

TIMEOUT = 60.0
"""Seconds that a batch of scripts may take."""


class ProgramError(Exception):
    """The Go program crashed or hung; the message has the script."""


def traces(build: GoBuild, scripts: Sequence[object]) -> list[list[str]]:
    """Return client-go's trace of each script. Raises as ``answers``."""
    decode = msgspec.json.Decoder(list[str]).decode
    return [decode(line) for line in answers(build, scripts)]


def answers(build: GoBuild, scripts: Sequence[object]) -> list[bytes]:
    """Return client-go's trace of each script, as JSON.

    Args:
        build: The program. It reads scripts and writes traces, a line of JSON each.
        scripts: Scripts that can be encoded as JSON.

    Raises:
        ProgramError: The program did not return a trace for every script.
    """
    (program,) = (build.ensure() / command for command in build.commands)
    sent = [msgspec.json.encode(script) for script in scripts]
    try:
        ran = subprocess.run(
            [program], input=b"\n".join([*sent, b""]), capture_output=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        answered = (error.stdout or b"").count(b"\n")
        raise ProgramError(f"{build.name} hangs on {sent[answered].decode()}") from error
    lines = ran.stdout.splitlines()
    if ran.returncode or len(lines) != len(sent):
        said = ran.stderr.decode(errors="replace")[-2000:]
        raise ProgramError(
            f"{build.name} ended with {ran.returncode} on {sent[len(lines)].decode()}:\n{said}"
        )
    return lines
