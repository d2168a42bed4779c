"""Charts: what helm renders is what ``aioinformer manifests`` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from aioinformer.operator import AdmissionReview, CustomResource, Operator, Owned, Request, Uses
from aioinformer.operator.manifests import FromKey, Installation, Mount, manifests, write_chart

from .charts import Helm, HelmError, Object

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])


class Farm(CustomResource, group="example.com", version="v1"):
    """A farm with a template: {{ .Values.none }} and {{- end }}, 'quoted' and "quoted".

    It has a second paragraph with @@name@@.
    """

    spec: dict[str, str]


class Settings(msgspec.Struct):
    host: str
    token: str = ""
    retries: int = 3


operator = Operator("farms", uses=[Uses("nodes", ("get",))], settings=Settings)


@operator.controller(Farm, owns=["configmaps", Owned("pods", verbs=("create", "delete"))])
async def reconcile(request: Request[Farm]) -> None: ...


@operator.controller("namespaces")
async def greet(request: Request[Any]) -> None: ...


@operator.validate(Farm)
def check(review: AdmissionReview[Farm]) -> None: ...


GIVEN = {"host": "10.0.0.7", "token": FromKey("secret", "dns", "token"), "retries": "10000000"}


def installation(**options: Any) -> Installation:
    given = {
        "target": "farms:operator",
        "name": "farms",
        "image": "example.com/farms:1.2.3",
        "settings": GIVEN,
    }
    return Installation(**{**given, "mounts": (Mount("configmap", "zones", "/etc/zones"),), **options})


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    write_chart(operator, installation(pod_monitor=True), tmp_path / "chart")
    return tmp_path / "chart"


def by_name(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Return objects by kind, namespace and name, without what a chart has for each number of replicas."""
    for obj in objects:
        if obj["kind"] == "Deployment":
            obj["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
        if obj["kind"] == "CustomResourceDefinition":
            obj["metadata"].pop("annotations", None)
    keys = [(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in objects]
    assert len({*keys}) == len(keys)
    return dict(zip(keys, objects, strict=True))


@pytest.mark.parametrize("shards", [0, 64])
@pytest.mark.parametrize("replicas", [0, 1, 2])
@pytest.mark.parametrize("namespaces", [(), ("a",), ("a", "b", "123")])
async def test_helm_renders_what_manifests_prints(
    helm: Helm, tmp_path: Path, replicas: int, shards: int, namespaces: tuple[str, ...]
) -> None:
    options: dict[str, Any] = {"pod_monitor": True, "alerts": True, "shards": shards}
    chart = tmp_path / "chart"
    write_chart(operator, installation(**options), chart)
    values = [f"--set=replicas={replicas}", "--set=image=example.com/farms:2"]
    if namespaces:
        values.append(f"--set-json=namespaces={msgspec.json.encode(namespaces).decode()}")
    installed = installation(
        name="pages",
        namespace="home",
        watched=namespaces or None,
        replicas=replicas,
        image="example.com/farms:2",
        **options,
        settings=dict(sorted(GIVEN.items())),
    )
    rendered = by_name(await helm.render("pages", chart, *values))
    printed = by_name(manifests(operator, installed))
    assert rendered.keys() == printed.keys()
    for key, obj in rendered.items():
        assert obj == printed[key]


async def test_a_chart_has_the_rights_for_metrics_that_ask_for_a_token(helm: Helm, tmp_path: Path) -> None:
    guarded = {"metrics_auth": True, "service_monitor": True}
    write_chart(operator, installation(**guarded), tmp_path / "chart")
    rendered = by_name(await helm.render("pages", tmp_path / "chart", namespace="home"))
    printed = by_name(manifests(operator, installation(name="pages", namespace="home", **guarded)))
    for kind, name in (
        ("ClusterRole", "pages-metrics-auth"), ("ClusterRoleBinding", "pages-metrics-auth"),
        ("ClusterRole", "pages-metrics-reader"), ("ServiceMonitor", "pages"),
    ):  # fmt: skip
        key = kind, "home" if kind == "ServiceMonitor" else "", name
        assert rendered[key] == printed[key]


@pytest.mark.parametrize("name", ["123", "true", "1e3"])
async def test_releases_and_namespaces_may_look_like_numbers(helm: Helm, chart: Path, name: str) -> None:
    for obj in await helm.render(name, chart, namespace="456"):
        assert isinstance(obj["metadata"]["name"], str)
        assert obj["metadata"].get("namespace", "456") == "456"


async def test_the_chart_passes_lint_and_has_the_version_of_the_image(helm: Helm, chart: Path) -> None:
    assert "0 chart(s) failed" in await helm.run("lint", "--strict", chart)
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert (described["version"], described["appVersion"]) == ("1.2.3", "1.2.3")


async def test_definitions_stay_when_a_release_is_uninstalled(helm: Helm, chart: Path) -> None:
    (definition,) = [
        obj for obj in await helm.render("farms", chart) if obj["kind"] == "CustomResourceDefinition"
    ]
    assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "{{ .Values.none }} and {{- end }}, 'quoted' and \"quoted\"" in schema["description"]
    assert "@@name@@" in schema["description"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("replicas=two", "at '/replicas': got string, want integer"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("settings.hots=a", "additional properties 'hots' not allowed"),
        ("settings.retries=3", "at '/settings/retries'"),
        ("settings.token.secretRef.name=a", "at '/settings/token'"),
        ("namespaces={A}", "at '/namespaces/0'"),
        ("image=", "at '/image'"),
        ("settings.host=null", "missing property 'host'"),
    ],
)
async def test_helm_names_wrong_values(helm: Helm, chart: Path, value: str, message: str) -> None:
    with pytest.raises(HelmError) as raised:
        await helm.render("farms", chart, f"--set={value}")
    assert message in str(raised.value)


async def test_texts_of_values_cannot_change_the_objects(helm: Helm, chart: Path) -> None:
    hostile = 'a"\n        command: [sh] # {{ .Release.Name }}'
    values = ["--set-json", f"image={msgspec.json.encode(hostile).decode()}"]
    values += ["--set-json", f"settings.host={msgspec.json.encode(hostile).decode()}"]
    (deployment,) = [obj for obj in await helm.render("farms", chart, *values) if obj["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"][0]["value"]) == (hostile, hostile)
    assert "command" not in container


async def test_a_later_call_replaces_the_chart(chart: Path) -> None:
    (chart / "templates" / "mine.yaml").write_text("a: 1\n")
    before = files(chart)
    write_chart(operator, installation(network_policy=False), chart)
    assert before - files(chart) == {"templates/networkpolicy.yaml", "templates/podmonitor.yaml"}
    assert files(chart) <= before


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
