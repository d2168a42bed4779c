"""Whether the API server can reach the registered webhooks, and how long their certificates are valid."""

from __future__ import annotations

import base64
import binascii
import ssl
from asyncio import open_connection
from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio

from .._core.certificates import expiry_of
from .._core.tasks import gather
from ..client import Client
from ..errors import ApiError
from ..operator.webhook_registration import GROUP
from .connection import explain_failure
from .examination import Examination
from .findings import Finding, Level
from .times import judge_expiry, validity_of

CHECK = "webhooks"

CONNECT = 5.0
"""Seconds to connect to a webhook."""

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

Object = dict[str, Any]


class Hook(NamedTuple):
    """Where webhooks are registered.

    Attributes:
        name: For messages.
        config: Their ``clientConfig``.
        blocks: Whether requests are refused while they are not reached.
    """

    name: str
    config: Object
    blocks: bool


async def check_webhooks(examination: Examination) -> list[Finding]:
    """Check the operator's webhooks; without an operator, all that are registered for admission."""
    operator, client = examination.operator, examination.client
    if examination.manager is not None and (operator is None or not operator.has_webhooks):
        return []
    findings: list[Finding] = []
    configurations: list[Object] = []
    kinds = KINDS if operator is None else operator.admission_kinds
    for kind in kinds:
        path = f"/apis/{GROUP}/v1/{kind.lower()}s"
        name = "" if operator is None else examination.options.webhook_configuration or operator.name
        try:
            answer = await client.get_json(f"{path}/{name}" if name else path)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            findings.append(judge_unread(kind, name, is_missing=error.status == 404))
            continue
        configurations += [answer] if name else answer["items"]
    if operator is not None:
        configurations += [configuration async for configuration in _conversions(examination)]
    hooks = [*hooks_of(configurations)]
    for results in await gather(*(_check_hook(examination, hook) for hook in hooks)):
        findings += results
    if not findings:
        findings.append(Finding(CHECK, Level.OK, "no webhooks are registered"))
    return findings


async def _conversions(examination: Examination) -> AsyncIterator[Object]:
    """Yield the conversion webhooks of the operator's definitions, in the form of a configuration."""
    assert examination.operator is not None
    for name in examination.operator.converted_kinds:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        try:
            definition = await examination.client.get_json(path)
        except ApiError as error:
            if error.status in (403, 404):
                continue  # said by other checks
            raise
        webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
        yield {"metadata": {"name": name}, "webhooks": [{**webhook, "name": "conversion"}]}


def hooks_of(configurations: Iterable[Object]) -> Iterable[Hook]:
    """Return the webhooks of configurations, once for each address."""
    hooks: dict[tuple[str, ...], Hook] = {}
    for configuration in configurations:
        owner = configuration["metadata"]["name"]
        for webhook in configuration.get("webhooks") or ():
            config = webhook.get("clientConfig") or {}
            service = config.get("service") or {}
            parts = urlsplit(config.get("url") or "")
            address = (owner, parts.netloc, service.get("namespace", ""), service.get("name", ""))
            blocks = webhook.get("failurePolicy", "Fail") == "Fail"
            known = hooks.get(address)
            hooks[address] = Hook(owner, config, blocks or (known is not None and known.blocks))
    return hooks.values()


async def _check_hook(examination: Examination, hook: Hook) -> list[Finding]:
    bundle = _bundle_of(hook.config)
    findings = [*judge_bundle(hook, bundle, examination.server_time)]
    address = _address_of(hook.config)
    if service := hook.config.get("service"):
        findings += await _check_service(examination.client, hook, service)
        if not examination.in_pod or any(finding.level is Level.FAULT for finding in findings):
            return findings or [Finding(CHECK, Level.OK, f"{hook.name}: its Service has ready pods")]
    return [*findings, await _connect(hook, address, bundle, examination.server_time)]


