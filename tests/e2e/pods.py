"""What pods and Services do, for operators that run as processes."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp


async def is_ready(port: int) -> bool:
    """Return whether /readyz of a probe port says so."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one of the sides closes."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
