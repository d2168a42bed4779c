"""``aioinformer manifests`` as a program."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.processes import Ended, started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the command has no event loop

ROOT = Path(__file__).parents[2]

DECLARED = "examples.operator_declared"


async def manifests(*args: str, **variables: str) -> Ended:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", **variables}
    async with started_program(
        sys.executable, "-m", "aioinformer", "manifests", *args, environment=environment
    ) as program:
        return await program.end()


async def test_it_prints_yaml() -> None:
    ended = await manifests(DECLARED, "--name=pages", "--install-namespace=web", "--create-namespace")
    objects = [*yaml.safe_load_all(ended.output)]
    assert (ended.code, ended.errors) == (0, "")
    assert objects[0]["kind"] == "Namespace"
    assert objects[-1]["metadata"] == {
        "name": "pages",
        "namespace": "web",
        "labels": {"app.kubernetes.io/name": "pages"},
    }
    (container,) = objects[-1]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "pages:latest"
    assert container["args"][:2] == ["run", f"{DECLARED}:operator"]


async def test_with_a_folder_it_says_how_to_install_it(tmp_path: Path) -> None:
    ended = await manifests(DECLARED, "-o", str(tmp_path))
    assert (ended.code, ended.output) == (0, "")
    assert ended.errors == f"wrote 9 files; install them by: kubectl apply -k {tmp_path}\n"


KEEPER = (
    "import msgspec\nfrom aioinformer.operator import Operator\n\n"
    "class Settings(msgspec.Struct):\n    host: str\n    user_name: str\n    recheck: float = 20.0\n\n"
    "operator = Operator('cave-keeper', settings=Settings)\n"
)


async def test_it_writes_a_dashboard_beside(tmp_path: Path) -> None:
    file = tmp_path / "pages.json"
    ended = await manifests(DECLARED, "--dashboard", str(file), "--metrics-auth", "--service-monitor")
    assert (ended.code, ended.errors) == (0, f"wrote a Grafana dashboard: {file}\n")
    kinds = {obj["kind"] for obj in yaml.safe_load_all(ended.output)}
    assert {"ServiceMonitor", "Deployment"} <= kinds
    assert json.loads(file.read_text())["panels"]
    ended = await manifests(DECLARED, "--dashboard", str(tmp_path))
    assert ended.code == 1
    assert f"--dashboard: {tmp_path}: Is a directory" in ended.errors


@pytest.mark.parametrize("to_folder", [False, True])
async def test_it_names_the_settings_that_have_no_default(tmp_path: Path, to_folder: bool) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    options = ["-o", str(tmp_path / "out")] if to_folder else []
    ended = await manifests("keeper", *options, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (ended.code, bool(ended.output)) == (0, not to_folder)
    assert ended.errors.endswith(
        "the Deployment needs values, by --set or --set-from, or in your overlay: CAVE_KEEPER_HOST, "
        "CAVE_KEEPER_USER_NAME\n"
    )


async def test_settings_are_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    ended = await manifests(
        "keeper",
        "--set=host=a=b",
        "--set-from=user_name=secret/dns/user",
        "--mount=configmap/zones:/etc/zones",
        PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}",
    )
    assert (ended.code, ended.errors) == (0, "")
    *_, deployment = yaml.safe_load_all(ended.output)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["env"] == [
        {"name": "CAVE_KEEPER_HOST", "value": "a=b"},
        {"name": "CAVE_KEEPER_USER_NAME", "valueFrom": {"secretKeyRef": {"name": "dns", "key": "user"}}},
    ]
    assert container["volumeMounts"][1:] == [
        {"name": "settings-0", "mountPath": "/etc/zones", "readOnly": True}
    ]
    assert pod["volumes"][1:] == [{"name": "settings-0", "configMap": {"name": "zones"}}]


async def test_wrong_settings_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    ended = await manifests(
        "keeper",
        "--set=hots=a",
        "--set=recheck=soon",
        PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}",
    )
    assert (ended.code, ended.output, len(ended.errors.splitlines())) == (1, "", 1)
    assert "cave-keeper has no setting 'hots'; it has host, user_name, recheck" in ended.errors
    assert "the setting recheck is invalid: Expected `float`" in ended.errors


async def test_several_namespaces_have_a_role_each() -> None:
    ended = await manifests(DECLARED, "-n", "a", "-n", "b")
    roles = [
        obj["metadata"]["namespace"] for obj in yaml.safe_load_all(ended.output) if obj["kind"] == "Role"
    ]
    assert (ended.code, roles) == (0, ["a", "b", "websites"]), (
        "its own has Events about its pod and its Lease"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:operator"], "there is no module 'nowhere'"),
        (["aioinformer.operator.manifests:to_yaml"], "declare an Operator"),
        ([DECLARED, "--name=My.Pages"], "not 'My.Pages': pass --name"),
        ([DECLARED, "--namespace=Web"], "--namespace must be a namespace's name, like 'default', not 'Web'"),
        (
            [DECLARED, "--install-namespace="],
            "--install-namespace must be a namespace's name, like 'default'",
        ),
        ([DECLARED, "--image=a b"], "image must be an image's name"),
        ([DECLARED, "--ca-bundle=missing.crt"], "--ca-bundle: missing.crt: No such file"),
        ([DECLARED, "--set=recheck"], "must be FIELD=VALUE, like 'recheck=20', not 'recheck'"),
        ([DECLARED, "--set-from=a=vault/b/c"], "'a=vault/b/c' names a 'vault': use secret or configmap"),
        ([DECLARED, "--mount=secret/a:etc"], "must be secret/NAME:/PATH or configmap/NAME:/PATH, not"),
        ([DECLARED, "--helm=chart", "--install-namespace=a"], "leave out --install-namespace"),
        ([DECLARED, "--helm=chart", "--static-webhooks"], "leave out --static-webhooks"),
    ],
    ids=[
        "module",
        "factory",
        "name",
        "namespace",
        "home",
        "image",
        "authority",
        "setting",
        "source",
        "mount",
        "home of a chart",
        "static webhooks of a chart",
    ],
)
async def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    ended = await manifests(*arguments)
    assert (ended.code, ended.output) == (1, "")
    assert len(ended.errors.splitlines()) == 1
    assert message in ended.errors


@pytest.mark.parametrize(
    "options",
    [
        ("--set", "host=a", "--set", "host=b"),
        ("--set", "host=a", "--set-from", "host=secret/dns/host"),
        ("--set-from", "host=secret/dns/host", "--set-from", "host=secret/dns/host"),
    ],
)
async def test_a_setting_that_is_given_twice_is_an_error(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    ended = await manifests("keeper", *options, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (ended.code, ended.output) == (1, "")
    assert "the setting host is given twice, by --set or --set-from: leave out one" in ended.errors


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--create-namespace", "--create-namespace"),
        ("--no-create-namespace", "--no-create-namespace"),
        ("--install-namespace=web", "--install-namespace"),
    ],
)
async def test_a_chart_names_the_option_that_it_cannot_have(tmp_path: Path, option: str, named: str) -> None:
    ended = await manifests(DECLARED, "--helm", str(tmp_path), option)
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors.endswith(f"which its --create-namespace creates: leave out {named}\n")
