"""The website operator, installed by helm from the chart that ``aioinformer manifests --helm`` writes."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import trustme

from aioinformer import Client, NotFoundError, Resource
from aioinformer.operator import Operator
from aioinformer.operator.manifests import Installation, write_chart
from tests.examples.website.dns import DNS
from tests.helm.charts import Helm
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.kubectl import KubectlError

from .alerts import Scrapes
from .pods import ROOT, Pod, Service

Object = dict[str, Any]
NAME = "websites"
REPLICAS = 2
PATIENCE = 60.0

_SERVICE = """
  selector:
    app.kubernetes.io/name: "{{ $.Release.Name }}"
  ports:
  - name: webhooks
    port: 443
    targetPort: webhooks
"""
_LOCAL = """
  type: ExternalName
  externalName: localhost
"""


class Sign(NamedTuple):
    """What is seen of a failure.

    Attributes:
        name: ``"Event Pod NotReady"``, ``"Condition Website Ready=False"``.
        version: The Event's version, which a repetition changes.
    """

    name: str
    version: str


class Finding(NamedTuple):
    """A warning or fault of ``aioinformer doctor``.

    Attributes:
        check: The check's name.
        what: What is the matter, without the numbers, which change.
    """

    check: str
    what: str


class Installed:
    """A release of the operator with its pods, and a user's namespace.

    Attributes:
        plane: The server.
        client: The admin's.
        dns: The operator's DNS API.
        home: The namespace of the operator.
        namespace: The namespace of the user.
        pods: The pods.
        scrapes: What Prometheus scraped.
        found_meanwhile: What ``examine`` returned during a failure that is over.
    """

    def __init__(
        self, plane: ControlPlane, client: Client, helm: Helm, dns: DNS, service: Service, folder: Path
    ) -> None:
        self.plane, self.client, self.dns = plane, client, dns
        self.home, self.namespace = plane.create_namespace(), plane.create_namespace()
        self.pods: list[Pod] = []
        self.scrapes = Scrapes(self.home, [])
        self._helm = helm
        self._service = service
        self._folder = folder
        self._authority = trustme.CA()
        self._count = 0
        self._target = ""
        self.found_meanwhile = set[Finding]()

    async def install(self, operator: Operator, target: str, version: int = 1) -> None:
        """Install the chart of a release, or upgrade to it; the pods stay as they are."""
        self._target = target
        chart = self._folder / f"chart-{version}"
        installation = Installation(
            target=target,
            name=NAME,
            image=f"example.com/websites:{version}.0.0",
            replicas=REPLICAS,
            alerts=True,
            ca_bundle=self._authority.cert_pem.bytes(),
            settings={"dns_url": self.dns.url},
        )
        write_chart(operator, installation, chart)
        self._reach_here(chart)
        if version == 1:
            await self.write_certificate()
        verb = "install" if version == 1 else "upgrade"
        await self._helm.run(
            verb, NAME, chart, f"--namespace={self.home}", f"--kubeconfig={self.plane.kubeconfig}"
        )
        definition = "crd/websites.example.com"
        await self.plane.kubectl("wait", "--for=condition=Established", definition)
        rule = json.loads(
            await self.plane.kubectl("get", "prometheusrule", NAME, f"-n={self.home}", "-o=json")
        )
        self.scrapes = Scrapes(self.home, rule["spec"]["groups"][0]["rules"])

    def _reach_here(self, chart: Path) -> None:
        """Make the Service lead to this machine, because no network of pods does."""
        services = chart / "templates" / "service.yaml"
        text = services.read_text()
        assert _SERVICE in text
        services.write_text(text.replace(_SERVICE, _LOCAL))
        definitions = chart / "templates" / "customresourcedefinition.yaml"
        definitions.write_text(definitions.read_text().replace("port: 443", f"port: {self._service.port}"))

    def issue(self, *, valid: timedelta = timedelta(days=90)) -> dict[str, bytes]:
        """Return a certificate's files; with a negative duration it has expired."""
        made = self._authority.issue_cert(
            f"{NAME}-webhook.{self.home}.svc", not_after=datetime.now(UTC) + valid
        )
        return {"tls.crt": made.cert_chain_pems[0].bytes(), "tls.key": made.private_key_pem.bytes()}

    async def write_certificate(self) -> None:
        """Write the certificate's Secret, as cert-manager does."""
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": f"{NAME}-webhook", "namespace": self.home},
            "data": {name: base64.b64encode(pem).decode() for name, pem in self.issue().items()},
        }
        await self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(secret))

    async def start_pod(self, log: Path | None = None) -> Pod:
        """Start another pod of the Deployment, and send webhook calls to it, too."""
        deployment = json.loads(
            await self.plane.kubectl("get", "deployment", NAME, f"-n={self.home}", "-o=json")
        )
        self._count += 1
        name = f"{NAME}-5d8f7c9b8-{self._count:05d}"
        pod = Pod(self.plane, deployment, name, self._folder / name)
        await pod.start(self._service.port, log)
        self.pods.append(pod)
        self._service.pods.append(pod)
        return pod

    async def end_pod(self, pod: Pod, number: int = 15) -> int:
        """End a pod. Its process serves webhooks some seconds longer, because the API server learns of its end late."""
        self._service.pods.remove(pod)
        self.pods.remove(pod)
        return await pod.end(number)

    async def roll(self) -> None:
        """Replace the pods one by one, as the Deployment's strategy says: first one more."""
        for old in [*self.pods]:
            await self.start_pod()
            assert await self.end_pod(old) == 0, old.log

    async def find_leader(self) -> Pod:
        """Return the pod that leads."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for pod in self.pods:
                    if _LEADS in (await pod.scrape() or ""):
                        return pod
                await asyncio.sleep(0.2)

    # The user's

    async def create_site(self, name: str = "home", **spec: Any) -> None:
        """Create a Website."""
        site = {
            "apiVersion": "example.com/v1",
            "kind": "Website",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"host": f"{name}.example.com", "html": "hello", **spec},
        }
        await self.plane.kubectl("create", "-f", "-", stdin=json.dumps(site))

    async def until_created(self, name: str) -> None:
        """Create a Website, and wait meanwhile until the webhooks are registered and answer."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.create_site(name)
                except KubectlError as error:
                    if "failed calling webhook" not in str(error):
                        raise
                    await asyncio.sleep(0.2)
                else:
                    return

    async def edit(self, html: str, name: str = "home") -> None:
        """Change a Website."""
        patch = json.dumps({"spec": {"html": html}})
        await self.plane.kubectl(
            "patch", "website", name, f"-n={self.namespace}", "--type=merge", f"-p={patch}"
        )

    async def until_ready(self, name: str = "home") -> None:
        """Wait until a Website is ready."""
        await self.plane.kubectl(
            "wait", f"website/{name}", f"-n={self.namespace}", "--for=condition=Ready", "--timeout=60s"
        )

    async def snapshot(self) -> set[Sign]:
        """Return what a user or an admin sees."""
        events = Resource(self.client, "events.k8s.io/v1", "events", dict)
        signs = {
            Sign(
                f"Event {event['regarding']['kind']} {event['reason']}", event["metadata"]["resourceVersion"]
            )
            for namespace in (self.home, self.namespace)
            for event in await events.list(namespace)
        }
        sites = Resource(self.client, "example.com/v1", "websites", dict, kind="Website")
        with suppress(NotFoundError):  # the definition is deleted
            for site in await sites.list(self.namespace):
                for condition in site.get("status", {}).get("conditions", ()):
                    signs.add(Sign(f"Condition Website {condition['type']}={condition['status']}", ""))
        return signs

    async def examine(self) -> set[Finding]:
        """Return the warnings and faults of ``aioinformer doctor``, with a pod's account, about server and pods."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioinformer", "doctor", self._target, "--leader-elect",
            "--timeout=10", "--output=json",
            f"--kubeconfig={self.pods[0].folder / 'kubeconfig'}",
            *(f"--process={pod.metrics_url}" for pod in self.pods),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "WEBSITES_DNS_URL": self.dns.url},
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        findings = json.loads(output)["findings"]
        return {
            Finding(finding["check"], re.sub(r"[\d.]+", "N", finding["what"]))
            for finding in findings
            if finding["level"] in ("warning", "fault")
        }

    def drop_connections(self) -> None:
        """Close the API server's connections to the webhooks, as when it starts again."""
        self._service.drop()


