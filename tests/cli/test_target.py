from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer import ConfigError
from aioinformer.cli.target import Target


async def test_in_a_pod_no_kubeconfig_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl: an existing or requested kubeconfig comes first."""
    path = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)

    async def says(target: Target) -> str:
        with pytest.raises(ConfigError) as caught:
            await target.client().open()
        return str(caught.value)

    assert "no such file" in await says(Target())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    assert "the in-cluster configuration" in await says(Target())
    assert "no such file" in await says(Target(context="prod"))
    assert "no such file" in await says(Target(kubeconfig=str(path)))
    path.touch()
    assert "the file is empty" in await says(Target())
