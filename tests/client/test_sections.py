"""sections.py: reading the files of a kubeconfig."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest
import yaml

from aioinformer import ConfigError
from aioinformer.client.sections import Sections, read_files


def sections(path: Path, context: str | None = None) -> Sections:
    return Sections(read_files(yaml, [str(path)], context), context)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\ntoken: SECRET: x\n", "line 2: mapping values are not allowed here"),
        ('a: 1\ntoken: "SECRET\nb: c\n', "line 4: found unexpected end of stream"),
        ("a: 1\n\ttoken: SECRET\n", "line 2: found character '\\\\t' that cannot start any token"),
        ("password: @SECRET\n", "line 1: found character '@' that cannot start any token"),
        ("token: *SECRET\n", "line 1: found undefined alias …"),
        ("token: !SECRET x\n", "line 1: could not determine a constructor for the tag …"),
        ("token: !!int SECRET\n", "somewhere: an invalid value"),
        ("token: 2020-13-45\n", "somewhere: an invalid value"),
    ],
)
def test_no_error_quotes_what_may_be_a_secret(tmp_path: Path, text: str, where: str) -> None:
    good, path = tmp_path / "good", tmp_path / "config"
    good.write_text("{}")
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"^{path}: it is not YAML: {where}") as caught:
        read_files(yaml, [str(good), str(path)], None)
    said = "".join(traceback.format_exception(caught.value))
    assert "SECRET" not in said
    assert "2020" not in said


def test_json_with_tabs_and_unnamed_entries_are_read(tmp_path: Path) -> None:
    """Tabs, which YAML does not allow, and unused entries without a name."""
    config = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://x"}}],
        "contexts": [{"name": "main", "context": {"cluster": "c"}}],
        "users": [{"user": {"token": "t"}}],
    }
    path = tmp_path / "config"
    for indent in (None, "\t"):
        path.write_text(json.dumps(config, indent=indent))
        assert sections(path).cluster.get("server") == "https://x"
        assert sections(path).user.fields == {}
    path.write_text(json.dumps(config, indent="\t").replace('"main"', "main") + "  # not JSON")
    assert sections(path).cluster.get("server") == "https://x"
    path.write_text("{current-context: main, clusters: [], contexts: []}")  # is YAML, too
    with pytest.raises(ConfigError, match="there is no 'main'"):
        sections(path)
