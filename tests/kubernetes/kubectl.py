"""kubectl as a coroutine."""

import asyncio
from collections.abc import Sequence
from pathlib import Path


class KubectlError(Exception):
    """kubectl failed; the message is its output."""


async def run_kubectl(command: Sequence[str | Path], *args: str, stdin: str | None = None) -> str:
    """Run the command with the arguments and return its output; a cancellation ends the process.

    Raises:
        KubectlError: Its exit code was not 0.
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
