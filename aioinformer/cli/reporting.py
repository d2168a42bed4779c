"""How commands report mistakes and failures: one line on standard error, and an exit code."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from ..errors import AioInformerError, ConfigError, message_of
from .logs import is_json_log
from .output import OutputError, print_error

logger = logging.getLogger("aioinformer")

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@contextmanager
def usage() -> Iterator[None]:
    """Report a ConfigError from checking arguments as bad usage."""
    try:
        yield
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


@contextmanager
def report_errors() -> Iterator[None]:
    """Exit with a one-line message on an AioInformerError, and with a traceback on an OSError of the user's code.

    With a JSON log, all errors go to the log.
    """
    try:
        yield
    except AioInformerError as error:
        if not (isinstance(error, OutputError) and error.is_closed):
            fail(str(error))
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        if isinstance(error.code, str) and is_json_log():
            fail(error.code)
        raise
    except BaseException as error:
        if is_json_log():
            logger.critical("the program failed: %s", message_of(error), exc_info=error)
        elif isinstance(error, OSError):  # main() takes those that remain for errors of the output
            traceback.print_exc()
        else:
            raise
        raise typer.Exit(1) from None


def fail(reason: str, code: int = 1) -> NoReturn:
    """Print a reason on one line, and exit."""
    line = " ".join(reason.split())
    if is_json_log():
        logger.critical("%s", line)
    else:
        print_error(f"aioinformer: {line}")
    raise typer.Exit(code)


def uvloop_factory(option: str) -> LoopFactory:
    """Return what creates uvloop's event loops.

    Args:
        option: The option that asks for it, for the message if uvloop is missing.
    """
    try:
        import uvloop
    except ModuleNotFoundError:
        fail(f"{option} needs uvloop: pip install uvloop")
    factory: LoopFactory = uvloop.new_event_loop
    return factory
