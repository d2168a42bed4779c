"""``aioinformer run --dev``: an embedded API server, and an operator that restarts when its source changes."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import anyio
import trustme

from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import run_until_first
from ..testing import APIServer
from ..testing.access.tls import write_certificate
from .kubeconfig_path import kubeconfig_of
from .loading import names_of
from .output import convert_write_errors, write
from .parent import OPTION as END_WITH_STDIN
from .parent import STEPS
from .sources import OPTION, POLL, Sources

logger = logging.getLogger(__name__)

DEFINITIONS = ("apiextensions.k8s.io/v1", "customresourcedefinitions")


async def run_dev(target: str, arguments: Sequence[str]) -> None:
    """Run an operator against an embedded API server until a signal arrives.

    The server keeps its objects while the operator restarts.

    Args:
        target: ``MODULE:OBJECT``.
        arguments: Options of ``aioinformer run`` for the operator.

    Raises:
        ConfigError: There is no such module.
    """
    module, _ = names_of(target)
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
        sources = Sources(module, Path(folder) / "sources.json")
        await run_until_signal(
            lambda: _run_dev(target, arguments, sources, Path(folder)),
            f"aioinformer run --dev {target}",
            STOP_SIGNALS,
        )


async def _run_dev(target: str, arguments: Sequence[str], sources: Sources, folder: Path) -> None:
    with kubeconfig_of(target, folder) as kubeconfig:
        async with APIServer(tls=True, token=secrets.token_urlsafe(16), workloads=True) as server:
            server.kubeconfig(kubeconfig)
            with convert_write_errors():
                write(f"an API server at {server.url}; for kubectl: export KUBECONFIG={kubeconfig}\n")
            cert, key, authority = write_certificate(trustme.CA(), folder)
            certificate = (f"--tls-cert={cert}", f"--tls-key={key}", f"--webhook-ca={authority}")
            reported = f"{OPTION}={sources.report}"
            options = (f"--kubeconfig={kubeconfig}", reported, *certificate, "--force-crds", *arguments)
            while True:
                child = await _start(target, options)
                try:
                    await run_until_first(sources.wait_changed, partial(_wait_installed, child, server))
                finally:
                    await _stop(child)
                    _unregister(server, authority)


def _unregister(server: APIServer, authority: Path) -> None:
    """Delete the configurations of the operator's webhooks, which would refuse requests while it is down."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    for kind in ("mutating", "validating"):
        plural = f"{kind}webhookconfigurations"
        for configuration in server.list("admissionregistration.k8s.io/v1", plural):
            if any(
                hook["clientConfig"].get("caBundle") == bundle for hook in configuration.get("webhooks") or ()
            ):
                server.delete("admissionregistration.k8s.io/v1", plural, configuration["metadata"]["name"])


async def _start(target: str, options: Iterable[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "aioinformer", "run", target, END_WITH_STDIN, *options,
        stdin=asyncio.subprocess.PIPE,  # closes when this process ends, however it does
        start_new_session=True,  # Ctrl-C in the terminal reaches only this process, which passes it on
    )  # fmt: skip


async def _wait_installed(child: asyncio.subprocess.Process, server: APIServer) -> None:
    """Report when the operator has ended, and return when a kind that it may lack is installed after that."""
    code = await child.wait()
    logger.warning(
        "the operator has ended with %d; it starts again when its source changes, or when a CustomResourceDefinition "
        "is installed",
        code,
    )
    before = server.snapshot(*DEFINITIONS).keys()
    while True:
        await asyncio.sleep(POLL)
        if server.snapshot(*DEFINITIONS).keys() - before:
            logger.info("a CustomResourceDefinition was installed: restarting")
            return


async def _stop(child: asyncio.subprocess.Process) -> None:
    """End the operator by STEPS. If this is cancelled, the operator ends with its standard input."""
    for number, patience in STEPS:
        if child.returncode is not None:
            return
        child.send_signal(number)
        with anyio.move_on_after(patience or None):
            await child.wait()
