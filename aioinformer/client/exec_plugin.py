"""Run exec plugins, commands that print credentials (client.authentication.k8s.io ``ExecCredential``).

The runners of the libraries ignore when credentials expire, leave the process running when they are cancelled, and
hang when a plugin writes much to stderr.
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

import anyio
import msgspec

from .._core.tasks import wait_ended
from .._core.timers import call_every
from ..errors import ConfigError
from ..objects.nesting import DECODE_ERRORS, decode_any
from .libraries import to_thread
from .sections import native

logger = logging.getLogger(__name__)

PLUGIN_TIMEOUT = 300.0
"""Seconds after which a plugin is killed if there is no terminal. It is long because the plugin may open a browser."""

PROGRESS_PERIOD = 10.0
"""Seconds between log lines about a plugin that is still running."""

LARGEST_OUTPUT = 1024 * 1024
"""Bytes of output after which a plugin is killed."""

_KILL_TIMEOUT = 1.0
_STDERR_TIMEOUT = 0.1
_STDERR_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The result of a plugin: a token, a client certificate with its key, or both."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    expires: str = ""


async def run_exec_plugin(
    config: Mapping[str, Any], directory: str, cluster: Mapping[str, Any]
) -> ExecCredential:
    """Run the plugin of a kubeconfig's user, and return its credential.

    At a terminal the plugin writes its standard error there and has no time limit, so that a user can log in.
    Elsewhere its standard error goes to the log, and the plugin is killed after ``PLUGIN_TIMEOUT``. While it runs, a
    log line says so every ten seconds, at WARNING if there is no terminal.

    Cancellation: kills the process before it returns, and the process's children unless they share the terminal.

    Args:
        config: The user's ``exec`` section.
        directory: The kubeconfig's directory, to which a relative command is relative.
        cluster: The cluster's fields, sent if the section sets ``provideClusterInfo``.

    Raises:
        ConfigError: The plugin cannot be run, failed, or returned no credentials.
    """
    command, api_version = native(str(config.get("command") or "")), str(config.get("apiVersion") or "")
    if not command or not api_version:
        raise ConfigError("the exec section of the user needs command and apiVersion")
    if not os.path.dirname(command):
        command = await to_thread(_find, command, _hint(config))
    elif not os.path.isabs(command):
        command = os.path.join(directory, command)
    mode, has_terminal = config.get("interactiveMode"), _is_terminal(sys.stdin)
    if mode == "Always" and not has_terminal:
        raise ConfigError(
            f"exec plugin {command} is interactive (Always), but standard input is not a terminal"
        )
    interactive = has_terminal and mode != "Never"
    environment = {
        **os.environ,
        **_variables(config),
        "KUBERNETES_EXEC_INFO": native(_exec_info(config, api_version, cluster, interactive)),
    }
    arguments = [native(str(argument)) for argument in config.get("args") or ()]
    output = await _output([command, *arguments], environment, interactive, config)
    return _credential(output, command, api_version)


def _find(command: str, hint: str) -> str:
    """Return the path of a command in this process's PATH, as Go does. Ignores a PATH in the section. Blocks.

    Refuses a command found by a relative entry of PATH, such as ``.``, as Go's ``LookPath`` does: others may have put
    it into the working directory.
    """
    path = shutil.which(command)
    if path is None:
        raise ConfigError(f"exec plugin {command} cannot be run: it is not in PATH{hint}")
    if not os.path.isabs(path):
        raise ConfigError(
            f"exec plugin {command} is not run: a relative entry of PATH finds it as {path} in the working directory. "
            "Write its absolute path into the kubeconfig, or remove that entry from PATH"
        )
    return path


def _hint(config: Mapping[str, Any]) -> str:
    """Return the section's installation hint, as the end of an error message."""
    hint = str(config.get("installHint") or "").strip()
    return f"; {hint}" if hint else ""


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the section's environment variables. One without a value is empty, as in client-go."""
    variables = {}
    for entry in config.get("env") or ():
        if not isinstance(entry, dict) or not entry.get("name"):
            raise ConfigError("each entry in env of the user's exec section needs a name and a value")
        value = entry.get("value")
        variables[native(str(entry["name"]))] = "" if value is None else native(str(value))
    return variables


