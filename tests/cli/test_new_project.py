"""The files of a new operator's project."""

from __future__ import annotations

import logging
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from aioinformer import ConfigError, __version__
from aioinformer.cli.app import app
from aioinformer.cli.init_command import init_command
from aioinformer.cli.new_project import NewProject
from aioinformer.client import health


@pytest.mark.parametrize(
    ("name", "kind", "plural"),
    [
        ("websites", "Website", "websites"),
        ("website-operator", "Website", "websites"),
        ("storage-policies", "StoragePolicy", "storagepolicies"),
        ("boxes", "Box", "boxes"),
        ("bus", "Bus", "buses"),
        ("series", "Series", "serieses"),
        ("gas-operator", "Gas", "gases"),
        ("postgres-operator", "Postgres", "postgreses"),
        ("dns", "Dns", "dnses"),
        ("caches", "Cache", "caches"),
        ("branches", "Branch", "branches"),
        ("databases", "Database", "databases"),
        ("cookies", "Cookie", "cookies"),
        ("addresses", "Address", "addresses"),
    ],
)
def test_the_kind_follows_from_the_name(name: str, kind: str, plural: str) -> None:
    project = NewProject(name=name)
    assert (project.kind, project.plural) == (kind, plural)


def test_dashes_become_underscores_in_the_package(tmp_path: Path) -> None:
    NewProject(name="big-caves").write(tmp_path / "big-caves")
    assert (tmp_path / "big-caves" / "big_caves" / "main.py").is_file()


def texts_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.mark.parametrize("chosen", [False, True], ids=["no-options", "all-options"])
def test_no_placeholder_remains(tmp_path: Path, chosen: bool) -> None:
    project = NewProject(
        name="websites", group="web.example.org", kind="Site", webhooks=chosen, helm=chosen, pydantic=chosen
    )
    project.write(tmp_path)
    texts = texts_of(tmp_path)
    assert len(texts) > 10
    assert [path for path, text in texts.items() if "%" in text] == []
    assert 'group="web.example.org"' in texts["websites/resources.py"]
    assert "kind: Site\n" in texts["example.yaml"]


