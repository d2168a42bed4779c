"""What running replicas of an operator say of themselves on their debug pages, and whether they answer at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from .._core.tasks import gather
from ..client.error_mapping import without_credentials
from ..errors import AioInformerError, TransportError, message_of
from ..operator.debug_page import reading_debug_page
from ..operator.process_events import CERTIFICATE_INVALID, LOGS_LOST
from .connection import cause_of
from .findings import Finding, Level, shorten_line
from .times import DAY, describe_seconds, judge_expiry

CHECK = "process"

LONG = 60.0
"""Seconds for which a reconcile runs, or a key waits for a worker, from which on it is long."""

CERTIFICATE_LIFETIME = 5 * DAY
"""Of a webhook's certificate: it is warned of a day before its end, as by the alert CertificateExpires."""

MOST_NAMED = 5
"""Findings of one kind about a process."""

_REMEDIES = {
    CERTIFICATE_INVALID: "Renew its Secret: the process reads the new certificate within seconds",
    LOGS_LOST: "Free the disk of the logs: reconciles continue meanwhile, and so does the log once there is room",
}
"""What to do about a problem of a process, by its reason."""


class _Key(msgspec.Struct):
    controller: str
    key: str
    error: str
    where: str = ""


class _Failing(msgspec.Struct):
    keys: list[_Key] = []


class _Run(msgspec.Struct):
    key: str
    seconds: float


class _Controller(msgspec.Struct):
    name: str
    working: bool = True
    concurrency: int | None = None
    failing: int = 0
    failing_seconds: float = 0.0
    queued_seconds: float = 0.0
    last_error_key: str | None = None
    last_error: str | None = None
    running: list[_Run] = []


class _Leader(msgspec.Struct):
    leading: bool
    error: str | None = None


class _Sharding(msgspec.Struct):
    last_error: str | None = None


class Process(msgspec.Struct):
    """What a debug page says. Pages of former versions lack some of it."""

    name: str
    version: str = ""
    ready: list[str] = []
    warnings: list[str] = []
    problems: dict[str, str] = {}
    certificate_expires: float | None = None
    definitions: dict[str, str] = {}
    leader: _Leader | None = None
    sharding: _Sharding | None = None
    controllers: list[_Controller] = []
    failing: _Failing = msgspec.field(default_factory=_Failing)


async def check_processes(
    urls: Iterable[str], token: str, *, operator: str, now: float, timeout: float
) -> list[Finding]:
    """Read the debug pages of replicas, and compare them.

    Args:
        urls: Of their metrics ports.
        token: For processes with ``--metrics-auth``; ``""`` for none.
        operator: The operator's name; ``""`` if it is not known.
        now: The current time.
        timeout: Seconds for each page.
    """
    names = [*dict.fromkeys(urls)]
    results = await gather(*(_read(url, token, timeout) for url in names))
    shown = [without_credentials(url) for url in names]
    processes = {
        name: result for name, result in zip(shown, results, strict=True) if isinstance(result, Process)
    }
    findings = [result for result in results if isinstance(result, Finding)]
    for name, process in processes.items():
        problems = [*judge_process(process, operator, now)]
        findings += [_about(name, finding) for finding in problems or [_describe(process)]]
    return [*findings, *judge_replicas(processes)]


async def _read(url: str, token: str, timeout: float) -> Process | Finding:
    try:
        async with reading_debug_page(url, token, timeout=timeout) as read:
            return msgspec.convert(await read(), Process)
    except TransportError as error:
        return explain_silence(without_credentials(url), error, timeout)
    except msgspec.ValidationError as error:
        do = "Run the doctor of the version of aioinformer that the process has"
        text = f"{without_credentials(url)}: its debug page has another form: {error}"
        return Finding(CHECK, Level.WARNING, shorten_line(text), do)
    except AioInformerError as error:
        do = "Pass the URL of the port that --metrics-port names, and a token if the operator runs with --metrics-auth"
        return Finding(CHECK, Level.FAULT, shorten_line(message_of(error)), do)


def explain_silence(url: str, error: TransportError, timeout: float) -> Finding:
    """Return why a process does not answer."""
    cause = cause_of(error.__cause__ or error)
    if isinstance(cause, TimeoutError):
        text = (
            f"{url} does not answer within {timeout:g} s: the process is frozen, or its event loop is blocked"
        )
        do = (
            "Its liveness probe restarts it, and another replica leads meanwhile. Look for a handler that computes or "
            "waits without await: py-spy dump --pid shows where it is. A firewall on the way looks the same"
        )
    elif isinstance(cause, ConnectionRefusedError):
        text = f"{url} refuses connections: no process listens there"
        do = "Look at the pod: kubectl logs --previous says why the process ended; or correct the port"
    else:
        text, do = message_of(error), "Check the URL: it is that of the port that --metrics-port names"
    return Finding(CHECK, Level.FAULT, shorten_line(text), do)