async def _output(
    argv: list[str], environment: Mapping[str, str], interactive: bool, config: Mapping[str, Any]
) -> bytes:
    """Run a command and return its standard output."""
    try:
        transport, process = await _start(argv, environment, interactive)
    except OSError as error:
        raise ConfigError(f"exec plugin {argv[0]} cannot be run: {error}{_hint(config)}") from error
    stderr, at_terminal = process.stderr, interactive or _is_terminal(sys.stderr)
    level, periods = logging.INFO if at_terminal else logging.WARNING, itertools.count(1)

    def log_progress() -> None:
        seconds = next(periods) * PROGRESS_PERIOD
        logger.log(level, "exec plugin %s has run for %g s%s", argv[0], seconds, _last_message(stderr))

    try:
        with anyio.fail_after(None if at_terminal else PLUGIN_TIMEOUT):
            with call_every(PROGRESS_PERIOD, log_progress):
                await process.output_ended.wait()
                if len(process.output) > LARGEST_OUTPUT:
                    raise ConfigError(f"exec plugin {argv[0]} wrote more than {LARGEST_OUTPUT} bytes")
                await process.wait_ended()
            if transport.get_pipe_transport(2) is not None:
                with anyio.move_on_after(
                    _STDERR_TIMEOUT
                ):  # a child that keeps running may hold the pipe open
                    await process.stderr_ended.wait()
    except BaseException as error:
        # Also after the process has ended: its children may hold the pipes open.
        await _end(transport, process, interactive)
        if isinstance(error, TimeoutError):
            raise ConfigError(
                f"exec plugin {argv[0]} did not end within {PLUGIN_TIMEOUT:g} seconds{_last_message(stderr)}"
            ) from error
        raise
    finally:
        transport.close()
    if (code := transport.get_returncode()) != 0:
        reason = _last_message(stderr) or ": no message"
        raise ConfigError(f"exec plugin {argv[0]} failed with code {code}{reason}")
    if stderr:
        logger.info("exec plugin %s%s", argv[0], _last_message(stderr))
    return bytes(process.output)


class _Process(asyncio.SubprocessProtocol):
    """Collects a plugin's standard output, and the end of its standard error.

    Not ``asyncio.subprocess.Process``, whose ``wait`` also waits for the end of standard error.
    """

    def __init__(self) -> None:
        self.output, self.stderr = bytearray(), bytearray()
        self.output_ended, self.stderr_ended, self._exited = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait_ended(self) -> None:
        """Wait until the process has exited and its standard output has ended."""
        await self.output_ended.wait()
        await self._exited.wait()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            if not self.output_ended.is_set():
                self.output += data
            if len(self.output) > LARGEST_OUTPUT:
                self.output_ended.set()
        else:
            self.stderr += data
            del self.stderr[: -4 * _STDERR_CHARACTERS]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        (self.output_ended if fd == 1 else self.stderr_ended).set()

    def process_exited(self) -> None:
        self._exited.set()


def _last_message(stderr: bytearray) -> str:
    """Return the end of standard error in one line, as the end of a message."""
    text = " ".join(stderr.decode("utf-8", "replace").split())[-_STDERR_CHARACTERS:]
    return f": {text}" if text else ""


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal. Programs may replace ``sys.stdin`` and ``sys.stderr`` by any object."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return stream is not None and os.isatty(stream.fileno())
    return False


async def _start(
    argv: list[str], environment: Mapping[str, str], interactive: bool
) -> tuple[asyncio.SubprocessTransport, _Process]:
    """Start the process. When cancelled, kill it: event loops leave it running, or wait for its children."""
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
            start_new_session=not interactive,  # makes it possible to kill its children too
        )
    )
    try:
        await wait_ended(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(*starting.result(), interactive)
        raise
    return starting.result()


async def _end(transport: asyncio.SubprocessTransport, process: _Process, interactive: bool) -> None:
    """Kill the process and close its pipes. Kill its children too, unless they share the terminal."""
    with contextlib.suppress(ProcessLookupError):
        if interactive or not hasattr(os, "killpg"):
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)
    try:
        with anyio.move_on_after(
            _KILL_TIMEOUT, shield=True
        ):  # a child in another session may hold the pipes open
            await process.wait_ended()
    finally:
        transport.close()


def _exec_info(
    config: Mapping[str, Any], api_version: str, cluster: Mapping[str, Any], interactive: bool
) -> str:
    """Return the value of ``$KUBERNETES_EXEC_INFO``."""
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
    """Return the credential in a plugin's output."""
    try:
        decoded = decode_any(output)
    except DECODE_ERRORS as error:
        raise ConfigError(f"exec plugin {command} did not write JSON: {error}") from error
    status = decoded.get("status") if isinstance(decoded, dict) else None
    if not isinstance(status, dict):
        raise ConfigError(f"exec plugin {command} did not write an ExecCredential with a status")
    if decoded.get("apiVersion") != api_version:
        raise ConfigError(
            f"exec plugin {command} returned apiVersion {decoded.get('apiVersion')}, "
            f"but the kubeconfig asks for {api_version}"
        )
    credential = ExecCredential(
        token=str(status.get("token") or "").strip(),
        certificate=str(status.get("clientCertificateData") or ""),
        key=str(status.get("clientKeyData") or ""),
        expires=str(status.get("expirationTimestamp") or ""),
    )
    if bool(credential.certificate) != bool(credential.key):
        raise ConfigError(
            f"exec plugin {command} returned a client certificate without its key, or a key without its certificate"
        )
    if not credential.token and not credential.certificate:
        raise ConfigError(f"exec plugin {command} returned neither a token nor a client certificate")
    return credential
