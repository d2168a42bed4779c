"""controller-runtime's own test suites on both servers.

They are compiled in the Go module as it was published, and run with ``USE_EXISTING_CLUSTER``.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from tests.go_build import CACHE, GoBuild, Report

from .masks import mask
from .results import DIFFERS, SAME, Case
from .servers import Target, embedded, real

MODULE = "sigs.k8s.io/controller-runtime@v0.24.1"
TIMEOUT = "12m"
SEED = "1"
"""The order of the specs, alike on both servers."""


class Suite(NamedTuple):
    """A package with a test suite, and the Go test that runs it."""

    package: str
    test: str

    @property
    def name(self) -> str:
        return f"controller-runtime {self.package}"


SUITES = (Suite("pkg/client", "TestClient"), Suite("pkg/cache", "TestSource"))


class Spec(NamedTuple):
    """The result of one spec; the message is that of its failure."""

    status: str
    message: str


async def run_suite(suite: Suite, report: Report) -> list[Case]:
    """Run a suite on each server, one after the other, and pair their specs."""
    source = _download()
    build = _build(source, suite)
    binary = await asyncio.to_thread(build.ensure, report=report) / "suite.test"
    ours = await _run_on(embedded(controllers=False), suite, binary, source, report)
    theirs = await _run_on(real(controllers=False), suite, binary, source, report)
    return [_case(suite, name, ours.get(name), spec) for name, spec in theirs.items()]


def _download() -> Path:
    """Return the folder of the module's sources, which Go downloads if they are missing."""
    said = subprocess.check_output(["go", "mod", "download", "-json", MODULE], text=True)
    return Path(json.loads(said)["Dir"])


def _build(source: Path, suite: Suite) -> GoBuild:
    return GoBuild(
        suite.name,
        source,
        {"suite.test": ("test", "-c", f"./{suite.package}")},
        cache=CACHE / "conformance" / suite.package.replace("/", "-"),
        sources=(suite.package,),
        purpose="make conformance runs them",
        expectation="three minutes the first time",
    )


async def _run_on(
    server: AbstractAsyncContextManager[Target], suite: Suite, binary: Path, source: Path, report: Report
) -> dict[str, Spec]:
    async with server as target:
        with tempfile.TemporaryDirectory() as folder:
            junit = Path(folder) / "junit.xml"
            report(f"{suite.name}: running on the {target.name} server")
            process = await asyncio.create_subprocess_exec(
                binary,
                f"-test.run=^{suite.test}$",
                f"-test.timeout={TIMEOUT}",
                f"-ginkgo.seed={SEED}",
                "-ginkgo.flake-attempts=2",  # some specs wait a short time, too short for a busy machine
                f"-ginkgo.timeout={TIMEOUT}",
                "-ginkgo.no-color",
                f"-ginkgo.junit-report={junit}",
                cwd=source / suite.package,
                env={**os.environ, "USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(target.kubeconfig)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                output, _ = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if not junit.exists():
                raise RuntimeError(
                    f"{suite.name} wrote no report:\n{output.decode(errors='replace')[-4000:]}"
                )
            specs = _read(junit)
    passed = sum(spec.status == "passed" for spec in specs.values())
    report(f"{suite.name}: {passed} of {len(specs)} passed on the {target.name} server")
    return specs


def _read(junit: Path) -> dict[str, Spec]:
    """Return the specs by name; specs of the same name are numbered."""
    specs: dict[str, Spec] = {}
    seen: Counter[str] = Counter()
    for case in ET.parse(junit).iter("testcase"):
        name = case.get("name", "")
        if not name.startswith("[It] ") or case.get("status") in ("pending", "skipped"):
            continue
        name = name.removeprefix("[It] ")
        seen[name] += 1
        if seen[name] > 1:
            name = f"{name} ({seen[name]})"
        trouble = next((part for part in case if part.tag in ("failure", "error")), None)
        message = "" if trouble is None else trouble.get("message", "") or (trouble.text or "")
        specs[name] = Spec(case.get("status", ""), mask(message.strip()))
    return specs


def _case(suite: Suite, name: str, ours: Spec | None, theirs: Spec) -> Case:
    ours = ours or Spec("missing", "")
    if ours.status == theirs.status:
        cause = "" if theirs.status == "passed" else "fails on both servers"
        return Case(suite.name, suite.name, name, SAME, cause=cause)
    where = "real" if theirs.status == "passed" else "embedded"
    cause = f"passes on the {where} server only"
    return Case(suite.name, suite.name, name, DIFFERS, _show(ours), _show(theirs), cause)


def _show(spec: Spec) -> str:
    return f"{spec.status}: {spec.message}" if spec.message else spec.status
