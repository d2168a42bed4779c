"""What an operator needs at its server: rights, definitions, a Lease, webhooks."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from aioinformer import Client, KubeObject
from aioinformer.doctor import Level, examine
from aioinformer.doctor.lease import judge_lease
from aioinformer.doctor.lists import judge_conditions
from aioinformer.doctor.rights import Rule, superfluous_rights
from aioinformer.objects.meta import micro_time
from aioinformer.operator import AdmissionReview, Context, Kind, Manager, Operator, Request, Right
from aioinformer.operator.rights import REVIEW_TOKENS
from aioinformer.operator.webhook_registration import registration_rights
from aioinformer.testing import APIServer
from aioinformer.typed import crd

from .setups import ACCOUNT, OPTIONS, Website, grant, install_definition, needed_rules, operator, require

FAULT, WARNING, OK, NOTE = Level.FAULT, Level.WARNING, Level.OK, Level.NOTE


def rule(*verbs: str, group: str = "", resource: str = "secrets", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs], **more}


async def test_an_operator_that_has_all_it_needs() -> None:
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server, *needed_rules()), operator, OPTIONS)
    assert report.user == ACCOUNT
    assert report.exit_code == 0, report.findings
    require(report, OK, "rights", "has the rights")
    require(report, OK, "rights", "no other rights")
    require(report, OK, "definitions", "as the classes say")
    require(report, NOTE, "lease", "may not read")


async def test_no_rights() -> None:
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server), operator, OPTIONS)
    finding = require(report, FAULT, "rights", ACCOUNT, "websites.example.com", "deployments.apps", "list")
    assert "aioinformer manifests websites:operator" in finding.do


async def test_half_the_rights() -> None:
    rules = [wanted for wanted in needed_rules() if wanted["resources"] != ["deployments"]]
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server, *rules), operator, OPTIONS)
    finding = require(report, FAULT, "rights", "deployments.apps in all namespaces")
    assert "websites.example.com" not in finding.what


async def test_rights_to_review_tokens_are_needed_with_metrics_auth() -> None:
    options = msgspec.structs.replace(OPTIONS, metrics_auth=True)
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server, *needed_rules()), operator, options)
    finding = require(report, FAULT, "rights", "create tokenreviews.authentication", "subjectaccessreviews")
    assert "aioinformer manifests websites:operator --metrics-auth prints the rules" in finding.do


async def test_superfluous_rights() -> None:
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        client = grant(server, *needed_rules(), rule("get", "delete"))
        report = await examine(client, operator, OPTIONS)
    finding = require(report, WARNING, "rights", "delete, get secrets")
    assert report.exit_code == 1
    assert "Uses" in finding.do


async def test_rights_that_options_of_run_need_are_not_superfluous() -> None:
    hooked = Operator("websites", events=False)

    @hooked.validate(Website)
    async def check(review: AdmissionReview[Website]) -> None:
        """Accept all."""

    rights = [
        *registration_rights(hooked, "websites"),
        *hooked.rights(leader_election=True, sharding=True),
        *REVIEW_TOKENS,
    ]
    rules = [
        {
            "apiGroups": [right.group],
            "resources": [right.resource],
            "verbs": [*right.verbs],
            "resourceNames": [*right.names],
        }
        for right in rights
    ]
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server, *rules), hooked, OPTIONS)
    require(report, OK, "rights", "no other rights")


async def test_rights_in_all_namespaces_of_an_operator_for_one() -> None:
    options = msgspec.structs.replace(OPTIONS, namespace="web")
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server, *needed_rules()), operator, options)
    require(report, WARNING, "rights", "in all namespaces", "websites.example.com")


async def test_an_administrator_has_more_rights_and_that_is_no_warning() -> None:
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(Client.from_url(server.url, "admin"), operator, OPTIONS)
    finding = require(report, NOTE, "rights", "everything (cluster-admin)")
    assert "service account" in finding.do
    assert report.exit_code == 0, report.findings


@pytest.mark.parametrize(
    ("granted", "declared", "extra"),
    [
        (rule("get", "list"), Right("", "secrets", True, ("get", "list")), []),
        (rule("get", "list"), Right("", "secrets", True, ("get",)), ["list secrets"]),
        (
            rule("get", resource="secrets/status"),
            Right("", "secrets", True, ("get",)),
            ["get secrets/status"],
        ),
        (rule("get", group="apps"), Right("", "secrets", True, ("get",)), ["get secrets.apps"]),
        (rule("get"), Right("", "secrets", True, ("get",), names=("a",)), ["get secrets"]),
        (rule("get", resourceNames=["a"]), Right("", "secrets", True, ("get",), names=("a",)), []),
        (
            rule("get", resourceNames=["b"]),
            Right("", "secrets", True, ("get",), names=("a",)),
            ["get secrets b"],
        ),
        (rule("create"), Right("", "secrets", True, ("create",), names=("a",)), []),
        (rule("*"), Right("", "secrets", True, ("get",)), ["* secrets"]),
        (rule("create", group="authorization.k8s.io", resource="selfsubjectaccessreviews"), None, []),
    ],
)
def test_rules_beyond_the_declared_rights(
    granted: dict[str, Any], declared: Right | None, extra: list[str]
) -> None:
    rules = [msgspec.convert(granted, Rule)]
    assert superfluous_rights(rules, [declared] if declared else []) == extra


async def test_a_definition_that_is_missing() -> None:
    async with APIServer() as server:
        report = await examine(Client.from_url(server.url), operator, OPTIONS)
    finding = require(report, FAULT, "definitions", "has no websites.example.com")
    assert "aioinformer manifests" in finding.do


@pytest.mark.parametrize("may_read", [True, False])
async def test_a_definition_of_another_version_of_the_class(may_read: bool) -> None:
    versions = crd(Website)["spec"]["versions"]
    spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["colour"] = {"type": "string"}
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server, versions=versions)
        client = Client.from_url(server.url, "admin") if may_read else grant(server, *needed_rules())
        report = await examine(client, operator, OPTIONS)
    require(report, WARNING, "definitions", "differs from the class Website", "spec.colour: removed")


@pytest.mark.parametrize("may_read", [True, False])
async def test_a_definition_without_the_version_of_the_class(may_read: bool) -> None:
    versions = crd(Website)["spec"]["versions"]
    versions[0]["name"] = "v1beta1"
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server, versions=versions)
        client = Client.from_url(server.url, "admin") if may_read else grant(server, *needed_rules())
        report = await examine(client, operator, OPTIONS)
    require(report, FAULT, "definitions", "no websites.example.com in example.com/v1", "example.com/v1beta1")


async def test_objects_that_are_not_ready_are_counted_and_named() -> None:
    versions = crd(Website)["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]
    schema["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with APIServer() as server:
        install_definition(server, versions=versions)
        for number in range(6):
            website = {"metadata": {"name": f"site-{number}"}, "spec": {}}
            server.create("example.com/v1", "websites", website)
        for number in range(5):
            false = {"type": "Ready", "status": "False", "reason": "Failed", "message": "no\nquota " * 1000}
            others = [{"type": "Synced", "status": "False"}] if number else []
            conditions = {"status": {"conditions": [*others, false]}}
            server.patch("example.com/v1", "websites", f"site-{number}", conditions)
        report = await examine(Client.from_url(server.url), operator, OPTIONS)
    finding = require(
        report, WARNING, "objects", "websites.example.com: 5 objects are not ready: default/site-0: Failed"
    )
    assert "; and 2 more" in finding.what
    assert "\n" not in finding.what
    assert len(finding.what) < 1200


async def test_the_conditions_of_other_kinds_do_not_count() -> None:
    false = {"conditions": [{"type": "Ready", "status": "False"}]}
    async with APIServer() as server:
        install_definition(server)
        labels = {"app": "one"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        server.create("apps/v1", "deployments", {"metadata": {"name": "one"}, "spec": spec})
        server.patch("apps/v1", "deployments", "one", {"status": false})
        report = await examine(Client.from_url(server.url), operator, OPTIONS)
    require(report, OK, "lists", "deployments.apps: 1 objects")
    assert [finding for finding in report.findings if finding.check == "objects"] == []


def test_statuses_of_any_form_are_read() -> None:
    meta = {"name": "a"}
    forms: list[Any] = [
        None,
        3,
        {},
        {"conditions": "no"},
        {"conditions": [3]},
        {"conditions": [{"type": "Ready"}]},
    ]
    items = [msgspec.Raw(msgspec.json.encode({"metadata": meta, "status": form})) for form in forms]
    assert [*judge_conditions("sites", [*items, msgspec.Raw(b"{}")], has_more=False)] == []
    false = {"conditions": [{"type": "Ready", "status": "False"}]}
    items = [msgspec.Raw(msgspec.json.encode({"metadata": meta, "status": false}))]
    (finding,) = judge_conditions("sites", items, has_more=True)
    assert "1 object is not ready among the first 500: a: " in finding.what


def lease(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "websites", "namespace": "default"}, "spec": spec}


async def test_a_lease_with_a_dead_holder() -> None:
    renewed = micro_time(int((time.time() - 300.0) * 1e6))
    async with APIServer() as server:
        install_definition(server)
        spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": renewed}
        server.create("coordination.k8s.io/v1", "leases", lease(**spec))
        report = await examine(Client.from_url(server.url), operator, OPTIONS)
    finding = require(report, FAULT, "lease", "pod-1 holds the Lease default/websites", "5 min ago")
    assert "dead" in finding.do


def test_a_lease_that_is_renewed_or_released() -> None:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    now = 1767225600.0
    assert judge_lease("web/a", spec, now + 20).level is OK
    assert judge_lease("web/a", spec, now - 20).level is OK  # its clock is ahead
    assert judge_lease("web/a", spec, now + 31).level is FAULT
    assert judge_lease("web/a", {**spec, "holderIdentity": None}, now).level is WARNING
    assert judge_lease("web/a", {}, now).level is WARNING
    assert judge_lease("web/a", spec, now - 3600).level is WARNING  # or a dead holder had a wrong clock
    assert judge_lease("web/a", {**spec, "renewTime": "yesterday"}, now).level is WARNING


async def test_a_lease_that_is_missing() -> None:
    async with APIServer() as server:
        install_definition(server)
        single = await examine(Client.from_url(server.url), operator, OPTIONS)
        elected = msgspec.structs.replace(OPTIONS, leader_elect=True)
        several = await examine(Client.from_url(server.url), operator, elected)
    require(single, NOTE, "lease", "without --leader-elect")
    require(several, WARNING, "lease", "no replica has led yet")


async def test_webhooks_that_are_not_registered() -> None:
    hooked = Operator("websites")

    @hooked.validate(Website)
    async def check(review: AdmissionReview[Website]) -> None:
        """Accept all."""

    async with APIServer() as server:
        install_definition(server)
        report = await examine(Client.from_url(server.url), hooked, OPTIONS)
    require(report, FAULT, "webhooks", "no ValidatingWebhookConfiguration websites")


async def test_a_function_that_makes_a_manager() -> None:
    def make(client: Client) -> Manager:
        return Manager(client)

    def broken(client: Client) -> Manager:
        raise RuntimeError("no password")

    async with APIServer() as server:
        report = await examine(Client.from_url(server.url), make, OPTIONS)
        failed = await examine(Client.from_url(server.url), broken, OPTIONS)
    assert FAULT not in {finding.level for finding in report.findings}
    require(failed, FAULT, "operator", "no password")
    require(failed, OK, "watches", "bookmarks come")  # the cluster is checked nevertheless


async def test_settings_that_are_missing() -> None:
    class Settings(msgspec.Struct):
        token: str

    needing = Operator("keeper", settings=Settings)

    @needing.controller(Website)
    async def reconcile(request: Request[Website], context: Context) -> None:
        context.get(Settings)

    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        report = await examine(grant(server), needing, OPTIONS)
        client = Client.from_url(server.url, "account")
        given = await examine(client, needing, msgspec.structs.replace(OPTIONS, settings=Settings("x")))
    require(report, NOTE, "operator", "set KEEPER_TOKEN, which has no default")
    assert {finding.check for finding in given.findings} == {finding.check for finding in report.findings} - {
        "operator"
    }
    require(report, FAULT, "rights", "list, watch websites.example.com")
    require(report, OK, "definitions", "as the classes say")
    require(report, NOTE, "lease", "default/keeper")
    require(report, NOTE, "watches", "websites.example.com may not be watched by this user")


@pytest.mark.parametrize("is_installed", [False, True])
async def test_an_optional_collection_may_be_missing(is_installed: bool) -> None:
    tolerant = Operator("keeper", events=False)

    @tolerant.controller(Kind(Website, optional=True))
    async def reconcile(request: Request[Website]) -> None: ...

    async with APIServer() as server:
        if is_installed:
            install_definition(server)
        report = await examine(Client.from_url(server.url), tolerant, OPTIONS)
    assert FAULT not in {finding.level for finding in report.findings}, report.findings
    if is_installed:
        require(report, OK, "definitions", "all collections")
    else:
        require(
            report, NOTE, "definitions", "has no websites.example.com", "it is optional, and counts as empty"
        )
        require(report, NOTE, "watches", "websites.example.com does not exist")


async def test_a_collection_that_another_controller_requires_is_not_optional() -> None:
    strict = Operator("keeper", events=False)

    @strict.controller(Kind(Website, optional=True))
    async def reconcile(request: Request[Website]) -> None: ...

    @strict.controller(Kind("websites.example.com", namespaced=True), name="all")
    async def reconcile_all(request: Request[KubeObject]) -> None: ...

    async with APIServer() as server:
        report = await examine(Client.from_url(server.url), strict, OPTIONS)
    require(report, FAULT, "operator", "websites.example.com")
    require(report, NOTE, "others", "rights", "lease", "the operator cannot be made")


async def test_an_installation_may_name_its_lease() -> None:
    spec = {
        "holderIdentity": "other-1",
        "leaseDurationSeconds": 15,
        "renewTime": micro_time(int(time.time() * 1e6)),
    }
    async with APIServer() as server:
        install_definition(server)
        server.create("coordination.k8s.io/v1", "leases", {"metadata": {"name": "other"}, "spec": spec})
        options = msgspec.structs.replace(OPTIONS, leader_elect=True, lease_name="other")
        report = await examine(Client.from_url(server.url), operator, options)
        default = await examine(
            Client.from_url(server.url), operator, msgspec.structs.replace(options, lease_name="")
        )
    require(report, OK, "lease", "other-1 holds the Lease default/other")
    finding = require(default, WARNING, "lease", "there is no Lease default/websites")
    assert "--lease-name" in finding.do


async def test_the_rights_of_an_installation_are_printed_with_its_name() -> None:
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server)
        options = msgspec.structs.replace(OPTIONS, leader_elect=True, lease_name="other")
        report = await examine(grant(server, *needed_rules()), operator, options)
    finding = require(report, FAULT, "rights", "get, create, update leases.coordination.k8s.io")
    assert "aioinformer manifests websites:operator --replicas 2 --name other prints" in finding.do
