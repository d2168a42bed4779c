"""Build the programs that run scripts through client-go. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.go_build import CACHE, GoBuild

FOLDER = Path(__file__).resolve().parent


def oracle(version: str, program: str, *words: str) -> GoBuild:
    """Return the build of a program of one of the Go modules beside this file.

    Args:
        version: The module's folder: ``"v030"`` or ``"v036"``.
        program: The package's folder in it, which is also the program's name.
        words: The go command, if not ``build``: ``"test", "-c"`` for programs that need testing/synctest.
    """
    return GoBuild(
        f"client-go {version}",
        FOLDER / version,
        {program: (*(words or ("build",)), f"./{program}")},
        cache=CACHE / "oracle" / f"{version}-{program}",
        sources=(program,),
        purpose="make test compares with client-go itself",
        expectation="half a minute the first time",
    )


INFORMER_V030 = oracle("v030", "informer", "test", "-c")
"""The shared informer of client-go 0.30, on a DeltaFIFO."""

INFORMER_V036 = oracle("v036", "informer", "test", "-c")
"""The shared informer of client-go 0.36, on a RealFIFO."""

QUEUE_V030 = oracle("v030", "queue")
"""DeltaFIFO and the controller of client-go 0.30."""

QUEUE_V036 = oracle("v036", "queue")
"""RealFIFO, DeltaFIFO and the indexer of client-go 0.36."""
