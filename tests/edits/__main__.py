"""Make random edits on a real kube-apiserver: ``python -m tests.edits [EDITS] [FIRST_SEED]``."""

from __future__ import annotations

import asyncio
import sys
import time

from aioinformer import Client

from ..e2e.api import API
from ..e2e.definitions import define
from ..kubernetes.controlplane import ControlPlane
from .campaign import Campaign
from .kinds import definition


async def main(edits: int, first: int) -> None:
    async with (
        ControlPlane() as plane,
        API(plane.url, plane.token, plane.ssl_context()) as api,
        Client.from_kubeconfig(path=plane.kubeconfig) as client,
    ):
        await define(api, definition())
        campaign = Campaign(api, client, plane.create_namespace())
        begin = time.monotonic()
        await campaign.run(range(first, first + edits))
        lines = [f"{edits} edits in {time.monotonic() - begin:.0f} s"]
        lines += [
            f"{verb:8}{outcome:32}{times:8}" for (verb, outcome), times in sorted(campaign.outcomes.items())
        ]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*[*given, *[10_000, 0][len(given) :]]))
