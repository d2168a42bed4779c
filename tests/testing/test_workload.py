"""The workload of the demo's server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer
from aioinformer.testing.workload import NAMESPACE, Workload

README = Path(__file__).parents[2] / "README.md"


async def test_the_first_code_of_the_readme_finds_pods_in_the_demo(
    server: APIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Workload(server, seed=0).populate(300)
    (code, *_) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    for named, instead in (
        ("Client.from_kubeconfig()", f"Client.from_url({server.url!r})"),
        ("asyncio.sleep(3600)", "asyncio.sleep(0)"),
        ("asyncio.run(main())", ""),
    ):
        assert named in code
        code = code.replace(named, instead)
    names: dict[str, Any] = {}
    exec(code, names)
    await names["main"]()
    said = re.search(r"(\d+) web pods; (\d+) on node-1", capsys.readouterr().out)
    assert said is not None
    web, here = map(int, said.groups())
    assert web == 60
    assert 0 < here < 300


async def test_recreated_pod_keeps_its_labels(server: APIServer) -> None:
    workload = Workload(server, seed=0)
    workload.populate(20)
    while not workload.done["re-created"]:
        workload.step()
    for pod in server.list("v1", "pods", NAMESPACE):
        assert pod["metadata"]["name"].startswith(f"{pod['metadata']['labels']['app']}-")