def test_an_empty_folder_is_used_and_another_is_refused(tmp_path: Path) -> None:
    project = NewProject(name="websites")
    project.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(
        ConfigError, match="exists and is not an empty folder: choose another name, or remove it"
    ):
        project.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (None, ""),
        (
            '{"url": "file:///home/ann/my%20code", "dir_info": {"editable": true}}',
            "file:///home/ann/my%20code",
        ),
        ('{"url": "https://example.com/aioinformer.git", "vcs_info": {"vcs": "git"}}', ""),
    ],
    ids=["index", "folder", "repository"],
)
def test_init_says_how_to_use_the_wheel_of_a_checkout(
    record: str | None,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """pip records where a package is from (PEP 610). The project's own environment needs aioinformer from somewhere."""
    read = metadata.PathDistribution.read_text

    def with_record(self: metadata.PathDistribution, name: str) -> str | None:
        return record if name == "direct_url.json" else read(self, name)

    monkeypatch.setattr(metadata.PathDistribution, "read_text", with_record)
    monkeypatch.chdir(tmp_path)
    init_command("websites")
    said = capsys.readouterr().out
    step = f"  cd websites\n  pip wheel --no-deps -w wheels {source}   # unless" if source else "wheel"
    assert (step in said) is bool(source), said


def test_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "websites").write_text("")
    with pytest.raises(ConfigError, match="exists and is not an empty folder"):
        NewProject(name="websites").write(tmp_path / "websites")
    with pytest.raises(ConfigError, match=r"cannot write the project into .*: Not a directory"):
        NewProject(name="websites").write(tmp_path / "websites" / "inside")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": ""}, "the name must be lower-case letters, .*: '' is not, 'websites' is"),
        ({"name": "Web_Sites"}, "'Web_Sites' is not, 'web-sites' is"),
        ({"name": "my.operator"}, "'my.operator' is not, 'my-operator' is"),
        ({"name": "web--sites-"}, "'web--sites-' is not, 'web-sites' is"),
        ({"name": "../websites"}, "'../websites' is not, 'websites' is"),
        ({"name": "2nd"}, "'2nd' is not, 'nd' is"),
        ({"name": "w" * 56}, "has 56 characters: use at most 55"),
        ({"name": "class"}, "'class' is a keyword of Python: choose another name"),
        ({"name": "tests"}, "'tests' is the folder of the project's tests"),
        ({"name": "json"}, "'json' is an installed Python package already"),
        ({"name": "trustme"}, "'trustme' is an installed Python package already"),
        ({"name": "pytest-timeout"}, "'pytest-timeout' is an installed Python package already"),
        ({"name": "msgspec"}, "'msgspec' is a Python package that the project needs.*'msgspec-operator'"),
        ({"name": "test"}, "'test' is a Python package that the project needs"),
        ({"name": "aioinformer"}, "'aioinformer' is a Python package that the project needs"),
        ({"name": "manifests"}, "'manifests' is the folder of what make manifests writes"),
        ({"name": "chart"}, "'chart' is the folder of what make chart writes"),
        ({"name": "pydantic"}, "'pydantic' is a Python package that the project needs"),
        (
            {"name": "models", "pydantic": True},
            "the kind 'Model' is a name that the project's code uses already",
        ),
        ({"name": "dist"}, "'dist' is the folder of what packaging writes, which git ignores"),
        ({"name": "operators"}, "the kind 'Operator' is a name that the project's code uses already"),
        ({"name": "websites", "kind": "webSite"}, "the kind must be letters and digits .*, not 'webSite'"),
        ({"name": "websites", "kind": "ConfigMap"}, "the kind 'ConfigMap' is a name"),
        ({"name": "websites", "kind": "False"}, "the kind must be letters and digits .*, not 'False'"),
        ({"name": "websites", "group": "example"}, "group='example' must be a domain"),
        ({"name": "websites", "group": "apps.k8s.io"}, "is reserved for Kubernetes"),
        ({"name": "Web", "kind": "x"}, "the project has 2 mistakes"),
    ],
)
def test_a_mistake_says_what_to_write(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NewProject(**given)


def test_the_tests_of_a_project_enforce_rules(tmp_path: Path) -> None:
    """Without the extra, the embedded server does not check rules in CEL, and tests pass that must not."""
    NewProject(name="websites").write(tmp_path)
    assert '"aioinformer[cel,testing]"' in (tmp_path / "pyproject.toml").read_text()


def test_the_project_names_the_command_that_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NewProject(name="caves", group="example.org", kind="Cave", webhooks=True, pydantic=True).write(
        tmp_path / "a"
    )
    line = (tmp_path / "a" / "pyproject.toml").read_text().splitlines()[0]
    version, command = line.removeprefix("# aioinformer ").split(" wrote this project: ")
    assert version == __version__
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    logger = logging.getLogger(health.__name__)
    level = logger.level
    try:
        assert app(command.split()[1:], standalone_mode=False) is None
    finally:
        logger.setLevel(level)  # the command has changed it
    assert texts_of(tmp_path / "b" / "caves") == texts_of(tmp_path / "a")


def test_the_docs_say_what_changed_in_the_templates_of_this_version() -> None:
    page = Path(__file__).parents[2] / "docs" / "new-projects.md"
    assert f"| {__version__} |" in page.read_text()


@pytest.mark.parametrize("kind", ["No", "Null", "Y"])
def test_the_example_has_the_kind_as_a_text(kind: str, tmp_path: Path) -> None:
    NewProject(name="websites", kind=kind).write(tmp_path)
    assert f'kind: "{kind}"\n' in (tmp_path / "example.yaml").read_text()
