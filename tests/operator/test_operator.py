"""Operators as declarations."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, assert_type

import pytest
import trustme

from aioinformer import CachedResource, Client, ConfigError, KubeObject, Resource
from aioinformer.operator import (
    Context,
    GenerationChanged,
    Operator,
    Owned,
    Reconciler,
    Request,
    Result,
    Uses,
    Watched,
)
from aioinformer.operator.definitions import compare, install
from aioinformer.testing import APIServer, ResourceType, eventually
from aioinformer.typed import CustomResource
from aioinformer.workqueue import ItemExponentialFailureRateLimiter


async def change_by_hand(client: Client) -> None:
    """Take over a field, as a user of kubectl does."""
    secrets = Resource(client, "secrets", field_manager="user")
    await secrets.apply(
        {"metadata": {"name": "a", "namespace": "default"}, "data": {"a": "Mg=="}}, force=True
    )


async def test_a_reconciler_gets_its_context_and_applies_what_it_owns() -> None:
    operator = Operator("copies")

    @operator.controller("configmaps", owns=["secrets"])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        if request.object is not None:
            secret = await context.apply_owned(request.object, "secrets", {"stringData": {"a": "1"}})
            assert_type(secret, KubeObject)
            context.events.event(request.object, "Normal", "Copied", "it has a Secret")

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        for _ in range(2):  # declarations are reusable
            async with operator.running(client):
                await eventually(lambda: "default/a" in server.snapshot("v1", "secrets"))
                server.delete("v1", "secrets", "a")  # a dependent that comes back
                await eventually(lambda: "default/a" in server.snapshot("v1", "secrets"))
                await change_by_hand(client)
                await eventually(lambda: server.get("v1", "secrets", "a")["data"] == {"a": "MQ=="})
        (event, *_) = server.list("events.k8s.io/v1", "events")
        assert (event["reason"], event["reportingController"]) == ("Copied", "copies")
        metadata = server.get("v1", "secrets", "a")["metadata"]
        assert metadata["ownerReferences"][0]["name"] == "a"
        assert "copies" in {field["manager"] for field in metadata["managedFields"]}


async def test_applying_an_owned_object_that_is_cached_takes_one_request() -> None:
    operator, applied = Operator("copies", events=False), list[str]()

    @operator.controller("configmaps", owns=["secrets"])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        if request.object is not None:
            data = {"stringData": {"a": request.object["data"]["a"]}}
            applied.append((await context.apply_owned(request.object, "secrets", data)).resource_version)

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}, "data": {"a": "0"}})
        async with operator.running(client) as manager:
            secrets = manager.for_resource("secrets").lister
            for number in range(1, 4):
                await eventually(lambda: applied and secrets.get("default/a").resource_version == applied[-1])
                before = len(applied)
                server.patch("v1", "configmaps", "a", {"data": {"a": str(number)}})
                await eventually(lambda: len(applied) > before)  # noqa: B023 - awaited at once
            # A reconcile that a change of the secret triggered may be under way.
            await eventually(lambda: server.count("patch", "secrets") == len(applied))
            assert server.count("get", "secrets") == 0


async def test_an_owner_in_another_namespace_is_refused() -> None:
    operator = Operator("copies", events=False)
    seen: list[str] = []

    @operator.controller("configmaps", owns=["secrets"])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        if request.object is not None:
            try:
                await context.apply_owned(
                    request.object, "secrets", {"metadata": {"namespace": "kube-system"}}
                )
            except ConfigError as error:
                seen.append(str(error))

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: seen)
        assert not server.list("v1", "secrets", "kube-system")
    assert seen[0].startswith(
        "'secrets' kube-system/a: its owner is in the namespace default, and Kubernetes deletes"
    )


async def test_a_reconciler_may_leave_out_the_context_and_be_plain() -> None:
    operator = Operator("plain", events=False)
    seen: list[str] = []

    @operator.controller("cm", name="first")
    def first(request: Request[KubeObject]) -> None:
        seen.append(f"first {request.key}")

    @operator.controller("configmaps", name="second")
    def second(request: Request[KubeObject], context: Context) -> None:
        seen.append(f"second {request.key} of {context.name}")

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: sorted(seen) == ["first default/a", "second default/a of plain"])
        assert server.count("list") + server.count("watch") == 1, "both share an informer"


def decorate(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


async def test_the_context_takes_no_argument_that_has_a_default() -> None:
    operator = Operator("defaults", events=False)
    seen: list[tuple[str, object]] = []

    def kept(request: Request[KubeObject], dry_run: bool = False) -> None:
        seen.append(("kept", dry_run))

    def optional(request: Request[KubeObject], context: Context | None = None) -> None:
        seen.append(("optional", context is not None))

    @decorate
    def short(request: Request[KubeObject]) -> None:
        seen.append(("short", None))

    @decorate
    def long(request: Request[KubeObject], context: Context) -> None:
        seen.append(("long", context.name))

    functions: list[Any] = [kept, optional, short, long]
    for function in functions:
        operator.controller("configmaps", name=function.__name__)(function)
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: len(seen) == len(functions))
    assert sorted(seen, key=str) == [
        ("kept", False),
        ("long", "defaults"),
        ("optional", True),
        ("short", None),
    ]


async def test_a_map_function_may_read_the_caches() -> None:
    operator = Operator("followers")
    seen: list[str] = []

    async def followers(secret: KubeObject, context: Context) -> list[Request[Any]]:
        return [
            Request.of(config_map)
            for config_map in await context.resource("configmaps").list(secret.namespace)
        ]

    @operator.controller(
        "configmaps", predicate=lambda change: False, watches=[Watched("secrets", followers)]
    )
    async def reconcile(request: Request[KubeObject]) -> None:
        seen.append(request.key)

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            server.create("v1", "secrets", {"metadata": {"name": "s"}})
            await eventually(lambda: seen[:1] == ["default/a"])


async def test_cleanup_gets_the_context() -> None:
    operator = Operator("cleaner")
    cleaned: list[str] = []

    async def clean(request: Request[KubeObject], context: Context) -> None:
        cleaned.append(f"{request.key} of {context.name}")

    @operator.controller("configmaps", finalizer="example.com/clean", cleanup=clean)
    async def reconcile(request: Request[KubeObject]) -> None: ...

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: "finalizers" in server.get("v1", "configmaps", "a")["metadata"])
            server.delete("v1", "configmaps", "a")
            await eventually(lambda: "default/a" not in server.snapshot("v1", "configmaps"))
    assert cleaned == ["default/a of cleaner"]


async def test_resources_that_are_not_declared_are_refused() -> None:
    operator = Operator("strict", uses=[Uses("nodes", ("get",)), Uses("secrets")], events=False)
    contexts: list[Context] = []

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        contexts.append(context)

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        server.create("v1", "nodes", {"metadata": {"name": "n"}})
        async with operator.running(client):
            await eventually(lambda: contexts)
            context = contexts[0]
            assert (await context.uncached("nodes").get("n")).name == "n"
            assert await context.resource("secrets").list() == []
            assert await context.uncached("configmaps").list("none") == []
            with pytest.raises(ConfigError, match=r"declare 'pods': add it to owns=.*Uses\('pods', verbs="):
                context.resource("pods")
            with pytest.raises(ConfigError, match=r"no cache of it: use context.uncached\('nodes'\)"):
                context.resource("nodes")
            with pytest.raises(ConfigError, match="events=False"):
                _ = context.events


class Site(CustomResource, group="example.com", version="v1"):
    spec: dict[str, int]


class SiteWithStatus(Site, version="v2", kind="Site", plural="sites"):
    status: dict[str, str] | None = None


async def test_classes_are_the_types_of_objects() -> None:
    operator = Operator("sites", events=False)
    seen: list[Site | None] = []

    @operator.controller(Site)
    async def reconcile(request: Request[Site], context: Context) -> None:
        seen.append(request.object)
        assert_type(context.resource(Site), CachedResource[Site])

    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, operator)
        server.create("example.com/v1", "sites", {"metadata": {"name": "a"}, "spec": {"size": 3}})
        async with operator.running(client):
            await eventually(lambda: seen)
        assert (await compare(client, operator)).differences == []
    (site,) = seen
    assert isinstance(site, Site)
    assert (site.key, site.spec) == ("default/a", {"size": 3})


async def test_other_selectable_fields_and_warnings_are_reported() -> None:
    class Before(CustomResource, group="marks.example.com", version="v1", kind="Mark"):
        spec: dict[str, str]
        host: str = ""

    class After(Before, version="v1", selectable_fields=(".host",), deprecated="use v2"): ...

    before, after = Operator("before", events=False), Operator("after", events=False)
    for operator, kind in ((before, Before), (after, After)):

        @operator.controller(kind)
        async def reconcile(request: Request[Any]) -> None: ...

    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, before)
        (text,) = (await compare(client, after)).differences
        assert "v1 selectableFields: none -> [{'jsonPath': '.host'}]" in text
        assert "v1 deprecationWarning: none -> use v2" in text
        await install(client, after)
        assert (await compare(client, after)).differences == []


async def test_definition_without_the_conversion_webhook_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = Operator("sites", events=False)

    @operator.convert(Site, SiteWithStatus)
    def newer(old: Site) -> SiteWithStatus:
        return SiteWithStatus(old.spec)

    @operator.convert(SiteWithStatus, Site)
    def older(new: SiteWithStatus) -> Site:
        return Site(new.spec)

    said = "sites.example.com at the server has no conversion webhook"
    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, operator)
        assert said in caplog.text
        assert said in "\n".join((await compare(client, operator)).differences)
        caplog.clear()
        await install(client, operator, url="https://127.0.0.1:1", ca_bundle=trustme.CA().cert_pem.bytes())
        assert (await compare(client, operator)).differences == []
        assert caplog.text == ""


async def test_custom_resources_may_be_named_by_plural_and_group() -> None:
    operator = Operator("sites", events=False)
    seen: list[str] = []

    @operator.controller("farms.example.com")
    async def reconcile(request: Request[KubeObject]) -> None:
        seen.append(request.key)

    assert [str(right) for right in operator.rights(leader_election=False)] == [
        "get, list, watch farms.example.com",
    ]
    async with APIServer() as server, Client.from_url(server.url) as client:
        with pytest.raises(ConfigError, match=r"no resource 'farms\.example\.com'"):
            async with operator.running(client):
                pass
        server.register(ResourceType("example.com", "v1", "farms", "Farm", namespaced=False))
        server.create("example.com/v1", "farms", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: seen == ["a"])


def test_versions_of_a_kind_make_one_definition() -> None:
    operator = Operator("sites", events=False)

    async def reconcile(request: Request[Any]) -> None: ...

    operator.controller(SiteWithStatus, uses=[Uses(Site, ("get",))])(reconcile)
    assert operator.custom_resources() == [(Site, SiteWithStatus)], "the last one is stored"
    assert [str(right) for right in operator.rights(leader_election=False)] == [
        "get, list, watch sites.example.com",
        "update, patch sites/status.example.com",
    ]


def test_all_mistakes_of_a_declaration_are_reported_at_once() -> None:
    operator = Operator("wrong")

    def reconcile() -> None: ...

    with pytest.raises(ConfigError) as caught:
        operator.controller("confgmaps", owns=["secets"], finalizer="clean", concurrency=0, name="sites")(
            reconcile  # type: ignore[arg-type]
        )
    text = str(caught.value)
    assert text.startswith("wrong: the controller sites has 6 mistakes:\n")
    for word in (
        "reconcile is called with (request)",
        "'confgmaps'",
        "'secets'",
        "concurrency",
        "cleanup",
        "like",
    ):
        assert word in text
    with pytest.raises(ConfigError, match="name must be a name"):
        Operator("Not A Name")
    with pytest.raises(ConfigError, match=r"pods: verbs must be a tuple such as .*, not 'get'"):
        Operator("wrong", uses=[Uses("pods", verbs="get")])
    with pytest.raises(
        ConfigError, match=r"pods: verbs must .*, not 'create'\n.*nodes: verbs must .*, not \(\)"
    ):
        operator.controller("secrets", owns=[Owned("pods", verbs="create")], uses=[Uses("nodes", verbs=())])(
            lambda request: None
        )


POD = Uses("pods")
NODES = Watched("nodes", lambda obj: None)
NO_PREDICATE: Any = GenerationChanged


async def coroutine() -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"owns": "deployments"}, "owns must be a list, not 'deployments': put it in brackets"),
        ({"owns": Owned("pods")}, r"owns must be a list, not Owned\("),
        ({"watches": NODES}, "watches must be a list"),
        ({"watches": ["nodes"]}, r"watches takes Watched objects, such as Watched\('nodes', ...\), not 'nodes'"),
        ({"uses": POD}, "uses must be a list"),
        ({"uses": ["pods"]}, r"uses takes Uses objects, such as Uses\('pods', ...\), not 'pods'"),
        ({"sources": 1}, "sources must be a list, not 1"),
        ({"sources": [1]}, "a source must be an async iterable or a function"),
        ({"rate_limiter": ItemExponentialFailureRateLimiter()}, r"rate_limiter must be a function of \(\)"),
        ({"rate_limiter": coroutine}, "rate_limiter must be a plain function"),
        ({"cache_sync_timeout": -1}, "cache_sync_timeout must be a number of seconds"),
        ({"owns": [Owned("pods", NO_PREDICATE)]}, "GenerationChanged is a class; create one"),
        ({"watches": [Watched("pods", NODES.map_func, NO_PREDICATE)]}, "GenerationChanged is a class; create one"),
    ],
)  # fmt: skip
def test_options_are_checked_when_they_are_declared(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Operator("wrong").controller("configmaps", **options)(lambda request: None)


@pytest.mark.parametrize("decorator", ["controller", "validate", "mutate"])
def test_a_decorator_without_its_resource_is_refused(decorator: str) -> None:
    async def check(request: Any) -> None: ...

    with pytest.raises(ConfigError, match=rf"wrong: {decorator} takes a resource.*@operator\.{decorator}\("):
        getattr(Operator("wrong"), decorator)(check)


class Sites(Reconciler[KubeObject]):
    """A Reconciler that takes a context, which only an Operator passes."""

    def __init__(self, *given: object) -> None:
        self.keys: list[str] = []

    async def reconcile(self, request: Request[KubeObject], context: Context | None = None) -> None:
        assert context is not None
        self.keys.append(request.key)


@pytest.mark.parametrize(
    ("given", "what"), [(Sites, "a class"), (Sites(), "a Reconciler, which only a Controller")]
)
@pytest.mark.parametrize(
    ("decorator", "options"), [("controller", {}), ("task", {}), ("timer", {"every": 1})]
)
def test_a_reconciler_class_is_refused_and_the_error_names_its_method(
    decorator: str, options: dict[str, Any], given: Any, what: str
) -> None:
    with pytest.raises(ConfigError, match=rf"Sites is {what}.*such as Sites\(\).reconcile"):
        getattr(Operator("wrong"), decorator)("configmaps", **options)(given)


async def test_a_method_of_a_reconciler_gets_its_context() -> None:
    operator, sites = Operator("methods", events=False), Sites()
    operator.controller("configmaps")(sites.reconcile)
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: sites.keys == ["default/a"])


@pytest.mark.parametrize(("decorator", "known"), [("controller", "owns"), ("validate", "operations")])
def test_unknown_options_of_a_decorator_are_type_errors(decorator: str, known: str) -> None:
    with pytest.raises(TypeError, match=rf"no option named own; there are: .*{known}"):
        getattr(Operator("wrong"), decorator)("pods", own=["configmaps"])(lambda request: None)


def test_an_operator_uses_a_list() -> None:
    operator: Any = Operator
    for uses in ("pods", POD, ["pods"]):
        with pytest.raises(ConfigError, match=r"Operator\('wrong'\): uses "):
            operator("wrong", uses=uses)


def test_two_controllers_of_one_name_or_finalizer_are_refused() -> None:
    operator = Operator("twice")

    async def cleanup(request: Request[KubeObject]) -> None: ...

    async def reconcile(request: Request[KubeObject]) -> None: ...

    operator.controller("configmaps", finalizer="example.com/one", cleanup=cleanup)(reconcile)
    with pytest.raises(ConfigError) as caught:
        operator.controller("cm", finalizer="example.com/one", cleanup=cleanup)(reconcile)
    assert "has 2 mistakes" in str(caught.value)
    assert "pass name=" in str(caught.value)
    assert "give each its own" in str(caught.value)


def test_rights_follow_from_the_declarations() -> None:
    operator = Operator("rights", uses=[Uses("pods/eviction", ("create",))])

    async def cleanup(request: Request[KubeObject]) -> None: ...

    async def requests(obj: KubeObject) -> None: ...

    @operator.controller(
        "deployments",
        owns=["services", Owned("secrets")],
        watches=[Watched("nodes", requests)],
        uses=[Uses("secrets", ("get",))],
        finalizer="example.com/one",
        cleanup=cleanup,
        status_verbs=("patch",),
    )
    async def reconcile(request: Request[KubeObject]) -> Result | None:
        return None

    assert [str(right) for right in operator.rights()] == [
        "get, list, watch nodes",
        "create pods/eviction",
        "get, list, watch, create, patch secrets",
        "get, list, watch, create, patch services",
        "get, list, watch, patch deployments.apps",
        "update deployments/finalizers.apps",
        "patch deployments/status.apps",
        "get, create, update leases.coordination.k8s.io",
        "create, patch events.events.k8s.io",
    ]
    assert not any(right.plural == "leases" for right in operator.rights(leader_election=False))
    assert [right.plural for right in operator.rights() if not right.namespaced] == ["nodes"]


def check_types(context: Context, operator: Operator) -> None:
    """Not run: what type checkers know."""
    assert_type(context.resource("pods"), CachedResource[KubeObject])
    assert_type(context.uncached("pods"), Resource[KubeObject])

    @operator.controller("pods", predicate=lambda change: change.new is not None)
    async def reconcile(request: Request[KubeObject], context: Context) -> Result | None:
        assert_type(request.object, KubeObject | None)
        return None

    async def unit_test() -> None:
        assert_type(await reconcile(Request("", "a"), context), Result | None)

    async def of_ints(request: Request[int]) -> None: ...

    operator.controller("pods")(of_ints)  # type: ignore[arg-type]
