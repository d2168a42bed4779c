"""What ``aioinformer manifests`` writes is applied by kubectl, and ``aioinformer run`` works with it."""

from __future__ import annotations

import json
import re
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml

from aioinformer import Client, Resource
from aioinformer.operator.manifests import Installation, manifests, to_yaml
from tests.e2e.conftest import REAL
from tests.e2e.processes import Running, started_program
from tests.kubernetes.process import free_ports

from . import websites
from .audit import Audited
from .installing import assert_unchanged, install, installation, kubeconfig_of, until_owners, until_permitted
from .websites import operator

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

ROOT = Path(__file__).parents[3]
TARGET = "tests.e2e.manifests.websites:operator"


def program(*args: str, folder: Path = ROOT) -> AbstractAsyncContextManager[Running]:
    command = ("env", "-C", str(folder), sys.executable, "-m", "aioinformer", *args)
    return started_program(*command, environment={"PYTHONPATH": str(ROOT), "NO_COLOR": "1"})


async def aioinformer(*args: str, folder: Path = ROOT) -> str:
    async with program(*args, folder=folder) as started:
        ended = await started.end()
    assert ended.code == 0, ended.errors
    return ended.output


async def test_the_printed_yaml_applies_and_a_second_time_changes_nothing(audited: Audited) -> None:
    text = await aioinformer(
        "manifests", TARGET, "--name=printed", "--image=example.com/websites:1", "--replicas=3"
    )
    first = await audited.kubectl("apply", "-f", "-", stdin=text)
    again = await audited.kubectl("apply", "-f", "-", stdin=text)
    assert "deployment.apps/printed created" in first
    assert_unchanged(again)
    assert await audited.kubectl("diff", "-f", "-", stdin=text) == ""


async def test_the_folder_is_a_kustomization(audited: Audited, tmp_path: Path) -> None:
    namespace = audited.create_namespace()
    base, overlay = tmp_path / "base", tmp_path / "overlay"
    await aioinformer("manifests", TARGET, "--name=folder", "--namespace", namespace, "-o", str(base))
    applied = await audited.kubectl("apply", "--dry-run=server", "-k", str(base))
    assert "role.rbac.authorization.k8s.io/folder created (server dry run)" in applied
    assert "namespace/" not in applied
    image = "images: [{name: folder, newName: example.com/websites, newTag: '2'}]"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(f"resources: [../base]\n{image}\n")
    assert "image: example.com/websites:2\n" in await audited.kubectl("kustomize", str(overlay))


async def test_the_pods_satisfy_the_strictest_security_standard(audited: Audited) -> None:
    objects = manifests(operator, installation("secure"))
    (workload,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    (namespace,) = [obj for obj in objects if obj["kind"] == "Namespace"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "secure", "namespace": "secure"},
        "spec": workload["spec"]["template"]["spec"],
    }
    await audited.kubectl("apply", "-f", "-", stdin=to_yaml([namespace]))
    assert "created" in await audited.kubectl("create", "-f", "-", stdin=to_yaml([pod]))


@pytest.mark.parametrize("several", [False, True])
async def test_the_deployed_command_runs_with_the_deployed_rights(
    audited: Audited, admin: Client, tmp_path: Path, several: bool
) -> None:
    namespace = audited.create_namespace()
    installed = installation("runs", namespace)
    if several:
        installed = installation("runs-in-several", (audited.create_namespace(), namespace))
    objects = manifests(operator, installed)
    await install(audited, admin, operator, objects, tmp_path)
    config = await kubeconfig_of(audited, installed, tmp_path)
    async with Client.from_kubeconfig(path=config) as client:
        await until_permitted(client, operator, installed)
    command = arguments(objects[-1], free_ports(2))
    async with program(*command, "--kubeconfig", str(config)) as started:
        await websites.live(admin, namespace)
        started.signal(15)
        ended = await started.end()
    lines = [json.loads(line) for line in ended.errors.splitlines()]
    assert ended.code == 0
    assert [line for line in lines if line["level"] != "INFO"] == []
    assert f"runs on {audited.url}" in ended.errors


async def test_a_new_project_runs_with_the_rights_of_its_manifests(
    audited: Audited, admin: Client, tmp_path: Path
) -> None:
    namespace = audited.create_namespace()
    project, where = tmp_path / "websites", f"--namespace={namespace}"
    await aioinformer("init", "websites", "--group=init.example.com", folder=tmp_path)
    text = await aioinformer("manifests", "websites.main", "--name=made", where, folder=project)
    objects = [obj for obj in yaml.safe_load_all(text) if obj["kind"] != "Deployment"]
    await audited.kubectl("apply", "-f", "-", stdin=to_yaml(objects))
    (definition,) = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    await audited.kubectl("wait", "--for=condition=Established", f"crd/{definition['metadata']['name']}")
    await until_owners(audited, definition)
    made = Installation(target="websites.main:operator", name="made", image="websites:1", watched=namespace)
    config = await kubeconfig_of(audited, made, tmp_path)
    command = (
        "run",
        "websites.main",
        where,
        "--kubeconfig",
        str(config),
        "--metrics-port=0",
        "--probe-port=0",
    )
    async with program(*command, folder=project) as started:
        example = yaml.safe_load((project / "example.yaml").read_text())
        example["metadata"]["namespace"] = namespace
        await audited.kubectl("apply", "-f", "-", stdin=to_yaml([example]))
        await audited.kubectl(
            "wait", where, "--for=condition=Ready", "--timeout=60s", "websites.init.example.com/hello"
        )
        assert (await Resource(admin, "configmaps").get(f"{namespace}/hello"))["data"] == {
            "message": "Hello, world"
        }
        started.signal(15)
        ended = await started.end()
    assert (ended.code, "WARNING" in ended.errors, "ERROR" in ended.errors) == (0, False, False), ended.errors
    refused = audited.list_refused(f"{namespace}/made")
    assert [
        request for request in refused if "customresourcedefinitions" not in request
    ] == []  # it only warns if it may


def arguments(workload: dict[str, Any], ports: list[int]) -> list[str]:
    """Return the arguments of a Deployment's container, with other ports."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    numbers = iter(ports)
    return [
        re.sub(r"(?<=-port=)\d+", lambda match: str(next(numbers)), argument)
        for argument in container["args"]
    ]
