"""The workload of the demo's server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer
from aioinformer.testing.workload import NAMESPACE, Workload

README = Path(__file__).parents[2] / "README.md"


async def test_first_snippets_of_the_readme_find_pods_in_the_demo(
    server: APIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Workload(server, seed=0).populate(300)
    listing, handling, *_ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)

    await _run(listing, server)
    assert len(capsys.readouterr().out.splitlines()) == 60

    await _run(handling.replace("asyncio.sleep(3600)", "asyncio.sleep(0)"), server)
    printed = re.search(r"(\d+) pods on node-1", capsys.readouterr().out)
    assert printed is not None
    assert 0 < int(printed[1]) < 300


async def _run(code: str, server: APIServer) -> None:
    names: dict[str, Any] = {}
    code = code.replace("Client.from_kubeconfig()", f"Client.from_url({server.url!r})")
    exec(code.replace("asyncio.run(main())", ""), names)
    await names["main"]()


async def test_recreated_pod_keeps_its_labels(server: APIServer) -> None:
    workload = Workload(server, seed=0)
    workload.populate(20)
    while not workload.done["re-created"]:
        workload.step()
    for pod in server.list("v1", "pods", NAMESPACE):
        assert pod["metadata"]["name"].startswith(f"{pod['metadata']['labels']['app']}-")
