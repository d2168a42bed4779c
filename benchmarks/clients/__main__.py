"""A client of the benchmarks: ``python -m benchmarks.clients NAME --server URL ...``, see CONTRACT.md."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from typing import Any

import uvloop

from .driver import drive
from .peer import Options, Peer, UnsupportedError
from .tally import Tally

NAMES = (
    "aioinformer",
    "kubernetes_asyncio",
    "kubernetes",
    "lightkube",
    "kopf",
    "orjson",
    "orjson-dropped",
    "floor",
    "idle",
    "stages",
    "operator-aioinformer",
    "operator-kopf",
)


def make(name: str, options: Options) -> tuple[Peer, Tally]:
    """Return a client and the tally of its handlers. Only the client's own imports are made."""
    if name == "aioinformer":
        from .aioinformer_peer import AioInformer, object_type

        tally = Tally(object_type(options.form)[1], options.handler)
        return AioInformer(options, [tally.handler() for _ in range(options.handlers)]), tally
    if name in ("floor", "idle"):
        from .bare import Floor, Idle

        tally = Tally("dict", "metadata")
        return (Floor(options, tally) if name == "floor" else Idle(options, tally)), tally
    if name == "stages":
        from .stages import Stages

        tally = Tally("kubeobject", "metadata")
        return Stages(options, tally), tally
    if name == "operator-aioinformer":
        from ..operator_aioinformer import AioInformerOperator

        tally = Tally(AioInformerOperator.shape, options.handler)
        return AioInformerOperator(options, [tally.handler()]), tally
    if name == "operator-kopf":
        from ..operator_kopf import KopfOperator

        tally = Tally(KopfOperator.shape, options.handler)
        return KopfOperator(options, [tally.handler()]), tally
    from . import bare, libraries

    wanted: Any = {
        "kubernetes_asyncio": libraries.KubernetesAsyncio,
        "kubernetes": libraries.Official,
        "lightkube": libraries.Lightkube,
        "kopf": libraries.Kopf,
        "orjson": bare.Orjson,
        "orjson-dropped": bare.OrjsonDropped,
    }[name]
    tally = Tally(wanted.shape, options.handler)
    return wanted(options, [tally.handler() for _ in range(options.handlers)]), tally


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=NAMES)
    for text in ("server", "ca", "encoding", "initial", "handler", "form", "loop", "failures"):
        parser.add_argument(f"--{text}", required=True)
    for number in ("objects", "handlers", "informers", "probe"):
        parser.add_argument(f"--{number}", type=int, required=True)
    given = vars(parser.parse_args())
    name = given.pop("name")
    options = Options(**(given | {"probe": bool(given["probe"])}))
    logging.basicConfig(level=logging.WARNING)

    async def run() -> None:
        peer, tally = make(name, options)
        await drive(peer, tally)

    try:
        (uvloop.run if options.loop == "uvloop" else asyncio.run)(run())
    except UnsupportedError as error:
        print(f"not supported: {error}", file=sys.stderr)
        raise SystemExit(3) from None


main()