_LEADS = 'leader_election_master_status{name="websites"} 1'


@asynccontextmanager
async def installed(plane: ControlPlane, helm: Helm, folder: Path) -> AsyncIterator[Installed]:
    """Yield what installs the operator; remove it at the end."""
    async with DNS() as dns, Service() as service, Client.from_kubeconfig(path=plane.kubeconfig) as client:
        release = Installed(plane, client, helm, dns, service, folder)
        try:
            yield release
        finally:
            for pod in [*release.pods]:
                await release.end_pod(pod, 9)
            where = (f"--namespace={release.home}", f"--kubeconfig={plane.kubeconfig}")
            await helm.run("uninstall", NAME, "--ignore-not-found", *where)
            await remove_definition(plane)


async def remove_definition(plane: ControlPlane) -> None:
    """Delete the definition, and all Websites with it, whose finalizers no operator removes any more."""
    listed = await plane.kubectl("get", "crd", "websites.example.com", "--ignore-not-found", "-o=name")
    if not listed:
        return
    no_conversion = '{"spec": {"conversion": {"strategy": "None", "webhook": null}}}'
    await plane.kubectl("patch", "crd", "websites.example.com", "--type=merge", f"-p={no_conversion}")
    sites = json.loads(await plane.kubectl("get", "websites.example.com", "-A", "-o=json"))
    for site in sites["items"]:
        where = (site["metadata"]["name"], f"-n={site['metadata']['namespace']}")
        patch = '{"metadata": {"finalizers": null}}'
        await plane.kubectl("patch", "website", *where, "--type=merge", f"-p={patch}")
    await plane.kubectl("delete", "crd", "websites.example.com", "--timeout=60s")