def judge_process(process: Process, operator: str, now: float) -> Iterator[Finding]:
    """Yield what is wrong with a process.

    Args:
        process: Its debug page.
        operator: The operator's name; ``""`` if it is not known.
        now: The current time.
    """
    if operator and process.name != operator:
        do = f"Pass the metrics ports of {operator}"
        yield Finding(CHECK, Level.WARNING, f"another operator runs there: {process.name}", do)
    do = "Look at the operator's log, and at the findings about the server; /readyz says the same"
    for reason in process.ready[:MOST_NAMED]:
        yield Finding(CHECK, Level.FAULT, f"it is not ready: {reason}", do)
    election_error = process.leader.error if process.leader else None
    if error := election_error or (process.sharding.last_error if process.sharding else None):
        do = "Look at the findings about the server and the rights: the operator must get, create and update its Leases"
        yield Finding(CHECK, Level.FAULT, f"its Lease cannot be acquired or renewed: {error}", do)
    for reason, problem in [*process.problems.items()][:MOST_NAMED]:
        do = _REMEDIES.get(reason, "Look at the operator's log")
        yield Finding(CHECK, Level.FAULT, problem, do)
    if process.certificate_expires is not None and CERTIFICATE_INVALID not in process.problems:
        yield from _judge_certificate(process.certificate_expires, now)
    for warning in process.warnings[:MOST_NAMED]:
        do = "Correct the objects, or give the class's fields defaults"
        yield Finding(CHECK, Level.WARNING, warning, do)
    working = (controller for controller in process.controllers if controller.working)
    yield from islice(_judge_controllers(working, process.failing.keys), 4 * MOST_NAMED)


def _judge_certificate(expires: float, now: float) -> Iterator[Finding]:
    do, name = _REMEDIES[CERTIFICATE_INVALID], "the certificate of its webhooks"
    finding = judge_expiry(CHECK, name, expires, now, do, lifetime=CERTIFICATE_LIFETIME)
    if finding.level is not Level.OK:
        yield finding


def _judge_controllers(controllers: Iterable[_Controller], failing: Iterable[_Key]) -> Iterator[Finding]:
    for controller in controllers:
        yield from _judge_controller(controller, failing)


def _judge_controller(controller: _Controller, failing: Iterable[_Key]) -> Iterator[Finding]:
    """Yield which keys fail, run or wait for long. A task that each object has may run for ever."""
    name = controller.name
    if controller.failing:
        key, error = controller.last_error_key, controller.last_error
        for oldest in failing:  # the longest failing one of each controller comes first
            if oldest.controller == name:
                key = oldest.key
                error = f"{oldest.error} ({oldest.where})" if oldest.where else oldest.error
                break
        what = "1 object fails" if controller.failing == 1 else f"{controller.failing:,} objects fail"
        since = describe_seconds(controller.failing_seconds)
        do = "Repair what the error names; the operator retries by itself. Its page /debug lists all of them"
        yield Finding(CHECK, Level.WARNING, f"{name}: {what}, for up to {since}: {key}: {error}", do)
    if controller.concurrency is None:
        return
    do = (
        "The page /debug shows where it waits. Set a timeout for that call, or the controller's timeout; a larger "
        "concurrency lets the others go on"
    )
    longest = max(controller.running, key=lambda run: run.seconds, default=None)
    if longest is not None and longest.seconds >= LONG:
        text = f"{name}: the reconcile of {longest.key} runs for {describe_seconds(longest.seconds)}"
        yield Finding(CHECK, Level.WARNING, text, do)
    if controller.queued_seconds >= LONG:
        text = f"{name}: an object waits for a worker for {describe_seconds(controller.queued_seconds)}"
        yield Finding(CHECK, Level.WARNING, text, do)


def judge_replicas(processes: Mapping[str, Process]) -> Iterator[Finding]:
    """Yield how the replicas of one operator differ.

    Args:
        processes: By URL.
    """
    by_name: dict[str, dict[str, Process]] = {}
    for url, process in processes.items():
        by_name.setdefault(process.name, {})[url] = process
    for name, replicas in by_name.items():
        leaders = [url for url, replica in replicas.items() if replica.leader and replica.leader.leading]
        if len(leaders) > 1:
            do = "Run doctor again: the leader may just have changed. Otherwise let all use one Lease, in one cluster"
            yield _warn(f"several replicas of {name} lead: {', '.join(leaders)}", do)
        do = "Wait for the end of the rolling update. If there is none, look at the image of each pod"
        if len({replica.version for replica in replicas.values()}) > 1:
            versions = ", ".join(
                f"{replica.version or 'an older one'} at {url}" for url, replica in replicas.items()
            )
            yield _warn(f"the replicas of {name} have different versions of aioinformer: {versions}", do)
            continue
        parts = [_parts(replica) for replica in replicas.values()]
        if differing := sorted({part for part, _ in parts[0].union(*parts) - parts[0].intersection(*parts)}):
            where = ", ".join(replicas)
            yield _warn(
                f"the replicas of {name} are of different releases: {', '.join(differing)} at {where}", do
            )


def _parts(process: Process) -> set[tuple[str, str]]:
    """Return what differs between releases, by name: the controllers, and what the classes define."""
    controllers = {(f"the controller {controller.name}", "") for controller in process.controllers}
    return controllers | set(process.definitions.items())


def _describe(process: Process) -> Finding:
    standing = "" if process.leader is None else ", and leads" if process.leader.leading else ", on standby"
    return Finding(CHECK, Level.OK, f"{process.name} is ready{standing}")


def _about(url: str, finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, what=shorten_line(f"{url}: {finding.what}"))


def _warn(text: str, do: str) -> Finding:
    return Finding(CHECK, Level.WARNING, shorten_line(text), do)
