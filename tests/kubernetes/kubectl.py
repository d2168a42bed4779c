"""kubectl as a coroutine."""

import asyncio
from collections.abc import Sequence
from pathlib import Path


class KubectlError(Exception):
    """kubectl returned an error; what it said is the message."""


async def run_kubectl(command: Sequence[str | Path], *args: str, stdin: str | None = None) -> str:
    """Runs the command with the arguments and returns what it printed; cancelled, it ends the process.

    Raises:
        KubectlError: it returned other than 0.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        *args,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate(None if stdin is None else stdin.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise KubectlError(f"kubectl {' '.join(args)}: {errors.decode().strip()}")
    return output.decode()
