"""Each verb of a Resource, and each way of being refused, on either server."""

from __future__ import annotations

import asyncio
import json

import pytest

from aioinformer import (
    AlreadyExistsError,
    ApiError,
    Client,
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubeObject,
    NotFoundError,
    Resource,
    is_status_condition_true,
    set_status_condition,
)
from aioinformer.errors import ObjectNotFoundError, RefusedError, TooManyRequestsError
from aioinformer.objects.api_resources import is_cluster_scoped

from ..clusters import Cluster, pod_manifest
from ..definitions import CAVE_DEFINITION
from .conftest import Configmap

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Maps = Resource[KubeObject]


async def test_created_read_changed_deleted(configmaps: Maps, configmap: Configmap, cluster: Cluster) -> None:
    created = await configmaps.create(configmap("a", k="1"))
    assert created.key == cluster.key("a")
    assert (created.kind, created["data"]) == ("ConfigMap", {"k": "1"})
    assert await configmaps.get(created.key) == created
    changed = created.to_dict()
    changed["data"] = {"k": "2"}
    updated = await configmaps.update(changed)
    assert updated["data"] == {"k": "2"}
    assert int(updated.resource_version) > int(created.resource_version)
    assert await configmaps.list(cluster.namespace, field_selector="metadata.name=a") == [updated]
    assert await configmaps.delete(updated) is None
    with pytest.raises(NotFoundError):
        await configmaps.get(created.key)


async def test_a_name_of_the_servers_choice(configmaps: Maps, cluster: Cluster) -> None:
    made = await configmaps.create({"metadata": {"generateName": "any-", "namespace": cluster.namespace}})
    assert made.name.startswith("any-")


