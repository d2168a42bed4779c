"""A chart for helm, whose values are the image, replicas, resources, namespaces and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..._core.yaml_text import dump_yaml
from ...errors import ConfigError
from ..operator import Operator
from ..settings import variable_of
from .chart_values import schema_text, values_text
from .folder import MARK, write_files
from .installation import Installation, Object
from .objects import manifests
from .workload import SEVERAL, SINGLE

HEADER = f"# {MARK}pass your values by helm's --values and --set.\n"

_NAME, _HOME, _WATCHED = "aioinformer-release-name", "aioinformer-release-home", "aioinformer-watched"
"""Names of the objects from which the templates are made."""
_SEVERAL = "gt (int $.Values.replicas) 1"

_EXPRESSIONS = {
    _NAME: "{{ $.Release.Name }}",
    _HOME: "{{ $.Release.Namespace }}",
    _WATCHED: "{{ . }}",
}
"""What takes the place of a marker in a text."""
_ITEMS = {
    "leader": f'{{{{ if {_SEVERAL} }}}}"--leader-elect", "--lease-name={{{{ $.Release.Name }}}}", {{{{ end }}}}',
    "namespaces": '{{ range $.Values.namespaces }}"--namespace={{ . }}", {{ end }}',
    "image": "{{ $.Values.image | quote }}",
    "replicas": "{{ $.Values.replicas }}",
}
"""What takes the place of a marker with its quotes, and of the comma that follows it in a list."""

_SEMVER = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")


def write_chart(operator: Operator, installation: Installation, folder: Path) -> list[Path]:
    """Write a chart for helm into a folder. The objects have the name of the release, in its namespace.

    Files of an earlier call that are not part of this one are removed. CustomResourceDefinitions stay when the release
    is uninstalled, because their deletion would delete all objects.

    Args:
        operator: The operator.
        installation: Gives the chart its name, and the values their defaults.
        folder: Where to.

    Returns:
        The written files.

    Raises:
        ConfigError: As for ``manifests``; the installation has a namespace or static webhooks, or the folder has a file
            of the same name that this function did not write, or cannot be written.
    """
    given = {
        "--install-namespace": installation.namespace,
        "--create-namespace": installation.create_namespace,
        "--no-create-namespace": installation.create_namespace is False,
    }
    if options := [option for option, value in given.items() if value]:
        raise ConfigError(
            "a chart is installed in the namespace of helm's --namespace, which its --create-namespace creates: leave "
            f"out {' and '.join(options)}"
        )
    if installation.static_webhooks:
        raise ConfigError(
            "the webhooks of a chart are registered by the operator: leave out --static-webhooks"
        )
    texts = _templates(operator, installation)
    deployed = manifests(operator, installation)[-1]["spec"]["template"]["spec"]["containers"][0]
    return write_files(
        folder,
        {
            "Chart.yaml": HEADER + dump_yaml([_chart(operator, installation)]),
            "values.yaml": HEADER + values_text(operator, installation, deployed["resources"]),
            "values.schema.json": schema_text(operator, installation, MARK),
            **{f"templates/{name}": HEADER + text for name, text in texts.items()},
        },
    )


def _chart(operator: Operator, installation: Installation) -> Object:
    _, _, tag = installation.image.rpartition("/")[2].partition(":")
    match = _SEMVER.fullmatch(tag)
    return {
        "apiVersion": "v2",
        "name": installation.name,
        "description": f"The operator {operator.name}",
        "type": "application",
        "version": match[1] if match else "0.1.0",
        **({"appVersion": tag} if tag else {}),
    }


def _templates(operator: Operator, installation: Installation) -> dict[str, str]:
    """Return the templates: one file for each kind."""
    texts: dict[str, str] = {}
    for obj, begin, end in [*_conditional(operator, installation)]:  # all, before they are changed
        if obj["kind"] == "CustomResourceDefinition":
            obj["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
        if obj["kind"] == "Deployment":
            _mark(obj)
        text = _to_template(obj, variable_of(operator.name, ""))
        name = f"{obj['kind'].lower()}.yaml"
        texts[name] = texts.get(name, "") + f"---\n{begin}{text}{end}"
    return texts


def _conditional(operator: Operator, installation: Installation) -> Iterator[tuple[Object, str, str]]:
    """Yield the objects of all releases, with the template's lines before and after each that only some have."""

    def install(watched: str | None, replicas: int) -> list[Object]:
        variant = msgspec.structs.replace(
            installation,
            name=_NAME,
            namespace=_HOME,
            watched=watched,
            replicas=replicas,
            create_namespace=False,
            settings={},
        )
        return manifests(operator, variant)

    everywhere, single, watching = install(None, 2), install(None, 1), install(_WATCHED, 2)
    for obj in everywhere:
        if obj["kind"] == "Deployment" or (obj in watching and obj in single):
            yield obj, "", ""
        else:
            condition = f"if {_SEVERAL}" if obj in watching else "if not $.Values.namespaces"
            yield obj, f"{{{{- {condition} }}}}\n", "{{- end }}\n"
    for obj in single:
        if obj not in everywhere and obj["kind"] != "Deployment":
            yield obj, f"{{{{- if not ({_SEVERAL}) }}}}\n", "{{- end }}\n"
    for obj in watching:
        if obj not in everywhere and obj["kind"] != "Deployment":
            is_each = obj["metadata"].get("namespace") == _WATCHED
            condition = "range $.Values.namespaces" if is_each else "if $.Values.namespaces"
            yield obj, f"{{{{- {condition} }}}}\n", "---\n{{- end }}\n" if is_each else "{{- end }}\n"


