"""An operator with webhooks runs as ``aioinformer manifests`` deploys it."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
import yaml

from aioinformer import ApiError, Client, ForbiddenError, InvalidError, NotFoundError, Resource
from aioinformer.operator import Operator
from aioinformer.operator.manifests import Installation, manifests, to_yaml, write_kustomization
from aioinformer.typed import Metadata
from tests.e2e.conftest import REAL
from tests.e2e.processes import Running, started_program
from tests.kubernetes.kubectl import KubectlError
from tests.kubernetes.process import free_ports

from . import guarded_cluster
from .audit import PATIENCE, Audited
from .guarded import Site, SiteSpec, SiteV2, operator
from .installing import assert_unchanged, define_foreign_kinds, kubeconfig_of, until_permitted
from .test_installing import aioinformer, arguments

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

Object = dict[str, Any]

TARGET = "tests.e2e.manifests.guarded:operator"


def configs(objects: list[Object]) -> Iterator[Object]:
    """Yield the clientConfig of each webhook."""
    for obj in objects:
        for webhook in obj.get("webhooks", ()):
            yield webhook["clientConfig"]
        if conversion := obj["spec"].get("conversion") if "spec" in obj else None:
            yield conversion["webhook"]["clientConfig"]


def find_deployed(objects: list[Object], kind: str) -> Object:
    (obj,) = [obj for obj in objects if obj["kind"] == kind]
    return obj


def find_mounted(objects: list[Object]) -> tuple[str, str]:
    """Return the Secret that the Deployment mounts, and where."""
    pod = find_deployed(objects, "Deployment")["spec"]["template"]["spec"]
    (volume,) = [candidate for candidate in pod["volumes"] if "secret" in candidate]
    (mount,) = [
        candidate for candidate in pod["containers"][0]["volumeMounts"] if candidate["name"] == volume["name"]
    ]
    return volume["secret"]["secretName"], mount["mountPath"]


def secret_of(installed: Installation, objects: list[Object], made: trustme.LeafCert) -> Object:
    name, _ = find_mounted(objects)
    pems = {
        "tls.crt": made.cert_chain_pems[0].bytes(),
        "tls.key": made.private_key_pem.bytes(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": installed.home},
        "data": {file: base64.b64encode(pem).decode() for file, pem in pems.items()},
    }


@asynccontextmanager
async def deployed(
    audited: Audited, admin: Client, operator: Operator, installed: Installation, folder: Path
) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[Running]]]:
    """Install an operator by ``kubectl apply -k``; yield what runs its command in the place of a pod.

    Its Service leads to this machine.
    """
    authority = trustme.CA()
    installed = msgspec.structs.replace(installed, ca_bundle=authority.cert_pem.bytes())
    objects = manifests(operator, installed)
    made = authority.issue_cert(f"{installed.name}-webhook.{installed.home}.svc")
    ports = free_ports(3)
    for config in configs(objects):
        config["service"]["port"] = ports[2]
    write_kustomization(objects, folder / "base")
    try:
        await audited.kubectl("apply", "-k", str(folder / "base"))
        await audited.kubectl("apply", "-f", "-", stdin=to_yaml([secret_of(installed, objects, made)]))
        local = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None}}
        service = f"service/{installed.name}-webhook"
        await audited.kubectl("patch", service, f"-n={installed.home}", f"-p={json.dumps(local)}")
        kubeconfig = await kubeconfig_of(audited, installed, folder)
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            await until_permitted(client, operator, installed)
        command = await _as_kubelet(admin, installed, objects, ports, folder)
        command += ["--kubeconfig", str(kubeconfig)]
        yield partial(started_program, sys.executable, "-m", "aioinformer", *command)
    finally:
        await audited.kubectl("delete", "--wait=false", "-k", str(folder / "base"))


async def until_registered(program: Running) -> None:
    """Wait until the operator has registered its webhooks."""
    while "the API server calls the webhooks" not in await program.errors.next():
        pass


async def test_webhooks_are_called_from_the_first_pod_on_that_serves_them(
    audited: Audited, admin: Client, tmp_path: Path
) -> None:
    namespace = audited.create_namespace()
    installed = Installation(target=TARGET, name="guarded", image="guarded:1", replicas=2)
    sites = Resource(admin, Site)
    taken = Site(SiteSpec(host="taken"), metadata=Metadata(name="taken", namespace=namespace))
    async with deployed(audited, admin, operator, installed, tmp_path) as run:
        await audited.kubectl("wait", "--for=condition=Established", "crd/sites.guarded.example.com")
        await _until_served(sites, taken)  # no pod runs, and no request is refused
        async with run() as program:
            await until_registered(program)
            await _use_guarded(audited, admin)
            configured = await audited.kubectl("get", *CONFIGURATIONS, "-o=yaml")
            await audited.kubectl("apply", "-k", str(tmp_path / "base"))
            with pytest.raises(InvalidError):
                await sites.create(taken)
            assert await audited.kubectl("get", *CONFIGURATIONS, "-o=yaml") == configured
            program.signal(9)
            await program.end()
        with pytest.raises(ApiError, match="failed calling webhook"):  # the policy Fail
            await sites.create(taken)
        async with run() as program:
            await _use_guarded(audited, admin)
            program.signal(15)
            ended = await program.end()
        assert ended.code == 0, ended.errors
        lines = [json.loads(line) for line in ended.errors.splitlines()]
        assert [line for line in lines if line["level"] != "INFO"] == []
        refused = audited.list_refused("guarded/guarded")
        assert [request for request in refused if "customresourcedefinitions" not in request] == []
    with pytest.raises(KubectlError, match="not found"):
        await audited.kubectl("get", *CONFIGURATIONS)


CONFIGURATIONS = [
    "mutatingwebhookconfigurations.admissionregistration.k8s.io/guarded",
    "validatingwebhookconfigurations.admissionregistration.k8s.io/guarded",
]


async def _until_served(sites: Resource[Site], site: Site) -> None:
    """Create and delete an object as soon as its kind is served."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await sites.create(site)
            except NotFoundError:
                await asyncio.sleep(0.05)
                continue
            await sites.delete(site)
            return


