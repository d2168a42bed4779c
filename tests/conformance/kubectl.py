"""The same kubectl commands on both servers.

A file of ``commands`` is an area: it has a command a line, and a namespace of its own. The files that commands name are
in ``manifests``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.go_build import Report
from tests.kubernetes.server_data import ADDRESS, PORT

from .masks import mask
from .results import DIFFERS, SAME, WORDS, Case
from .servers import Target

PART = "kubectl"
COMMANDS = Path(__file__).parent / "commands"
MANIFESTS = Path(__file__).parent / "manifests"
AREAS = tuple(sorted(path.stem for path in COMMANDS.glob("*.txt")))
PATIENCE = 60.0
"""Seconds for one command."""


class Output(NamedTuple):
    """The masked result of a command."""

    code: int
    output: str
    errors: str

    def __str__(self) -> str:
        parts = (f"exit code {self.code}", self.output, self.errors)
        return "\n".join(part for part in parts if part)


def commands_of(area: str) -> list[str]:
    """Return the commands of an area, in their order."""
    lines = (COMMANDS / f"{area}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


async def run_areas(
    binary: Path, targets: Sequence[Target], report: Report, areas: Sequence[str] = AREAS
) -> list[Case]:
    """Run the commands of the areas; each command runs on both servers at the same time."""
    cases: list[Case] = []
    for area in areas:
        await asyncio.gather(*(_create_namespace(target, area) for target in targets))
        compared = [await _compare(binary, targets, area, line) for line in commands_of(area)]
        report(
            f"{PART}: {area}: {sum(case.same for case in compared)} of {len(compared)} commands are the same"
        )
        cases += _number(compared)
    return cases


async def _create_namespace(target: Target, name: str) -> None:
    await target.api.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


async def _compare(binary: Path, targets: Sequence[Target], area: str, line: str) -> Case:
    ours, theirs = await asyncio.gather(*(_run(binary, target, area, line) for target in targets))
    name = f"{area}: {line}"
    if ours == theirs:
        return Case(PART, area, name, SAME)
    outcome, cause = _judge(ours, theirs)
    return Case(PART, area, name, outcome, str(ours), str(theirs), cause)


def _judge(ours: Output, theirs: Output) -> tuple[str, str]:
    """Return the outcome for two results that differ, and its cause."""
    if ours.code and theirs.code:
        same = ours.code == theirs.code and ours.output == theirs.output
        return (WORDS, "error in other words") if same else (DIFFERS, "another error")
    if theirs.code:
        return DIFFERS, "accepted, the real server refuses"
    if ours.code:
        crashed = "panic: " in ours.errors
        return DIFFERS, "kubectl crashes" if crashed else "refused, the real server accepts"
    if ours.output == theirs.output:
        return DIFFERS, "warnings"
    return DIFFERS, "another table" if re.match("[A-Z]+ ", theirs.output) else "other content"


async def _run(binary: Path, target: Target, namespace: str, line: str) -> Output:
    process = await asyncio.create_subprocess_exec(
        binary,
        f"--kubeconfig={target.kubeconfig}",
        f"--cache-dir={target.kubeconfig.parent / 'kubectl'}",
        f"--namespace={namespace}",
        *shlex.split(line),
        cwd=MANIFESTS,
        env={**os.environ, "KUBE_EDITOR": "true"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            output, errors = await process.communicate()
    except TimeoutError:
        return Output(-1, "", f"still running after {PATIENCE:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    port = target.url.rpartition(":")[2]
    own = [(target.url, "URL"), (str(target.kubeconfig.parent), "FOLDER"), (port, str(PORT))]
    own += [(f"https://{ADDRESS}:{PORT}", "URL"), (f"{ADDRESS}:{PORT}", "SERVER")]
    text = _sorted_json(output.decode()) if "--raw" in line else output.decode()
    said = Output(process.returncode or 0, mask(text, *own), mask(errors.decode(), *own))
    return said._replace(errors=_sorted_causes(said.errors)) if namespace == "custom" else said


def _sorted_json(text: str) -> str:
    """Return JSON with sorted names, and other texts as they are."""
    return json.dumps(json.loads(text), indent=1, sort_keys=True) if text.startswith("{") else text


def _sorted_causes(text: str) -> str:
    """Return a refusal with sorted causes: those of a custom resource are in the random order of Go's maps."""
    lines = text.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if line.startswith("* ")), len(lines))
    return "".join([*lines[:first], *sorted(lines[first:])])


def _number(cases: list[Case]) -> list[Case]:
    """Number the cases of the same command, so that names are unique."""
    seen: dict[str, int] = {}
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        if seen[case.name] > 1:
            case.name = f"{case.name} ({seen[case.name]})"
    return cases