def _mark(deployment: Object) -> None:
    """Put markers in the place of what the values decide."""
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    spec["replicas"] = _marker("replicas")
    if "--leader-elect" in (arguments := container["args"]):
        spec["strategy"] = _marker("strategy")
        at = arguments.index("--leader-elect")
        arguments[at : at + 2] = [_marker("leader")]  # with the name of its Lease
    container["image"] = _marker("image")
    container["resources"] = _marker("resources")
    container["env"] = _marker("env")
    arguments.insert(2, _marker("namespaces"))  # after: run TARGET


def _marker(name: str) -> str:
    return f"@@{name}@@"


def _mark_names(value: Any) -> Any:
    """Return an object with markers in the place of names, for which YAML quotes texts that a number could begin."""
    if isinstance(value, dict):
        return {key: _mark_names(field) for key, field in value.items()}
    if isinstance(value, list):
        return [_mark_names(item) for item in value]
    if isinstance(value, str):
        for name in (_NAME, _HOME, _WATCHED):
            value = value.replace(name, _marker(name))
    return value


def _to_template(obj: Object, prefix: str) -> str:
    """Return an object as a template: markers are expressions, and other texts stay as they are.

    Args:
        obj: The object.
        prefix: That of the variables of settings.
    """
    text = dump_yaml([_mark_names(obj)]).replace("{{", '{{ "{{" }}')
    for name, item in _ITEMS.items():
        text = re.sub(f'"{_marker(name)}"(,\\s*)?', item, text)
    for name, expression in _EXPRESSIONS.items():
        text = text.replace(_marker(name), expression)
    text = re.sub(rf'( *)resources: "{_marker("resources")}"\n', _resources, text)
    text = re.sub(rf'( *)strategy: "{_marker("strategy")}"\n', _strategy, text)
    return re.sub(rf'( *)env: "{_marker("env")}"\n', lambda match: _environment(match, prefix), text)


def _resources(match: re.Match[str]) -> str:
    spaces = match[1]
    return f"{spaces}resources: {{{{- toYaml $.Values.resources | nindent {len(spaces) + 2} }}}}\n"


def _strategy(match: re.Match[str]) -> str:
    spaces = match[1]
    several, single = (
        "".join(f"{spaces}{line}\n" for line in dump_yaml([{"strategy": strategy}]).splitlines())
        for strategy in (SEVERAL, SINGLE)
    )
    return f"{{{{- if {_SEVERAL} }}}}\n{several}{{{{- else }}}}\n{single}{{{{- end }}}}\n"


def _environment(match: re.Match[str], prefix: str) -> str:
    spaces = match[1]
    return f"""{{{{- with $.Values.settings }}}}
{spaces}env:
{{{{- range $field, $value := . }}}}
{spaces}- name: {{{{ printf "{prefix}%s" (upper $field) }}}}
{{{{- if kindIs "map" $value }}}}
{spaces}  valueFrom: {{{{- toYaml $value | nindent {len(spaces) + 4} }}}}
{{{{- else }}}}
{spaces}  value: {{{{ $value | quote }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
"""
