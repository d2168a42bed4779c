"""The faults. Each coroutine causes one, and returns when the server is well again. Readers may still be recovering."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aioinformer import ApiError
from aioinformer.cache import Phase
from tests.e2e.api import DEFINITIONS, Resource
from tests.e2e.definitions import CAVE_DEFINITION, CAVES, define

from .world import World

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(f"{RBAC}/v1", "roles")
BINDINGS = Resource(f"{RBAC}/v1", "rolebindings")

Trouble = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
        name: The name in tables.
        trouble: Causes the fault.
        within: Seconds in which our informers must recover.
        proxied: Whether the subjects connect through their proxies.
        prepare: Runs before the subjects start.
        deletions: Whether some deletions can only be found by listing.
        requests: Requests that our informers may make, from the start of the fault until they have recovered.
    """

    name: str
    trouble: Trouble
    within: float
    requests: int
    proxied: bool = False
    prepare: Trouble | None = None
    deletions: bool = False

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def server_killed(outage: float) -> Trouble:
    async def trouble(world: World) -> None:
        world.plane.kill()
        await asyncio.sleep(outage)
        await world.plane.restart()

    return trouble


def etcd_killed(outage: float) -> Trouble:
    async def trouble(world: World) -> None:
        world.plane.kill_etcd()
        await asyncio.sleep(outage)
        await world.plane.restart_etcd()

    return trouble


async def history_expired(world: World) -> None:
    """The watches stall. Meanwhile many objects change, etcd compacts that history, and the server restarts."""
    for proxy in world.proxies:
        proxy.freeze()
    await world.change_much()
    await world.plane.compact()
    await world.plane.restart()
    await world.change_much(5)
    for proxy in world.proxies:
        proxy.thaw()


def frozen(seconds: float) -> Trouble:
    async def trouble(world: World) -> None:
        for proxy in world.proxies:
            proxy.freeze()
        await asyncio.sleep(seconds)
        for proxy in world.proxies:
            proxy.thaw()

    return trouble


def delay(seconds: float) -> Trouble:
    async def trouble(world: World) -> None:
        for proxy in world.proxies:
            proxy.delay = 0.3
        await asyncio.sleep(seconds)
        for proxy in world.proxies:
            await proxy.cut()  # recovery on a slow connection
        await asyncio.sleep(seconds)
        for proxy in world.proxies:
            proxy.delay = 0.0

    return trouble


def cut_in_the_middle(times: int) -> Trouble:
    async def trouble(world: World) -> None:
        for _ in range(times):
            for proxy in world.proxies:
                proxy.cut_in_the_middle()
            await asyncio.sleep(1.0)

    return trouble


def corrupt(times: int) -> Trouble:
    async def trouble(world: World) -> None:
        for _ in range(times):
            for proxy in world.proxies:
                proxy.corrupt()
            await asyncio.sleep(1.0)

    return trouble


async def certificate_rotated(world: World) -> None:
    """The server gets a certificate of another trusted authority; then all connections are lost."""
    issued = world.site.authority.issue_cert("127.0.0.1")
    folder = world.plane.ca_file.parent
    chain = [*issued.cert_chain_pems, world.site.authority.cert_pem]
    (folder / "apiserver.key").write_bytes(issued.private_key_pem.bytes())
    (folder / "apiserver.crt").write_bytes(b"".join(pem.bytes() for pem in chain))
    address: Any = (urlsplit(world.plane.url).hostname, urlsplit(world.plane.url).port)
    leaf = issued.cert_chain_pems[0].bytes().decode()
    shown = ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(leaf))
    async with asyncio.timeout(90):
        while await asyncio.to_thread(ssl.get_server_certificate, address) != shown:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    await _cut(world)


class Account:
    """A service account that may read everything. Its tokens are valid until their secret is deleted."""

    async def prepare(self, world: World) -> None:
        path = f"/api/v1/namespaces/{world.namespace}"
        self._path = f"{path}/serviceaccounts/reader"
        self._secrets = "/api/v1/namespaces/default/secrets"
        await world.api.do("POST", f"{path}/serviceaccounts", {"metadata": {"name": "reader"}})
        await _bind(world, {"kind": "ServiceAccount", "name": "reader", "namespace": world.namespace})
        world.token_file.write_text(await self.token(world, "first"))

    async def token(self, world: World, name: str) -> str:
        """Return a token that is bound to a secret of this name."""
        secrets = f"/api/v1/namespaces/{world.namespace}/secrets"
        secret = await world.api.do("POST", secrets, {"metadata": {"name": name}})
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]}
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound},
        }
        return str((await world.api.do("POST", f"{self._path}/token", asked))["status"]["token"])

    async def expire(self, world: World, name: str) -> None:
        """Invalidate the token that is bound to this secret; return when the server refuses it."""
        token = world.token_file.read_text()
        await world.api.do("DELETE", f"/api/v1/namespaces/{world.namespace}/secrets/{name}")
        await _until_status(world, token, 401)


