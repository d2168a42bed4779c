"""An operator with webhooks runs as ``aioinformer manifests`` deploys it."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from aioinformer import Client, InvalidError, NotFoundError, Resource
from aioinformer.operator.manifests import Installation, manifests, to_yaml, write_kustomization
from aioinformer.typed import Metadata
from tests.e2e.conftest import REAL
from tests.e2e.processes import started_program
from tests.kubernetes.process import free_ports

from .audit import PATIENCE, Audited
from .guarded import Site, SiteSpec, SiteV2, operator
from .installing import kubeconfig_of, until_permitted
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


async def test_the_deployed_command_serves_the_registered_webhooks(
    audited: Audited, admin: Client, tmp_path: Path
) -> None:
    authority = trustme.CA()
    installed = Installation(
        target=TARGET, name="guarded", image="guarded:1", replicas=2, ca_bundle=authority.cert_pem.bytes()
    )
    objects = manifests(operator, installed)
    metrics, probes, port = free_ports(3)
    for config in configs(objects):  # the server of the tests has no network of Services
        config["url"] = f"https://127.0.0.1:{port}{config.pop('service')['path']}"
    assert len([*configs(objects)]) == 3
    made = authority.issue_cert("127.0.0.1", f"guarded-webhook.{installed.home}.svc")
    folder = tmp_path / "base"
    write_kustomization(objects, folder)
    try:
        await audited.kubectl("apply", "-k", str(folder))
        await audited.kubectl("apply", "-f", "-", stdin=to_yaml([secret_of(installed, objects, made)]))
        await audited.kubectl("wait", "--for=condition=Established", "crd/sites.guarded.example.com")
        kubeconfig = await kubeconfig_of(audited, installed, tmp_path)
        async with Client.from_kubeconfig(path=kubeconfig) as client:
            await until_permitted(client, operator, installed)
        command = await _as_kubelet(admin, installed, objects, [metrics, probes, port], tmp_path)
        async with started_program(
            sys.executable, "-m", "aioinformer", *command, "--kubeconfig", str(kubeconfig)
        ) as program:
            await _use_guarded(audited, admin)
            program.signal(15)
            ended = await program.end()
        assert ended.code == 0, ended.errors
        lines = [json.loads(line) for line in ended.errors.splitlines()]
        assert [line for line in lines if line["level"] != "INFO"] == []
    finally:
        await audited.kubectl("delete", "--wait=false", "-k", str(folder))


async def _as_kubelet(
    admin: Client, installed: Installation, objects: list[Object], ports: list[int], folder: Path
) -> list[str]:
    """Write the Secret's files as kubelet mounts them; return the container's arguments with these paths and ports."""
    name, path = find_mounted(objects)
    secret = await Resource(admin, "secrets").get(f"{installed.home}/{name}")
    for file, content in secret["data"].items():
        (folder / file).write_bytes(base64.b64decode(content))
    return [argument.replace(f"={path}/", f"={folder}/") for argument in arguments(objects[-1], ports)]


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
            except Exception as error:  # the operator does not listen yet
                assert "connection refused" in str(error)  # noqa: PT017
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
    for kind in ("issuers", "certificates"):
        await audited.kubectl("apply", "-f", "-", stdin=to_yaml([_definition(kind)]))
        await audited.kubectl("wait", "--for=condition=Established", f"crd/{kind}.cert-manager.io")
    text = await aioinformer("manifests", TARGET, "--name=certified", "--image=guarded:1")
    objects = [*yaml.safe_load_all(text)]
    try:
        await audited.kubectl("apply", "-f", "-", stdin=text)
        again = await audited.kubectl("apply", "-f", "-", stdin=text)
        assert {line.rpartition(" ")[2] for line in again.splitlines()} == {"unchanged"}
    finally:
        await audited.kubectl("delete", "--wait=false", "-f", "-", stdin=text)
    certificate = find_deployed(objects, "Certificate")
    named = f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    assert certificate["spec"]["secretName"] == find_mounted(objects)[0]
    assert certificate["spec"]["issuerRef"]["name"] == find_deployed(objects, "Issuer")["metadata"]["name"]
    for config in configs(objects):
        service = config["service"]
        assert certificate["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
        assert "caBundle" not in config
    injected = [
        obj["kind"]
        for obj in objects
        if obj["metadata"].get("annotations") == {"cert-manager.io/inject-ca-from": named}
    ]
    assert injected == [
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def _definition(plural: str) -> Object:
    """Return a definition of a kind of cert-manager, with any spec."""
    kind = plural.removesuffix("s").capitalize()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.cert-manager.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
