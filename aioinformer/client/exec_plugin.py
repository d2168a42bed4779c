"""Exec plugins: credentials from a command (client.authentication.k8s.io ``ExecCredential``).

The libraries have a runner of their own, which forgets when the credentials expire, leaves the process behind when
it is cancelled and stops for good when a plugin writes much to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import msgspec

from .._core.timers import call_every
from ..errors import ConfigError
from ..objects.decoders import DECODE_ERRORS
from .libraries import to_thread
from .sections import native

logger = logging.getLogger(__name__)

PLUGIN_TIMEOUT = 300.0
"""Seconds after which a plugin is ended where there is no terminal: it may have opened a browser all the same."""

PROGRESS_PERIOD = 10.0
"""Seconds of running after which the log says so, again and again."""

LARGEST_OUTPUT = 1024 * 1024
"""Bytes beyond which what a plugin gives is no credential, and it is ended."""

_LONGEST_END = 1.0
_LAST_WORDS = 0.1
_LONGEST_WORDS = 500


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin gave: a token, a client certificate with its key, or both."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    expires: str = ""


async def run_exec_plugin(
    config: Mapping[str, Any], directory: str, cluster: Mapping[str, Any]
) -> ExecCredential:
    """Run the plugin of a kubeconfig's user.

    Where standard error is a terminal the plugin writes to it; else the log has what it writes. It may take its time
    where there is a terminal, for somebody to log in, and ``PLUGIN_TIMEOUT`` elsewhere. Every ten seconds the log says
    that it runs, at WARNING where nobody sees it. Cancelled, it ends the process before it returns, and its children
    unless they share the terminal.

    Args:
        config: The user's ``exec`` section.
        directory: Of the kubeconfig, which a relative command is relative to.
        cluster: What plugins are told of the cluster that ask for it.

    Raises:
        ConfigError: It cannot be run, failed, or gave no credentials.
    """
    command, api_version = native(str(config.get("command") or "")), str(config.get("apiVersion") or "")
    if not command or not api_version:
        raise ConfigError("the exec section of the user needs command and apiVersion")
    if not os.path.dirname(command):
        command = await to_thread(_found, command, _hint(config))
    elif not os.path.isabs(command):
        command = os.path.join(directory, command)
    mode, has_terminal = config.get("interactiveMode"), _is_terminal(sys.stdin)
    if mode == "Always" and not has_terminal:
        raise ConfigError(f"exec plugin {command} asks people, and standard input is no terminal")
    interactive = has_terminal and mode != "Never"
    environment = {
        **os.environ,
        **_variables(config),
        "KUBERNETES_EXEC_INFO": native(_exec_info(config, api_version, cluster, interactive)),
    }
    arguments = [native(str(argument)) for argument in config.get("args") or ()]
    output = await _output([command, *arguments], environment, interactive, config)
    return _credential(output, command, api_version)


def _found(command: str, hint: str) -> str:
    """Where a command is by our own PATH, as for Go, whichever the section gives the plugin. Blocks.

    What an entry of PATH finds that is relative, such as ``.``, may have been put there by anybody: Go's ``LookPath``
    refuses it, too, even if a later entry has the command.
    """
    found = shutil.which(command)
    if found is None:
        raise ConfigError(f"exec plugin {command} cannot be run: it is not in PATH{hint}")
    if not os.path.isabs(found):
        raise ConfigError(
            f"exec plugin {command} is not run: a relative entry of PATH finds it as {found} in the working directory. "
            "Put its whole path into the kubeconfig, or take that entry out of PATH"
        )
    return found


def _hint(config: Mapping[str, Any]) -> str:
    """What the section says about installing the plugin, to be put behind an error."""
    hint = str(config.get("installHint") or "").strip()
    return f"; {hint}" if hint else ""


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    """What the section adds to the environment. Without a value a variable is empty, as for client-go."""
    variables = {}
    for entry in config.get("env") or ():
        if not isinstance(entry, dict) or not entry.get("name"):
            raise ConfigError("each entry in env of the user's exec section needs a name, and has a value")
        value = entry.get("value")
        variables[native(str(entry["name"]))] = "" if value is None else native(str(value))
    return variables


async def _output(
    argv: list[str], environment: Mapping[str, str], interactive: bool, config: Mapping[str, Any]
) -> bytes:
    try:
        transport, process = await _start(argv, environment, interactive)
    except OSError as error:
        raise ConfigError(f"exec plugin {argv[0]} cannot be run: {error}{_hint(config)}") from error
    said, is_seen = process.said, interactive or _is_terminal(sys.stderr)
    level, periods = logging.INFO if is_seen else logging.WARNING, itertools.count(1)

    def tell() -> None:
        """Say in the log that somebody is waited for, and what for."""
        seconds = next(periods) * PROGRESS_PERIOD
        logger.log(level, "exec plugin %s has run for %g s%s", argv[0], seconds, _words(said))

    try:
        async with asyncio.timeout(None if is_seen else PLUGIN_TIMEOUT):
            with call_every(PROGRESS_PERIOD, tell):
                await process.has_given.wait()
                if len(process.output) > LARGEST_OUTPUT:
                    raise ConfigError(f"exec plugin {argv[0]} gave more than {LARGEST_OUTPUT} bytes")
                await process.ended()
            if transport.get_pipe_transport(2) is not None:
                with contextlib.suppress(TimeoutError):  # a helper that it leaves behind may hold it for good
                    async with asyncio.timeout(_LAST_WORDS):
                        await process.is_silent.wait()
    except BaseException as error:
        # It may have ended, and left children that hold its pipes.
        await _end(transport, process, interactive)
        if isinstance(error, TimeoutError):
            raise ConfigError(
                f"exec plugin {argv[0]} gave no answer in {PLUGIN_TIMEOUT:g} seconds{_words(said)}"
            ) from error
        raise
    finally:
        transport.close()
    if (code := transport.get_returncode()) != 0:
        raise ConfigError(f"exec plugin {argv[0]} failed with code {code}{_words(said) or ': no message'}")
    if said:
        logger.info("exec plugin %s%s", argv[0], _words(said))
    return bytes(process.output)


class _Process(asyncio.SubprocessProtocol):
    """What a plugin gives, and the last of what it says to people.

    ``asyncio.subprocess.Process.wait`` waits for the end of standard error, too.
    """

    def __init__(self) -> None:
        self.output, self.said = bytearray(), bytearray()
        self.has_given, self.is_silent, self._has_exited = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def ended(self) -> None:
        """Wait for its end, and for that of what it gives."""
        await self.has_given.wait()
        await self._has_exited.wait()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            if not self.has_given.is_set():
                self.output += data
            if len(self.output) > LARGEST_OUTPUT:
                self.has_given.set()
        else:
            self.said += data
            del self.said[: -4 * _LONGEST_WORDS]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        (self.has_given if fd == 1 else self.is_silent).set()

    def process_exited(self) -> None:
        self._has_exited.set()


def _words(said: bytearray) -> str:
    """What the plugin has said last, in one line, behind what is said of it."""
    words = " ".join(said.decode("utf-8", "replace").split())[-_LONGEST_WORDS:]
    return f": {words}" if words else ""


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether it is one that can be handed on: anything may stand in for ``sys.stdin`` and ``sys.stderr``."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return stream is not None and os.isatty(stream.fileno())
    return False


async def _start(
    argv: list[str], environment: Mapping[str, str], interactive: bool
) -> tuple[asyncio.SubprocessTransport, _Process]:
    """Start the process; cancelled meanwhile, end it again. The loops leave it running, or wait for its children."""
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            _Process,
            *argv,
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None
            if interactive
            else sys.stderr
            if _is_terminal(sys.stderr)
            else asyncio.subprocess.PIPE,
            start_new_session=not interactive,  # so that its children can be ended with it
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(*await starting, interactive)
        raise


async def _end(transport: asyncio.SubprocessTransport, process: _Process, interactive: bool) -> None:
    """Kill the process, and unless it shares our terminal its children too, and close the pipes."""
    with contextlib.suppress(ProcessLookupError):
        if interactive or not hasattr(os, "killpg"):
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)
    try:
        with contextlib.suppress(TimeoutError):  # should a child have got away with the pipes
            async with asyncio.timeout(_LONGEST_END):
                await process.ended()
    finally:
        transport.close()


def _exec_info(
    config: Mapping[str, Any], api_version: str, cluster: Mapping[str, Any], interactive: bool
) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if config.get("provideClusterInfo"):
        names = (
            "server",
            "tls-server-name",
            "insecure-skip-tls-verify",
            "certificate-authority-data",
            "proxy-url",
            "disable-compression",
            "config",
        )
        spec["cluster"] = {name: cluster[name] for name in names if name in cluster}
    info = {"apiVersion": api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def _credential(output: bytes, command: str, api_version: str) -> ExecCredential:
    try:
        said = msgspec.json.decode(output)
    except DECODE_ERRORS as error:
        raise ConfigError(f"exec plugin {command} gave no JSON: {error}") from error
    status = said.get("status") if isinstance(said, dict) else None
    if not isinstance(status, dict):
        raise ConfigError(f"exec plugin {command} gave no ExecCredential with a status")
    if said.get("apiVersion") != api_version:
        raise ConfigError(
            f"exec plugin {command} speaks {said.get('apiVersion')}, the kubeconfig asks for {api_version}"
        )
    credential = ExecCredential(
        token=str(status.get("token") or "").strip(),
        certificate=str(status.get("clientCertificateData") or ""),
        key=str(status.get("clientKeyData") or ""),
        expires=str(status.get("expirationTimestamp") or ""),
    )
    if bool(credential.certificate) != bool(credential.key):
        raise ConfigError(f"exec plugin {command} gave a client certificate without its key, or the reverse")
    if not credential.token and not credential.certificate:
        raise ConfigError(f"exec plugin {command} gave neither a token nor a client certificate")
    return credential