def token_rotated(gap: float) -> tuple[Trouble, Trouble]:
    """The token becomes invalid, the connections are lost, and later the token file has a new token."""
    account = Account()

    async def trouble(world: World) -> None:
        fresh = await account.token(world, "second")
        await account.expire(world, "first")
        if not gap:
            world.token_file.write_text(fresh)
        await _cut(world)
        if gap:
            await asyncio.sleep(gap)
            world.token_file.write_text(fresh)

    return account.prepare, trouble


def definition_deleted(gap: float) -> Trouble:
    path = DEFINITIONS.path(None, CAVE_DEFINITION["metadata"]["name"])

    async def trouble(world: World) -> None:
        await world.api.do("DELETE", path)
        async with asyncio.timeout(60):
            while (await world.api.ask("GET", CAVES.path(world.namespace))).status != 404:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await asyncio.sleep(gap)
        states = {name: informer.state for name, informer in world.ours.informers.items()}
        error = states[CAVES.plural].last_error
        assert isinstance(error, ApiError), error
        assert (error.status, states[CAVES.plural].phase) == (404, Phase.BACKING_OFF)
        assert [name for name, state in states.items() if state.phase is not Phase.WATCHING] == [CAVES.plural]
        await define(world.api, CAVE_DEFINITION)

    return trouble


def rights_revoked(gap: float) -> tuple[Trouble, Trouble]:
    user = {"kind": "User", "name": "powerless", "apiGroup": RBAC}

    async def prepare(world: World) -> None:
        await _bind(world, user)
        world.token_file.write_text(world.plane.powerless_token)
        await _until_status(world, world.plane.powerless_token, 200)

    async def trouble(world: World) -> None:
        await world.api.do("DELETE", BINDINGS.path(world.namespace, "reader"))
        await _until_status(world, world.plane.powerless_token, 403)
        await _cut(world)
        await asyncio.sleep(gap)
        await _bind(world, user)
        await _until_status(world, world.plane.powerless_token, 200)

    return prepare, trouble


async def _cut(world: World) -> None:
    for proxy in world.proxies:
        await proxy.cut()


async def _bind(world: World, subject: dict[str, str]) -> None:
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
    role = {"metadata": {"name": "reader"}, "rules": [rule]}
    ref = {"kind": "Role", "name": "reader", "apiGroup": RBAC}
    await world.api.ask("POST", ROLES.path(world.namespace), role)
    await world.api.do(
        "POST",
        BINDINGS.path(world.namespace),
        {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": ref},
    )


async def _until_status(world: World, token: str, status: int) -> None:
    """Wait until the server answers requests with this token with this status."""
    async with asyncio.timeout(60):
        while await world.status_for(token) != status:  # noqa: ASYNC110 - nothing tells when it is
            await asyncio.sleep(0.1)


def cases(outages: tuple[float, ...], *, long: bool) -> list[Case]:
    """Return all cases.

    Args:
        outages: Seconds for which servers are down.
        long: Whether faults that only take time take longer.
    """
    gap = 60.0 if long else 3.0
    token_prepare, token = token_rotated(0.0)
    late_prepare, late = token_rotated(10.0 if long else 2.0)
    rights_prepare, rights = rights_revoked(gap)
    return [
        *(Case(f"server killed {s:g} s", server_killed(s), 10.0, int(60 + 0.6 * s)) for s in outages),
        *(Case(f"etcd killed {s:g} s", etcd_killed(s), 30.0, int(60 + 1.5 * s)) for s in outages),
        Case("history expired", history_expired, 10.0, 60, proxied=True, deletions=True),
        Case("frozen", frozen(20.0 if long else 3.0), 5.0, 30, proxied=True),
        Case("delayed", delay(5.0 if long else 2.0), 10.0, 60, proxied=True),
        Case("cut in mid-line", cut_in_the_middle(10 if long else 3), 10.0, 100, proxied=True),
        # Of four damaged watches in a row the last is followed by the back-off's fourth delay: at most 12.8 s.
        Case("corrupted", corrupt(10 if long else 3), 15.0, 100, proxied=True),
        Case("certificate rotated", certificate_rotated, 5.0, 40, proxied=True),
        Case("token rotated", token, 5.0, 60, proxied=True, prepare=token_prepare),
        Case("token late", late, 35.0, 80, proxied=True, prepare=late_prepare),
        Case("definition deleted", definition_deleted(gap), 35.0, 40),
        Case("rights revoked", rights, 35.0, 100, proxied=True, prepare=rights_prepare),
    ]
