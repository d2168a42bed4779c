"""All objects of an installation on the real server: each is accepted, and users get rights on its kinds."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer import KubeObject
from aioinformer.operator import AdmissionReview, CustomResource, Operator, Request
from aioinformer.operator.manifests import FromKey, Installation, Mount, manifests, to_yaml
from aioinformer.operator.manifests.user_roles import EDIT
from aioinformer.operator.rights import READ
from tests.e2e.conftest import REAL
from tests.kubernetes.kubectl import KubectlError

from .audit import PATIENCE, Audited
from .installing import assert_unchanged, define_foreign_kinds

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

Object = dict[str, Any]


class Settings(msgspec.Struct):
    host: str
    token: str


class Field(CustomResource, group="applied.example.com", version="v1"):
    spec: dict[str, str]
    status: dict[str, str] | None = None


operator = Operator("fields", settings=Settings)


@operator.controller(Field, owns=["configmaps"])
async def reconcile(request: Request[Field]) -> None: ...


@operator.controller("nodes")
async def look(request: Request[KubeObject]) -> None: ...


@operator.validate(Field)
def check(review: AdmissionReview[Field]) -> None: ...


@operator.validate("nodes")
def check_node(review: AdmissionReview[KubeObject]) -> None: ...


def install(name: str, **options: Any) -> list[Object]:
    return manifests(
        operator,
        Installation(
            target="fields:operator",
            name=name,
            image="fields:1",
            settings={"host": "10.0.0.7", "token": FromKey("secret", "dns", "token")},
            mounts=(Mount("configmap", "zones", "/etc/zones"), Mount("secret", "dns", "/etc/dns")),
            pod_monitor=True,
            **options,
        ),
    )


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("scope", ["everywhere", "one", "several"])
async def test_every_object_is_accepted_and_a_second_apply_changes_nothing(
    audited: Audited, replicas: int, scope: str
) -> None:
    await define_foreign_kinds(audited)
    watched = [audited.create_namespace() for _ in range(2)] if scope == "several" else []
    if scope == "one":
        watched = [audited.create_namespace()]
    name = f"fields-{scope}-{replicas}"
    objects = install(
        name,
        replicas=replicas,
        watched=tuple(watched) or None,
        namespace=audited.create_namespace() if scope == "one" else "",
    )
    text = to_yaml(objects)
    try:
        applied = await audited.kubectl("apply", "--validate=strict", "-f", "-", stdin=text)
        assert len(applied.splitlines()) == len(objects)
        assert_unchanged(await audited.kubectl("apply", "-f", "-", stdin=text))
        server_side = await audited.kubectl(
            "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=text
        )
        assert len(server_side.splitlines()) == len(objects)
    finally:
        await audited.kubectl("delete", "--wait=false", "-f", "-", stdin=text)


async def test_users_with_the_roles_of_the_cluster_get_the_kinds_of_the_operator(
    audited: Audited,
) -> None:
    namespace = audited.create_namespace()
    objects = [
        obj for obj in install("fields-roles") if obj["kind"] in ("CustomResourceDefinition", "ClusterRole")
    ]
    text = to_yaml(objects)
    try:
        await audited.kubectl("apply", "-f", "-", stdin=text)
        for role in ("view", "edit", "admin"):
            binding = f"--clusterrole={role}", f"--user=a-{role}", f"--namespace={namespace}"
            await audited.kubectl("create", "rolebinding", f"a-{role}", *binding)
        resource = "fields.applied.example.com"
        permitted = {
            "view": [(verb, resource) for verb in READ],
            "edit": [(verb, resource) for verb in (*READ, *EDIT)],
            "admin": [*((verb, resource) for verb in (*READ, *EDIT)), ("patch", f"{resource}/status")],
        }
        for role, expected in permitted.items():
            for verb, named in expected:
                await until_can(audited, role, namespace, verb, named)
        for role, verb, named in (
            ("view", "create", resource),
            ("view", "delete", resource),
            ("edit", "patch", f"{resource}/status"),
        ):
            assert not await can(audited, role, namespace, verb, named)
    finally:
        await audited.kubectl("delete", "--wait=false", "-f", "-", stdin=text)


async def can(audited: Audited, role: str, namespace: str, verb: str, resource: str) -> bool:
    """Return whether a user with a role of the cluster may do something."""
    name, _, subresource = resource.partition("/")
    options = [f"--subresource={subresource}"] if subresource else []
    try:
        answer = await audited.kubectl(
            "auth", "can-i", verb, name, *options, f"--as=a-{role}", f"--namespace={namespace}"
        )
    except KubectlError:
        return False
    return answer.strip() == "yes"


async def until_can(audited: Audited, role: str, namespace: str, verb: str, resource: str) -> None:
    """Wait until the controller has added the rules to the role."""
    async with asyncio.timeout(PATIENCE):
        while not await can(audited, role, namespace, verb, resource):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