async def test_the_cluster_starts_again_while_the_webhooks_are_down(
    audited: Audited, admin: Client, tmp_path: Path
) -> None:
    namespace = audited.create_namespace()
    target = "tests.e2e.manifests.guarded_cluster:operator"
    installed = Installation(target=target, name="guarded-cluster", image="guarded:1", replicas=2)
    home = installed.home
    pod = {"spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}}
    pods, nodes = Resource(admin, "pods"), Resource(admin, "nodes")
    async with deployed(audited, admin, guarded_cluster.operator, installed, tmp_path) as run:
        async with run() as program:
            await until_registered(program)
            async with asyncio.timeout(PATIENCE):  # until the API server knows of it
                while True:
                    try:
                        await nodes.create({"metadata": {"name": "early"}})
                    except ForbiddenError as error:
                        assert "is refused" in str(error)  # noqa: PT017
                        break
                    await nodes.delete("early")
            program.signal(9)
            await program.end()
        for where in (namespace, "default"):
            with pytest.raises(ApiError, match="failed calling webhook"):
                await pods.create({"metadata": {"name": "web", "namespace": where}, **pod})
        with pytest.raises(ApiError, match="failed calling webhook"):
            await nodes.create({"metadata": {"name": "node-1"}})
        with pytest.raises(ApiError, match="failed calling webhook"):
            await Resource(admin, "namespaces").create({"metadata": {"name": "more"}})
        for where in (home, "kube-system"):  # the pods of the operator and of the cluster
            restricted = without_privileges(pod)
            created = await pods.create({"metadata": {"name": "web", "namespace": where}, **restricted})
            await pods.delete(created)
            await audited.kubectl("label", "namespace", where, "started=again")
        node = to_yaml([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}])
        kubelet = ("--as=system:node:node-1", "--as-group=system:nodes", "--as-group=system:masters")
        await audited.kubectl("create", *kubelet, "-f", "-", stdin=node)
        await audited.kubectl("delete", *kubelet, "-f", "-", stdin=node)


