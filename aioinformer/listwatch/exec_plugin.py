"""Exec plugins: credentials from a command (client.authentication.k8s.io ``ExecCredential``).

The libraries have a runner of their own, which forgets when the credentials expire, leaves the process behind when
it is cancelled and stops for good when a plugin writes much to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..decoders import DECODE_ERRORS
from ..errors import ConfigError

PLUGIN_TIMEOUT = 60.0
"""Seconds after which a plugin that nobody can talk to is ended."""

_LONGEST_END = 1.0


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

    Cancelled, it ends the process, and its children, before it returns.

    Args:
        config: The user's ``exec`` section.
        directory: Of the kubeconfig, which a relative command is relative to.
        cluster: What plugins are told of the cluster that ask for it.

    Raises:
        ConfigError: It cannot be run, failed, or gave no credentials.
    """
    command, api_version = str(config.get("command") or ""), str(config.get("apiVersion") or "")
    if not command or not api_version:
        raise ConfigError("the exec section of the user needs command and apiVersion")
    if os.path.dirname(command) and not os.path.isabs(command):
        command = os.path.join(directory, command)
    mode, has_terminal = config.get("interactiveMode"), sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not has_terminal:
        raise ConfigError(f"exec plugin {command} asks people, and standard input is no terminal")
    interactive = has_terminal and mode != "Never"
    environment = {
        **os.environ,
        **_variables(config),
        "KUBERNETES_EXEC_INFO": _exec_info(config, api_version, cluster, interactive),
    }
    output = await _output([command, *map(str, config.get("args") or ())], environment, interactive, config)
    return _credential(output, command, api_version)


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    """What the section adds to the environment. Without a value a variable is empty, as for client-go."""
    variables = {}
    for entry in config.get("env") or ():
        if not isinstance(entry, dict) or not entry.get("name"):
            raise ConfigError("each entry in env of the user's exec section needs a name, and has a value")
        value = entry.get("value")
        variables[str(entry["name"])] = "" if value is None else str(value)
    return variables


async def _output(
    argv: list[str], environment: Mapping[str, str], interactive: bool, config: Mapping[str, Any]
) -> bytes:
    try:
        process = await _start(argv, environment, interactive)
    except OSError as error:
        hint = str(config.get("installHint") or "").strip()
        raise ConfigError(
            f"exec plugin {argv[0]} cannot be run: {error}{'; ' + hint if hint else ''}"
        ) from error
    try:
        async with asyncio.timeout(None if interactive else PLUGIN_TIMEOUT):
            output, errors = await process.communicate()
    except BaseException as error:
        await _end(process, interactive)  # it may have ended, and left children that hold its pipes
        if isinstance(error, TimeoutError):
            raise ConfigError(
                f"exec plugin {argv[0]} gave no answer in {PLUGIN_TIMEOUT:g} seconds"
            ) from error
        raise
    if process.returncode != 0:
        said = " ".join((errors or b"").decode("utf-8", "replace").split())[-500:]
        raise ConfigError(
            f"exec plugin {argv[0]} failed with code {process.returncode}: {said or 'no message'}"
        )
    return output


async def _start(argv: list[str], environment: Mapping[str, str], interactive: bool) -> Process:
    """Start the process; cancelled meanwhile, end it again. The loops leave it running, or wait for its children."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            start_new_session=not interactive,  # so that its children can be ended with it
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(await starting, interactive)
        raise


async def _end(process: Process, interactive: bool) -> None:
    """Kill the process, and unless it shares our terminal its children too, and close the pipes."""
    with contextlib.suppress(ProcessLookupError):
        if interactive or not hasattr(os, "killpg"):
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):  # should a child have got away with the pipes
        async with asyncio.timeout(_LONGEST_END):
            await process.communicate()


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