async def _check_service(client: Client, hook: Hook, service: Object) -> list[Finding]:
    namespace, name = service["namespace"], service["name"]
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    try:
        await client.get(f"/api/v1/namespaces/{namespace}/services/{name}")
        answer = await client.get_json(slices, [("labelSelector", f"kubernetes.io/service-name={name}")])
    except ApiError as error:
        if error.status == 403:
            text = f"{hook.name}: its Service was not checked, which this user may not read"
            return [Finding(CHECK, Level.NOTE, text)]
        if error.status == 404:
            do = "Create it: aioinformer manifests prints it. Or delete the configuration of the webhooks"
            return [fault(hook, f"there is no Service {namespace}/{name}", do)]
        raise
    ready = [
        endpoint
        for part in answer["items"]
        for endpoint in part.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    ]
    if not ready:
        do = f"Look at the pods: kubectl get pods -n {namespace}; and at the selector of the Service"
        return [fault(hook, f"the Service {namespace}/{name} has no ready pods", do)]
    return []


async def _connect(hook: Hook, address: tuple[str, int, str], bundle: bytes, now: float) -> Finding:
    """Return whether a webhook is reached by TLS, with a certificate that the bundle signs."""
    host, port, url = address
    try:
        context = ssl.create_default_context(cadata=bundle.decode("ascii", "ignore") or None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with anyio.fail_after(CONNECT):
            _, writer = await open_connection(host, port, ssl=context)
    except (OSError, ValueError) as error:
        failure = explain_failure(error, url, speaks_tls=False)
        do = (
            "Renew the certificate of the webhook, or correct caBundle in its configuration"
            if isinstance(error, ssl.SSLError)
            else "Start the operator, or correct the address in the configuration"
        )
        return fault(hook, f"{failure.what.replace('the server', 'the webhook')} ({url})", do)
    certificate = writer.get_extra_info("peercert") or {}
    writer.transport.abort()
    begins, ends = validity_of(certificate)
    do = "Renew it: cert-manager does that by itself"
    name = f"{hook.name}: the webhook is reached, and its certificate"
    return judge_expiry(CHECK, name, ends, now, do, lifetime=ends - begins)


def fault(hook: Hook, what: str, do: str) -> Finding:
    """Return that a webhook cannot be called: a fault if requests are refused then."""
    if hook.blocks:
        return Finding(CHECK, Level.FAULT, f"{hook.name}: {what}; requests are refused meanwhile", do)
    return Finding(CHECK, Level.WARNING, f"{hook.name}: {what}; requests are admitted meanwhile", do)


def judge_bundle(hook: Hook, bundle: bytes, now: float) -> Iterable[Finding]:
    """Yield what is wrong with the authority that the API server trusts for a webhook."""
    if not bundle:
        if hook.config.get("service"):
            do = "Let cert-manager fill it in, or pass --ca-bundle to aioinformer manifests"
            yield fault(hook, "there is no caBundle, so the API server trusts no certificate of it", do)
        return
    if (expires := expiry_of(bundle)) is not None:
        finding = judge_expiry(CHECK, f"{hook.name}: the authority in caBundle", expires, now, "Renew it")
        if finding.level is not Level.OK:
            yield finding


def judge_unread(kind: str, name: str, *, is_missing: bool) -> Finding:
    """Return what it means that a configuration cannot be read."""
    if is_missing:
        do = "Apply what aioinformer manifests prints; the leader fills it in once it serves its webhooks"
        return Finding(CHECK, Level.FAULT, f"there is no {kind} {name}: the webhooks are not called", do)
    return Finding(CHECK, Level.NOTE, f"not checked: this user may not read the {kind} {name}".rstrip())


def _bundle_of(config: Object) -> bytes:
    try:
        return base64.b64decode(config.get("caBundle") or "")
    except binascii.Error:
        return b""


def _address_of(config: Object) -> tuple[str, int, str]:
    """Return host, port and URL of a webhook, as a pod reaches it."""
    if service := config.get("service"):
        host, port = f"{service['name']}.{service['namespace']}.svc", service.get("port") or 443
        return host, port, f"https://{host}:{port}"
    parts = urlsplit(config.get("url") or "")
    return parts.hostname or "", parts.port or 443, f"https://{parts.netloc}"