def without_privileges(pod: Object) -> Object:
    """Return a pod's spec as the strictest Pod Security Standard asks for."""
    container = {
        **pod["spec"]["containers"][0],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    context = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"spec": {"containers": [container], "securityContext": context}}


async def _as_kubelet(
    admin: Client, installed: Installation, objects: list[Object], ports: list[int], folder: Path
) -> list[str]:
    """Write the files of the volumes as kubelet does; return the container's arguments with these paths and ports."""
    command = arguments(objects[-1], ports)
    pod = find_deployed(objects, "Deployment")["spec"]["template"]["spec"]
    paths = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    for volume in pod["volumes"]:
        if secret := volume.get("secret"):
            data = (await Resource(admin, "secrets").get(f"{installed.home}/{secret['secretName']}"))["data"]
            files = {file: base64.b64decode(content) for file, content in data.items()}
        elif config := volume.get("configMap"):
            data = (await Resource(admin, "configmaps").get(f"{installed.home}/{config['name']}"))["data"]
            files = {file: content.encode() for file, content in data.items()}
        else:
            continue
        for file, content in files.items():
            (folder / file).write_bytes(content)
        command = [argument.replace(f"={paths[volume['name']]}/", f"={folder}/") for argument in command]
    return [
        f"{argument}:{ports[2]}" if argument.startswith("--webhook-service=") else argument
        for argument in command
    ]


async def _use_guarded(audited: Audited, admin: Client) -> None:
    """Wait until the webhooks are called, and use each of them."""
    namespace = audited.create_namespace()
    sites = Resource(admin, Site)
    refused = Site(SiteSpec(host="taken"), metadata=Metadata(name="taken", namespace=namespace))
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await sites.create(refused)
            except InvalidError as error:
                assert error.causes[0] == ("spec.host", "FieldValueInvalid", "is taken")  # noqa: PT017
                break
            except ApiError as error:  # the operator does not listen yet
                assert "connect: connection refused" in str(error)  # noqa: PT017
            else:  # the server does not know of the webhooks yet
                await sites.delete(refused)
            await asyncio.sleep(0.05)
    with pytest.raises(NotFoundError):
        await sites.get(refused.key)
    made = await sites.create(Site(SiteSpec("a.example"), metadata=Metadata(name="a", namespace=namespace)))
    assert made.spec.replicas == 3
    assert (await Resource(admin, SiteV2).get(made.key)).spec.hosts == ["a.example"]
    await sites.delete(made)


async def test_cert_manager_makes_the_certificate(audited: Audited) -> None:
    await define_foreign_kinds(audited)
    text = await aioinformer("manifests", TARGET, "--name=certified", "--image=guarded:1")
    objects = [*yaml.safe_load_all(text)]
    try:
        await audited.kubectl("apply", "-f", "-", stdin=text)
        assert_unchanged(await audited.kubectl("apply", "-f", "-", stdin=text))
    finally:
        await audited.kubectl("delete", "--wait=false", "-f", "-", stdin=text)
    name = find_mounted(objects)[0]
    (certificate,) = [
        obj for obj in objects if obj["kind"] == "Certificate" and obj["spec"]["secretName"] == name
    ]
    named = f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    for config in configs(objects):
        service = config["service"]
        assert certificate["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
        assert "caBundle" not in config
    injected = [
        obj["kind"]
        for obj in objects
        if obj["metadata"].get("annotations") == {"cert-manager.io/inject-ca-from": named}
    ]
    assert injected == ["CustomResourceDefinition"]
