"""A chart on the real server: install, upgrade and uninstall."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client
from aioinformer.operator.manifests import write_chart
from aioinformer.operator.webhook_registration import register
from tests.e2e.conftest import REAL
from tests.kubernetes.controlplane import ControlPlane

from .charts import Helm
from .test_chart import installation, operator

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

AUTHORITY = b"-----BEGIN CERTIFICATE-----"


async def get(plane: ControlPlane, resource: str, *options: str) -> dict[str, Any]:
    return json.loads(await plane.kubectl("get", resource, "-o=json", *options))  # type: ignore[no-any-return]


async def test_a_release_is_upgraded_and_uninstalled(
    helm: Helm, control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane, home, watched = control_plane, control_plane.create_namespace(), control_plane.create_namespace()
    chart, where = tmp_path / "chart", (f"--namespace={home}", f"--kubeconfig={control_plane.kubeconfig}")
    write_chart(operator, installation(ca_bundle=AUTHORITY), chart)
    await helm.run("install", "farms", chart, *where)
    deployment = await get(plane, "deployment/farms", f"-n={home}")
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    configuration = "validatingwebhookconfiguration/farms"
    assert "webhooks" not in await get(plane, configuration)
    async with Client.from_kubeconfig(path=plane.kubeconfig) as client:
        service = f"{home}/farms-webhook"
        await register(client, operator, name="farms", service=service, ca_bundle=AUTHORITY)

    await helm.run("upgrade", "farms", chart, *where, "--set=replicas=2", f"--set=namespaces={{{watched}}}")
    deployment = await get(plane, "deployment/farms", f"-n={home}")
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["type"] == "RollingUpdate"
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[2:4] == [f"--namespace={watched}", "--leader-elect"]
    await get(plane, "poddisruptionbudget/farms", f"-n={home}")
    await get(plane, "role/farms", f"-n={watched}")
    assert len((await get(plane, configuration))["webhooks"]) == 1  # what the operator registered stays

    await helm.run("upgrade", "farms", chart, *where, "--set=replicas=1")
    deployment = await get(plane, "deployment/farms", f"-n={home}")
    assert deployment["spec"]["strategy"]["type"] == "Recreate"
    for resource, namespace in (("poddisruptionbudgets", home), ("roles", watched)):
        assert (await get(plane, resource, f"-n={namespace}"))["items"] == []

    await helm.run("uninstall", "farms", *where)
    assert (await get(plane, "deployments,services,networkpolicies", f"-n={home}"))["items"] == []
    left = (await get(plane, "validatingwebhookconfigurations"))["items"]
    assert "farms" not in {item["metadata"]["name"] for item in left}
    definition = await get(plane, "crd/farms.example.com")
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    await plane.kubectl("delete", "crd/farms.example.com")
