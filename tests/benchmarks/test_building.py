"""benchmarks/building.py: builds are found again, and a missing program has its reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import building
from benchmarks.building import BUILDERS, CargoBuild, build
from benchmarks.harness.matrix import load
from tests.go_build import BuildError, ToolchainMissingError

pytestmark = pytest.mark.timeout(900)  # for a cold build of Go programs takes minutes

MANIFEST = """[package]
name = "{name}"
version = "0.0.0"
edition = "2021"
"""


def package(folder: Path, source: str) -> CargoBuild:
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(MANIFEST.format(name="tiny"))
    (folder / "src" / "main.rs").write_text(source)
    return CargoBuild(folder, ("tiny",), folder.parent / "cache")


@pytest.fixture
def cargo() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on PATH: install Rust (https://rustup.rs), then this test runs too")


@pytest.mark.usefixtures("cargo")
def test_build_is_found_again_until_the_sources_change(tmp_path: Path) -> None:
    tiny = package(tmp_path / "tiny", "fn main() {}")
    said: list[str] = []
    first = tiny.ensure(report=said.append)
    assert (first / "tiny").exists()
    assert len(said) == 2
    assert tiny.ensure(report=said.append) == first
    assert len(said) == 2
    assert not (tmp_path / "tiny" / "Cargo.lock").exists()
    (tmp_path / "tiny" / "src" / "main.rs").write_text('fn main() { println!("changed") }')
    second = tiny.ensure(report=said.append)
    assert second != first
    assert not first.exists()


@pytest.mark.usefixtures("cargo")
def test_failed_build_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = package(tmp_path / "tiny", "fn main() { nonsense }")
    with pytest.raises(BuildError, match="cannot find value `nonsense`"):
        broken.ensure()
    monkeypatch.setattr(building, "BUILDERS", {"tiny": broken})
    said: list[str] = []
    built = build(["tiny"], report=said.append)
    assert built.programs == {}
    assert "could not compile `tiny`" in built.missing["tiny"]
    assert any("nonsense" in line for line in said)


def test_without_a_toolchain_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = package(tmp_path / "tiny", "fn main() {}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainMissingError, match=r"rustup\.rs"):
        tiny.ensure()


@pytest.mark.parametrize("package", ["peers_rust", "websites/kube_rs"])
def test_versions_are_pinned_and_no_lock_file_is_kept(package: str) -> None:
    manifest = (building.FOLDER / package / "Cargo.toml").read_text()
    dependencies = manifest.partition("[dependencies]")[2].partition("[profile")[0].strip().splitlines()
    assert dependencies
    assert all('"=' in line for line in dependencies)
    assert not (building.FOLDER / package / "Cargo.lock").exists()


def test_every_program_of_the_matrices_has_a_build() -> None:
    for name in ("matrix.toml", "operators.toml"):
        for client in load(building.FOLDER / name).clients:
            assert not client.program or client.run in BUILDERS