async def test_list_all_in_pages(
    configmaps: Maps, configmap: Configmap, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer.resources.resource.PAGE_SIZE", 3)
    await asyncio.gather(*(configmaps.create(configmap(f"m{number}")) for number in range(8)))
    objects = await configmaps.list(cluster.namespace)
    assert [obj.name for obj in objects if obj.name.startswith("m")] == [f"m{number}" for number in range(8)]
    everywhere = {obj.key for obj in await configmaps.list()}
    assert {obj.key for obj in objects} <= everywhere
    with pytest.raises(RefusedError, match=r"list configmaps.*400 BadRequest"):
        await configmaps.list(label_selector="a in b")


async def test_an_update_of_an_older_version_is_refused(configmaps: Maps, configmap: Configmap) -> None:
    created = await configmaps.create(configmap("a", k="1"))
    await configmaps.patch(created, {"data": {"k": "2"}})
    with pytest.raises(
        ConflictError, match=r"update configmaps .*/a: 409 Conflict: .*object has been modified"
    ) as raised:
        await configmaps.update(created)
    assert (raised.value.key, raised.value.resource) == (created.key, "configmaps")


async def test_update_of_an_unmodified_kube_object_is_an_error(
    configmaps: Maps, configmap: Configmap
) -> None:
    created = await configmaps.create(configmap("a", k="1"))
    edited = created.to_dict()
    edited["data"]["k"] = "2"
    with pytest.raises(ConfigError, match=r"update configmaps .*/a: nothing was changed: .*obj\.to_dict\(\)"):
        await configmaps.update(created)
    updated = await configmaps.update(KubeObject.from_dict(edited))
    assert updated["data"] == {"k": "2"}
    assert await configmaps.update(updated.to_dict()) == updated  # a dict may be sent as it is


async def test_update_status_of_an_unmodified_kube_object_is_an_error(
    cluster: Cluster, client: Client
) -> None:
    await cluster.define(CAVE_DEFINITION)
    caves = Resource(client, "example.com/v1", "caves", kind="Cave")
    made = await caves.create({"metadata": {"name": "a", "namespace": cluster.namespace}})
    with pytest.raises(ConfigError, match=r"update status of caves.* .*/a: nothing was changed"):
        await caves.update_status(made)
    changed, _ = set_status_condition(made, "Ready", "True", "Dug")
    updated = await caves.update_status(changed)
    assert is_status_condition_true(updated, "Ready")


async def test_create_of_an_existing_object_is_an_error(configmaps: Maps, configmap: Configmap) -> None:
    await configmaps.create(configmap("a"))
    with pytest.raises(
        AlreadyExistsError, match=r'create configmaps .*/a: 409 AlreadyExists: configmaps "a" already'
    ):
        await configmaps.create(configmap("a"))


async def test_missing_object_is_an_error(
    configmaps: Maps, cluster: Cluster, client: Client, configmap: Configmap
) -> None:
    key = cluster.key("none")
    for verb in (configmaps.get(key), configmaps.patch(key, {"data": {}}), configmaps.delete(key)):
        with pytest.raises(
            ObjectNotFoundError, match=rf'configmaps {key}: 404 NotFound: configmaps "none" not found'
        ):
            await verb
    nothing = Resource(client, "nowhere.example.com/v1", "things", kind="Thing")
    with pytest.raises(NotFoundError, match=r"create things.nowhere.example.com .*: 404"):
        await nothing.create(configmap("a"))
    with pytest.raises(NotFoundError):
        await nothing.ensure_finalizer(
            key, "example.com/x"
        )  # not None, which would say that the object is gone


async def test_invalid_fields_are_named(client: Client, cluster: Cluster, configmaps: Maps) -> None:
    with pytest.raises(InvalidError, match=r"422 Invalid: .*metadata.name") as raised:
        await configmaps.create({"metadata": {"name": "A_", "namespace": cluster.namespace}})
    assert [cause.field for cause in raised.value.causes] == ["metadata.name"]
    assert "lowercase RFC 1123" in raised.value.causes[0].message


async def test_a_custom_resource_without_a_kind_is_refused_with_where_to_set_it(
    client: Client, cluster: Cluster
) -> None:
    await cluster.define(CAVE_DEFINITION)
    caves = Resource(client, "example.com/v1", "caves")
    with pytest.raises(RefusedError, match=r"Object 'Kind' is missing.*; add it, .*, or .* with kind="):
        await caves.create({"metadata": {"name": "a", "namespace": cluster.namespace}})


async def test_merge_strategic_and_json_patches(
    configmaps: Maps, configmap: Configmap, client: Client, cluster: Cluster
) -> None:
    obj = await configmaps.create(configmap("a", k="1", l="2"))
    obj = await configmaps.patch(obj, {"data": {"k": None, "m": "3"}})
    assert obj["data"] == {"l": "2", "m": "3"}
    obj = await configmaps.patch(obj.key, [{"op": "replace", "path": "/data/l", "value": "4"}])
    assert obj["data"] == {"l": "4", "m": "3"}
    with pytest.raises(InvalidError) as raised:
        await configmaps.patch(obj, [{"op": "test", "path": "/data/l", "value": "5"}])
    assert raised.value.causes == ()
    pods = Resource(client, "v1", "pods")
    made = pod_manifest("p")
    made["metadata"]["namespace"] = cluster.namespace
    await pods.create(made)
    image = {"spec": {"containers": [{"name": "main", "image": "example.com/other"}]}}
    patched = await pods.patch(cluster.key("p"), image, strategic=True)
    assert [container["image"] for container in patched["spec"]["containers"]] == ["example.com/other"]
    assert patched["spec"]["containers"][0]["name"] == "main"


async def test_a_patch_may_name_the_version_that_it_is_for(configmaps: Maps, configmap: Configmap) -> None:
    old = await configmaps.create(configmap("a"))
    await configmaps.patch(old, {"data": {"k": "1"}})
    with pytest.raises(ConflictError):
        await configmaps.patch(
            old, {"metadata": {"resourceVersion": old.resource_version}, "data": {"k": "2"}}
        )


async def test_server_side_apply(configmaps: Maps, configmap: Configmap) -> None:
    first = await configmaps.apply(configmap("a", k="1", l="1"), field_manager="one")
    assert first["data"] == {"k": "1", "l": "1"}
    second = await configmaps.apply(configmap("a", m="2"), field_manager="two")
    assert second["data"] == {"k": "1", "l": "1", "m": "2"}
    with pytest.raises(ConflictError, match=r'apply configmaps .*conflict with "one".*\.data\.k') as raised:
        await configmaps.apply(configmap("a", k="2"), field_manager="two")
    assert [cause.field for cause in raised.value.causes] == [".data.k"]
    forced = await configmaps.apply(configmap("a", k="2"), field_manager="two", force=True)
    assert forced["data"] == {"k": "2", "l": "1"}  # what "two" left out is gone
    managers = {entry["manager"]: entry["operation"] for entry in forced["metadata"]["managedFields"]}
    assert managers == {"one": "Apply", "two": "Apply"}


async def test_built_in_kinds_need_neither_kind_nor_namespaced(
    cluster: Cluster, client: Client, configmap: Configmap
) -> None:
    applied = await Resource(client, "v1", "configmaps").apply(configmap("applied", k="1"))
    assert (applied.kind, applied["data"]) == ("ConfigMap", {"k": "1"})
    namespaces = Resource(client, "v1", "namespaces")
    assert (await namespaces.get(cluster.namespace)).name == cluster.namespace
    name = f"class-{cluster.namespace}"
    classes = Resource(client, "scheduling.k8s.io/v1", "priorityclasses")
    assert (await classes.apply({"metadata": {"name": name}, "value": 7})).key == name
    await classes.delete(name)


async def test_which_built_in_kinds_live_in_no_namespace_is_known(client: Client) -> None:
    groups = json.loads(await client.get("/apis"))["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    wrong = []
    for version in ["v1", *versions]:
        document = json.loads(await client.get(f"/apis/{version}" if "/" in version else f"/api/{version}"))
        for resource in document["resources"]:
            is_built_in = "." not in version or version.partition("/")[0].endswith(".k8s.io")
            if is_built_in and "/" not in resource["name"] and "get" in resource["verbs"]:
                known = not is_cluster_scoped(version.rpartition("/")[0], resource["name"])
                wrong += [(version, resource["name"])] if known is not resource["namespaced"] else []
    assert not wrong


async def test_an_object_that_was_read_is_not_applied(configmaps: Maps, configmap: Configmap) -> None:
    applied = await configmaps.apply(configmap("a", k="1"))
    with pytest.raises(
        ApiError, match=r"managedFields must be nil; an object that was read cannot be applied"
    ):
        await configmaps.apply(await configmaps.get(applied.key))


async def test_status_is_written_separately(cluster: Cluster, client: Client) -> None:
    await cluster.define(CAVE_DEFINITION)
    caves = Resource(client, "example.com/v1", "caves", dict, kind="Cave")
    made = await caves.create(
        {"metadata": {"name": "a", "namespace": cluster.namespace}, "spec": {"size": 1}}
    )
    made["status"], made["spec"] = {"free": 1}, {"size": 9}
    updated = await caves.update_status(made)
    assert (updated["spec"], updated["status"]) == ({"size": 1}, {"free": 1})
    patched = await caves.patch_status(updated, {"status": {"used": 2}})
    assert patched["status"] == {"free": 1, "used": 2}
    mine = {"metadata": {"name": "a", "namespace": cluster.namespace}, "status": {"seen": True}}
    applied = await caves.apply_status(mine, field_manager="watcher")
    assert applied["status"] == {"free": 1, "used": 2, "seen": True}
    replaced = await caves.update(applied | {"status": {}, "spec": {"size": 2}})
    assert (replaced["spec"], replaced["status"]) == ({"size": 2}, applied["status"])


async def test_preconditions_of_a_deletion(configmaps: Maps, configmap: Configmap) -> None:
    old = await configmaps.create(configmap("a"))
    assert await configmaps.delete(old.key) is None
    new = await configmaps.create(configmap("a"))
    with pytest.raises(ConflictError, match=r"delete configmaps .*UID in the precondition"):
        await configmaps.delete(old)
    await configmaps.patch(new, {"data": {"k": "1"}})
    with pytest.raises(ConflictError, match=r"ResourceVersion in the precondition"):
        await configmaps.delete(new, resource_version=new.resource_version)
    assert await configmaps.delete(new) is None


async def test_delete_waits_for_finalizers(configmaps: Maps, configmap: Configmap) -> None:
    held = await configmaps.create(configmap("a", "example.com/x"))
    left = await configmaps.delete(held, propagation_policy="Background")
    assert left is not None
    assert left.metadata.deletion_timestamp is not None
    assert await configmaps.drop_finalizer(left, "example.com/x") is None


async def test_pods_have_a_grace_time_unless_it_is_taken(client: Client, cluster: Cluster) -> None:
    pods = Resource(client, "v1", "pods")
    made = pod_manifest("p", node="somewhere")
    made["metadata"]["namespace"] = cluster.namespace
    made["spec"]["terminationGracePeriodSeconds"] = 30
    running = await pods.create(made)
    going = await pods.delete(running)
    assert going is not None
    assert going.metadata.deletion_grace_period_seconds == 30
    made["metadata"]["name"] = "q"
    assert await pods.delete(await pods.create(made), grace_period=0) is None


async def test_evictions(client: Client, cluster: Cluster) -> None:
    pods = Resource(client, "v1", "pods")
    budgets = Resource(client, "policy/v1", "poddisruptionbudgets", kind="PodDisruptionBudget")
    made = pod_manifest("p", labels={"app": "web"})
    made["metadata"]["namespace"] = cluster.namespace
    created = await pods.create(made)
    await pods.patch_status(
        created, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    )
    metadata = {"name": "b", "namespace": cluster.namespace}
    budget = await budgets.create(
        {"metadata": metadata, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    )
    with pytest.raises(
        TooManyRequestsError,
        match=r"evict pods .*429 .*Cannot evict pod.*still being processed.*; again in 10 s",
    ):
        await pods.evict(created)
    await budgets.delete(budget)
    with pytest.raises(ConflictError):
        await pods.evict(created, uid="00000000-0000-0000-0000-000000000000")
    await pods.evict(created)
    with pytest.raises(NotFoundError):
        await pods.get(created.key)


async def test_an_eviction_uses_up_the_budget(client: Client, cluster: Cluster) -> None:
    """The budget's status says whether it allows another eviction; the test acts as its controller."""
    pods = Resource(client, "v1", "pods")
    budgets = Resource(client, "policy/v1", "poddisruptionbudgets", dict, kind="PodDisruptionBudget")
    created = []
    for name in ("p", "q"):
        made = pod_manifest(name, labels={"app": "web", "tier": "front"})
        made["metadata"]["namespace"] = cluster.namespace
        created.append(await pods.create(made))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await pods.patch_status(created[-1], {"status": ready})
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    budget = await budgets.create(
        {
            "metadata": {"name": "b", "namespace": cluster.namespace},
            "spec": {"minAvailable": 1, "selector": selector},
        }
    )
    allowed = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    await budgets.patch_status(budget, {"status": {**allowed, "expectedPods": 2}})
    await pods.evict(created[0])
    used = await budgets.get(cluster.key("b"))
    assert used["status"].get("disruptionsAllowed", 0) == 0
    assert list(used["status"]["disruptedPods"]) == ["p"]
    await budgets.patch_status(used, {"status": {"currentHealthy": 1}})
    with pytest.raises(
        TooManyRequestsError, match=r"budget b needs 1 healthy pods and has 1 currently"
    ) as raised:
        await pods.evict(created[1])
    assert raised.value.retry_after is None
    assert [cause.reason for cause in raised.value.causes] == ["DisruptionBudget"]
    other = {
        "metadata": {"name": "c", "namespace": cluster.namespace},
        "spec": {"minAvailable": 0, "selector": {}},
    }
    await budgets.create(other)
    with pytest.raises(ApiError, match=r"500 .*more than one PodDisruptionBudget"):
        await pods.evict(created[1])


async def test_forbidden_write_is_an_error(cluster: Cluster, configmap: Configmap) -> None:
    async with await cluster.forbid() as client:
        with pytest.raises(ForbiddenError, match=r"list configmaps.*403 Forbidden"):
            await Resource(client, "v1", "configmaps").list(cluster.namespace)
