"""What installs an operator."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from aioinformer import ConfigError
from aioinformer.objects.kube_object import KubeObject
from aioinformer.operator import AdmissionReview, CustomResource, Kind, Operator, Owned, Request, Uses
from aioinformer.operator.manifests import Installation, Mount, manifests, rules, to_yaml, write_kustomization

Object = dict[str, Any]


class Site(CustomResource, group="example.com", version="v1"):
    """A site.

    With a second paragraph: "it's quoted".
    """

    spec: dict[str, str]


class SiteV2(CustomResource, group="example.com", version="v2", kind="Site", plural="sites"):
    spec: dict[str, str]


def declare(*resources: Any, **options: Any) -> Operator:
    operator = Operator("sites", **options)
    for resource in resources:

        @operator.controller(resource, name=getattr(resource, "__name__", resource))
        async def reconcile(request: Request[Any]) -> None: ...

    return operator


def installation(**options: Any) -> Installation:
    return Installation(**{"target": "sites:operator", "name": "sites", "image": "sites:1", **options})


def kinds(objects: list[Object]) -> list[str]:
    return [f"{obj['kind']} {obj['metadata'].get('namespace', '')}".strip() for obj in objects]


def test_an_operator_of_all_namespaces_has_a_namespace_and_a_cluster_role() -> None:
    assert kinds(manifests(declare(Site), installation())) == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount sites",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "Service sites",
        "NetworkPolicy sites",
        "Deployment sites",
    ]


def test_an_operator_of_one_namespace_has_a_role_there() -> None:
    operator = declare("configmaps", uses=[Uses("nodes", ("get",))])
    objects = manifests(operator, installation(watched="a", namespace="b"))
    assert kinds(objects) == [
        "ServiceAccount b",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role a",
        "RoleBinding a",
        "Role b",
        "RoleBinding b",
        "Service b",
        "NetworkPolicy b",
        "Deployment b",
    ]
    assert objects[1]["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    assert objects[4]["subjects"] == [{"kind": "ServiceAccount", "name": "sites", "namespace": "b"}]
    assert "--namespace=a" in container(objects)["args"]


def test_an_operator_of_several_namespaces_has_a_role_in_each_and_runs_in_its_own() -> None:
    objects = manifests(declare("configmaps"), installation(watched=("a", "b", "a")))
    assert kinds(objects) == [
        "Namespace",
        "ServiceAccount sites",
        "Role a",
        "RoleBinding a",
        "Role b",
        "RoleBinding b",
        "Role sites",
        "RoleBinding sites",
        "Service sites",
        "NetworkPolicy sites",
        "Deployment sites",
    ]
    assert objects[2]["rules"] == objects[4]["rules"]
    assert container(objects)["args"][2:4] == ["--namespace=a", "--namespace=b"]


def test_a_namespace_that_is_watched_exists_already() -> None:
    objects = manifests(declare("configmaps"), installation(watched=("a", "sites")))
    assert kinds(objects)[0] == "ServiceAccount sites"


def test_a_discovered_cluster_scoped_resource_is_in_the_cluster_role_of_one_namespace() -> None:
    class Cave(CustomResource, group="example.com", version="v1", namespaced=False):
        spec: int = 0

    for named in (Kind("caves.example.com", namespaced=False), Cave):
        operator = declare(
            "configmaps", events=False, uses=[Uses(named), Uses("caves.example.com", ("delete",))]
        )
        roles = {
            manifest["kind"]: manifest
            for manifest in manifests(operator, installation(watched="a"))
            if manifest["metadata"]["name"] == "sites"
        }
        (rule,) = roles["ClusterRole"]["rules"]
        assert (rule["resources"], rule["verbs"]) == (["caves"], ["get", "list", "watch", "delete"])
        assert [rule["resources"] for rule in roles["Role"]["rules"]] == [["configmaps"]]


def test_events_about_cluster_scoped_objects_are_in_default() -> None:
    objects = manifests(declare("nodes"), installation(watched="a"))
    assert kinds(objects)[3:7] == ["Role a", "RoleBinding a", "Role default", "RoleBinding default"]
    assert objects[5]["rules"] == [
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}
    ]
    silent = manifests(declare("nodes", events=False), installation(watched="a"))
    assert kinds(silent)[1:3] == ["ClusterRole", "ClusterRoleBinding"]
    assert not [kind for kind in kinds(silent) if kind.startswith("Role")]


@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_that_share_the_objects_elect_no_leader(replicas: int) -> None:
    objects = manifests(declare("configmaps"), installation(replicas=replicas, shards=64))
    (role,) = [obj for obj in objects if obj["kind"] == "Role"]
    assert (role["metadata"]["name"], role["metadata"]["namespace"]) == ("sites-sharding", "sites")
    assert role["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "create", "update", "delete"],
        }
    ]
    arguments = container(objects)["args"]
    assert "--shards=64" in arguments
    assert "--leader-elect" not in arguments
    spec = objects[-1]["spec"]
    assert spec["strategy"]["type"] == "RollingUpdate"
    alone = manifests(declare("configmaps"), installation())[-1]["spec"]["template"]["spec"]
    longer = (
        spec["template"]["spec"]["terminationGracePeriodSeconds"] - alone["terminationGracePeriodSeconds"]
    )
    assert longer == 10, "for the slots"


@pytest.mark.parametrize("options", [{"replicas": 2}, {"shards": 8}])
def test_installations_of_one_operator_have_leases_of_their_own(options: Any) -> None:
    own = container(manifests(declare("configmaps"), installation(**options)))["args"]
    other = container(manifests(declare("configmaps"), installation(name="other", **options)))["args"]
    assert [argument for argument in other if argument not in own] == ["--lease-name=other"]
    alone = container(manifests(declare("configmaps"), installation(name="other")))["args"]
    assert "--lease-name=other" not in alone


@pytest.mark.parametrize(
    ("paths", "path"), [(["/etc/dns", "/etc/dns/"], "/etc/dns"), (["/tmp"], "/tmp"), (["/certs"], "/certs")]
)
def test_two_volumes_at_one_path_are_refused(paths: list[str], path: str) -> None:
    mounts = tuple(Mount("secret", "dns", path) for path in paths)
    with pytest.raises(
        ConfigError, match=f"two volumes would be mounted at {path}: give each --mount another"
    ):
        manifests(make_guarded(), installation(mounts=mounts))


@pytest.mark.parametrize("name", [None, 3, ["sites"]])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="name must be a string, like 'websites'"):
        installation(name=name)


@pytest.mark.parametrize("shards", [-1, 1025, True])
def test_numbers_of_slots_that_no_sharding_has_are_refused(shards: int) -> None:
    with pytest.raises(ConfigError, match="shards must be"):
        installation(shards=shards)


def test_several_replicas_elect_a_leader_with_rights_on_its_lease_alone() -> None:
    objects = manifests(declare("configmaps"), installation(replicas=2, name="other"))
    (role,) = [obj for obj in objects if obj["kind"] == "Role"]
    assert role["metadata"]["name"] == "other-leader-election"
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [
        {**lease, "verbs": ["create"]},
        {**lease, "verbs": ["get", "update"], "resourceNames": ["other"]},
    ]
    assert "--leader-elect" in container(objects)["args"]
    assert objects[-1]["spec"]["strategy"]["type"] == "RollingUpdate"


def test_a_single_replica_ends_before_the_next_one_starts() -> None:
    objects = manifests(declare("configmaps"), installation())
    assert "--leader-elect" not in container(objects)["args"]
    assert objects[-1]["spec"]["strategy"] == {"type": "Recreate"}
    assert not [obj for obj in objects if obj["kind"] == "Role"]


def test_resources_of_a_group_with_equal_verbs_share_a_rule() -> None:
    operator = Operator("sites", events=False)

    @operator.controller("configmaps", owns=[Owned("pods", verbs=["create"]), "secrets", "services"])
    async def reconcile(request: Request[KubeObject]) -> None: ...

    assert rules(operator.rights(leader_election=False)) == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps/finalizers"], "verbs": ["update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create"]},
        {
            "apiGroups": [""],
            "resources": ["secrets", "services"],
            "verbs": ["get", "list", "watch", "create", "patch"],
        },
    ]


def test_rights_of_named_objects_name_them() -> None:
    operator = Operator(
        "sites", events=False, uses=[Uses("secrets", ("get", "create", "patch"), names=["dns", "tls"])]
    )
    settings = Kind("configmaps", field_selector="metadata.name=settings,metadata.namespace!=kube-system")

    @operator.controller(settings, finalizer="example.com/a", cleanup=lambda request: None)
    async def reconcile(request: Request[KubeObject]) -> None: ...

    assert rules(operator.rights(leader_election=False)) == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["settings"],
            "verbs": ["get", "list", "watch", "patch"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["dns", "tls"],
            "verbs": ["get", "patch"],
        },
    ]


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        (Uses("secrets", names=["dns"]), r"names do not go with list and watch: .*metadata.name=dns"),
        (Uses("secrets", ("get",), names="dns"), "names must be a list"),
        (Uses("secrets", ("get",), names=[1]), "names must be a string"),  # type: ignore[list-item]
    ],
)
def test_names_that_limit_nothing_are_refused(uses: Uses, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Operator("sites", uses=[uses])


def test_versions_of_a_kind_are_one_definition() -> None:
    objects = manifests(declare(Site, SiteV2), installation())
    (definition,) = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1", "v2"]


def test_yaml_has_no_aliases_and_reads_back() -> None:
    objects = manifests(declare(Site, SiteV2), installation(replicas=2))
    text = to_yaml(objects)
    assert "&id" not in text
    assert [*yaml.safe_load_all(text)] == objects
    assert 'description: |-\n          A site.\n\n          With a second paragraph: "it\'s quoted".' in text
    assert "verbs: [get, list, watch]" in text


def test_all_mistakes_of_an_installation_are_one_error() -> None:
    with pytest.raises(ConfigError) as raised:
        installation(name="my.sites", image="", watched="A", replicas=-1)
    message = str(raised.value)
    for part in ("'my.sites': pass --name", "image must be", "watched must be", "replicas must be"):
        assert part in message


class TestKustomization:
    def test_each_kind_has_a_file(self, tmp_path: Path) -> None:
        objects = manifests(declare(Site), installation())
        write_kustomization(objects, tmp_path / "deploy" / "base")
        written = tmp_path / "deploy" / "base"
        kustomization = yaml.safe_load((written / "kustomization.yaml").read_text())
        assert kustomization["resources"] == list(
            dict.fromkeys(f"{obj['kind'].lower()}.yaml" for obj in objects)
        )
        read = [
            obj
            for name in kustomization["resources"]
            for obj in yaml.safe_load_all((written / name).read_text())
        ]
        assert sorted(read, key=str) == sorted(objects, key=str)

    def test_files_of_an_earlier_call_go(self, tmp_path: Path) -> None:
        (tmp_path / "mine.yaml").write_text("a: 1\n")
        write_kustomization(manifests(declare(Site), installation()), tmp_path)
        write_kustomization(manifests(declare("configmaps"), installation(watched="a")), tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "deployment.yaml",
            "kustomization.yaml",
            "mine.yaml",
            "networkpolicy.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "service.yaml",
            "serviceaccount.yaml",
        ]

    def test_files_of_others_are_not_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / "kustomization.yaml").write_text("resources: []\n")
        with pytest.raises(ConfigError, match=r"has a kustomization.yaml that aioinformer manifests did not"):
            write_kustomization(manifests(declare(Site), installation()), tmp_path)
        assert (tmp_path / "kustomization.yaml").read_text() == "resources: []\n"
        assert len([*tmp_path.iterdir()]) == 1

    def test_a_folder_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigError, match=r"cannot write the manifests into .*file: "):
            write_kustomization(manifests(declare(Site), installation()), tmp_path / "file")


def container(objects: list[Object]) -> Object:
    (only,) = objects[-1]["spec"]["template"]["spec"]["containers"]
    return only  # type: ignore[no-any-return]


def make_guarded() -> Operator:
    operator = declare(Site)

    @operator.validate(Site)
    def check(review: AdmissionReview[Site]) -> None: ...

    return operator


def test_webhooks_get_a_service_certificates_and_configurations() -> None:
    objects = manifests(make_guarded(), installation())
    assert kinds(objects)[10:] == [
        "Service sites",
        "Service sites",
        "NetworkPolicy sites",
        "Issuer sites",
        "Certificate sites",
        "Issuer sites",
        "Certificate sites",
        "ValidatingWebhookConfiguration",
        "Deployment sites",
    ]
    service, running = objects[11], container(objects)
    assert service["metadata"]["name"] == "sites-webhook"
    (port,) = service["spec"]["ports"]
    (listening,) = [
        container_port for container_port in running["ports"] if container_port["name"] == port["targetPort"]
    ]
    assert f"--webhook-port={listening['containerPort']}" in running["args"]


def test_the_operator_registers_its_webhooks_and_the_manifests_only_have_the_configurations() -> None:
    objects = manifests(make_guarded(), installation(name="other"))
    configuration = objects[-2]
    assert configuration == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "other", "labels": {"app.kubernetes.io/name": "other"}},
    }
    assert container(objects)["args"][-3:] == [
        "--webhook-service=other/other-webhook",
        "--webhook-ca=/certs/ca.crt",
        "--webhook-configuration=other",
    ]
    (role,) = [
        obj for obj in objects if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == "other-webhook"
    ]
    assert role["rules"] == [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": ["other"],
            "verbs": ["patch"],
        }
    ]


def test_static_webhooks_are_registered_by_the_manifests_and_need_no_rights() -> None:
    objects = manifests(make_guarded(), installation(static_webhooks=True))
    configuration = objects[-2]
    (webhook,) = configuration["webhooks"]
    assert webhook["clientConfig"]["service"]["port"] == 443
    assert webhook["clientConfig"]["service"]["name"] == "sites-webhook"
    assert configuration["metadata"] == {
        "name": "sites",
        "annotations": {"cert-manager.io/inject-ca-from": "sites/sites-webhook"},
        "labels": {"app.kubernetes.io/name": "sites"},
    }
    assert not [argument for argument in container(objects)["args"] if "--webhook-service" in argument]
    without = manifests(declare(Site), installation())
    assert [obj["rules"] for obj in objects if "rules" in obj] == [
        obj["rules"] for obj in without if "rules" in obj
    ]


def test_a_renewed_certificate_has_the_authority_of_the_older_one() -> None:
    objects = manifests(make_guarded(), installation())
    certificates = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "Certificate"}
    issuers = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "Issuer"}
    served, authority = certificates["sites-webhook"], certificates["sites-webhook-ca"]
    assert served["dnsNames"] == ["sites-webhook.sites.svc"]
    assert issuers[served["issuerRef"]["name"]] == {"ca": {"secretName": authority["secretName"]}}
    assert (authority["isCA"], issuers[authority["issuerRef"]["name"]]) == (True, {"selfSigned": {}})


def test_with_an_authority_the_secret_is_the_users() -> None:
    pem = b"-----BEGIN CERTIFICATE-----"
    objects = manifests(make_guarded(), installation(ca_bundle=pem))
    assert "Certificate sites" not in kinds(objects)
    (authority,) = [obj for obj in objects if obj["kind"] == "ConfigMap"]
    assert authority["data"]["ca.crt"].encode() == pem
    volumes = objects[-1]["spec"]["template"]["spec"]["volumes"]
    assert volumes[1]["secret"] == {"secretName": "sites-webhook"}
    assert volumes[2]["configMap"] == {"name": authority["metadata"]["name"]}
    mounted = {mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"]}
    assert f"--webhook-ca={mounted[volumes[2]['name']]}/ca.crt" in container(objects)["args"]


def test_with_an_authority_static_webhooks_have_it() -> None:
    pem = b"-----BEGIN CERTIFICATE-----"
    objects = manifests(make_guarded(), installation(ca_bundle=pem, static_webhooks=True))
    (webhook,) = objects[-2]["webhooks"]
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == pem
    assert "annotations" not in objects[-2]["metadata"]
    assert "ConfigMap sites" not in kinds(objects)


def test_webhooks_of_some_namespaces_are_called_for_these_alone() -> None:
    objects = manifests(make_guarded(), installation(watched=("a", "c"), namespace="b", static_webhooks=True))
    (webhook,) = objects[-2]["webhooks"]
    assert webhook["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["b"]},
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "c"]},
    ]


def test_webhooks_that_would_never_be_called_are_refused() -> None:
    with pytest.raises(ConfigError, match="pass another --install-namespace"):
        manifests(make_guarded(), installation(watched="a"))


def test_an_authority_without_webhooks_is_refused() -> None:
    with pytest.raises(ConfigError, match="sites has no webhooks: leave out --ca-bundle"):
        manifests(declare(Site), installation(ca_bundle=b"-----BEGIN CERTIFICATE-----"))


def test_an_authority_must_be_a_certificate() -> None:
    with pytest.raises(ConfigError, match="ca_bundle must be certificates in PEM"):
        manifests(make_guarded(), installation(ca_bundle=b"-----BEGIN PRIVATE KEY-----"))
