"""Run all checks: first those without which the others would fail, then the others at the same time."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import anyio

from .._core.tasks import gather
from ..client import Client
from ..client.error_mapping import without_credentials
from ..errors import AioInformerError, ApiError, ConfigError, message_of
from ..listwatch.collection import Collection
from ..operator import Manager, Operator, RunOptions
from ..operator.leases import sharding_of
from ..operator.preflight import collections_of
from ..operator.process import call_factory
from ..operator.protocols import ManagerFactory
from ..operator.settings import UNREAD, settings_from
from .connection import connect, judge_clock, judge_tls
from .credentials import check_expiry, check_identity
from .definitions import check_collections, check_definitions
from .examination import Examination
from .findings import Finding, Level, Report
from .lease import check_lease
from .lists import check_lists
from .processes import check_processes
from .rights import check_rights
from .sharding import check_sharding
from .versions import check_ready, check_versions
from .watches import check_watches
from .webhooks import check_webhooks

Check = Callable[[Examination], Awaitable[Iterable[Finding]]]

CLUSTER: dict[str, Check] = {
    "versions": check_versions,
    "ready": check_ready,
    "watches": check_watches,
    "lists": check_lists,
    "webhooks": check_webhooks,
}
"""Checks of a server, by name."""

OPERATOR: dict[str, Check] = {
    "rights": check_rights,
    "collections": check_collections,
    "definitions": check_definitions,
    "lease": check_lease,
    "sharding": check_sharding,
}
"""Checks of an operator at this server."""

TIMEOUT = 15.0
"""Seconds for each check."""


async def examine(
    client: Client,
    operator: Operator | ManagerFactory | None = None,
    options: RunOptions | None = None,
    *,
    processes: Iterable[str] = (),
    token: str = "",
    timeout: float = TIMEOUT,
    wall: Callable[[], float] = time.time,
    in_pod: bool | None = None,
) -> Report:
    """Examine a server, and an operator that runs there, with its processes. It changes nothing.

    Args:
        client: Of the server, not yet open; it is closed at the end.
        operator: The operator, or a function that makes its Manager; None for the server alone.
        options: How the operator runs: namespaces, Lease and webhooks.
        processes: URLs of the metrics ports of the operator's replicas.
        token: A bearer token for these, if they run with ``--metrics-auth``.
        timeout: Seconds for each check.
        wall: This machine's wall clock.
        in_pod: Whether this process reaches Services of the cluster; None to look at the environment.

    Returns:
        What was found. A check that fails is a finding, too.
    """
    in_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) if in_pod is None else in_pod
    examination = Examination(client, options or RunOptions(), wall=wall, in_pod=in_pod)
    try:
        about_server, about_processes = await gather(
            _examine(examination, operator, timeout),
            _guard(
                "process",
                check_processes(
                    processes,
                    token,
                    operator=operator.name if isinstance(operator, Operator) else "",
                    now=wall(),
                    timeout=timeout,
                ),
            ),
        )
    finally:
        await client.close()
    access = examination.access
    server = "" if access is None else without_credentials(str(access.configuration.host))
    return Report(server, examination.user, [*about_server, *about_processes])


async def _examine(
    examination: Examination, operator: Operator | ManagerFactory | None, timeout: float
) -> list[Finding]:
    findings = await _run("configuration", _open, examination, timeout)
    access = examination.access
    if access is None:
        return findings
    answer, connected = await connect(access, examination.wall, timeout)
    findings.append(connected)
    if answer is None or connected.level is Level.FAULT:
        findings += await _run("credentials", check_expiry, examination, timeout)
        return [*findings, _skip("there is no server to ask")]
    examination.answer = answer
    findings.append(
        judge_tls(
            str(access.configuration.host),
            answer.certificate,
            examination.server_time,
            is_verified=access.tls.is_verified,
        )
    )
    findings.append(judge_clock(answer.skew))
    findings += await _run("credentials", check_expiry, examination, timeout)
    identity = await _run("credentials", check_identity, examination, timeout)
    findings += identity
    if any(finding.level is Level.FAULT for finding in identity):
        return [*findings, _skip("the server does not accept the credentials")]
    checks = dict(CLUSTER)
    if operator is not None:
        findings += await _guard("operator", _load(examination, operator))
        if examination.manager is not None:
            checks |= OPERATOR
        else:
            findings.append(_skip("the operator cannot be made", ", ".join(OPERATOR)))
    if examination.manager is None:
        examination.collections = _usual_collections(examination.client.namespace)
    results = await gather(*(_run(name, check, examination, timeout) for name, check in checks.items()))
    return [*findings, *(finding for result in results for finding in result)]


async def _run(name: str, check: Check, examination: Examination, timeout: float) -> list[Finding]:
    """Return the findings of a check within its time."""
    with anyio.move_on_after(timeout):
        return await _guard(name, check(examination))
    do = "Look at the load of the server, and at the network and proxies on the way"
    return [Finding(name, Level.FAULT, f"no result within {timeout:g} s", do)]


async def _guard(name: str, check: Awaitable[Iterable[Finding]]) -> list[Finding]:
    """Return the findings of a check; its failure is one."""
    try:
        return [*await check]
    except ApiError as error:
        do = "Look at the server's log" if error.status >= 500 else ""
        level = Level.FAULT if error.status >= 500 else Level.NOTE
        return [Finding(name, level, f"not checked: {message_of(error)}", do)]
    except AioInformerError as error:
        return [Finding(name, Level.FAULT, message_of(error), "Correct what the message names")]
    except Exception as error:
        text = f"the check itself failed: {type(error).__name__}: {message_of(error)}"
        do = (
            "Look at what answers: an API server's answers have another form. If it is one, report this error"
        )
        return [Finding(name, Level.WARNING, text, do)]


async def _open(examination: Examination) -> list[Finding]:
    """Read the configuration."""
    client: Any = examination.client
    await client.open()
    examination.access = client.transport.access
    return []


async def _load(examination: Examination, operator: Operator | ManagerFactory) -> list[Finding]:
    """Make the operator's manager, which is not started and so needs no settings. Return which of them are missing."""
    client, options = examination.client, examination.options
    several = len(options.watched) > 1
    given: dict[str, Any] = {}
    for namespace in options.watched:
        given = {"namespaces": options.watched} if several else {"namespace": namespace}
    if isinstance(operator, Operator):
        await operator.discover(client)
        examination.operator = operator
    if (sharding := sharding_of(client, examination.name, options)) is not None:
        given["sharding"] = sharding
    manager: Manager
    if isinstance(operator, Operator):
        manager = operator.manager(client, settings=UNREAD, **given)
    else:
        manager = await call_factory(operator, client, options.target, given)
    examination.manager, examination.collections = manager, collections_of(manager)
    return [*check_settings(operator, options)] if isinstance(operator, Operator) else []


def check_settings(operator: Operator, options: RunOptions) -> Iterator[Finding]:
    """Yield which settings are missing here: the operator's pods may have them."""
    if operator.settings is None or options.settings is not None:
        return
    try:
        settings_from(operator.name, operator.settings)
    except ConfigError as error:
        do = "Check that the operator's pods have them. The other checks need no settings"
        yield Finding("operator", Level.NOTE, f"its settings are not complete here: {error}", do)


def _usual_collections(namespace: str) -> list[Collection]:
    """Return what is listed and watched without an operator: what most users may read first."""
    return [
        Collection("v1", "namespaces"),
        Collection("v1", "nodes"),
        Collection("v1", "pods"),
        Collection("v1", "pods", namespace),
    ]


def _skip(why: str, checks: str = "") -> Finding:
    return Finding("others", Level.NOTE, f"not checked{checks and f' ({checks})'}: {why}")
