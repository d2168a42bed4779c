"""The workload of the demo's server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer
from aioinformer.testing.workload import NAMESPACE, Workload

README = Path(__file__).parents[2] / "README.md"


async def test_first_snippet_of_the_readme_finds_pods_in_the_demo(
    server: APIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Workload(server, seed=0).populate(300)
    code, *_ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    code = code.replace("Client.from_environment()", f"Client.from_url({server.url!r})")
    code = code.replace("factory.run_until_signal()", "asyncio.sleep(0)").replace("asyncio.run(main())", "")
    names: dict[str, Any] = {}
    exec(code, names)
    await names["main"]()
    assert "60 web pods" in capsys.readouterr().out


async def test_recreated_pod_keeps_its_labels(server: APIServer) -> None:
    workload = Workload(server, seed=0)
    workload.populate(20)
    while not workload.done["re-created"]:
        workload.step()
    for pod in server.list("v1", "pods", NAMESPACE):
        assert pod["metadata"]["name"].startswith(f"{pod['metadata']['labels']['app']}-")
