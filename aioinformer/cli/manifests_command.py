"""The options of ``aioinformer manifests``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .._core.checks import require_namespace
from ..errors import ConfigError
from .options import shards_option
from .output import convert_write_errors, print_error, write
from .reporting import report_errors

SHARING = 3
"""Pods that share the objects by default."""


def manifests_command(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:OBJECT", help="An Operator. MODULE alone means MODULE:operator."),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write a kustomization into this folder. Default: print YAML.",
        ),
    ] = None,
    helm: Annotated[
        Path | None,
        typer.Option("--helm", metavar="DIR", help="Write a chart for helm into this folder."),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="The container's image. Default: NAME:latest.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name of the Deployment, roles and others. Default: the operator's."),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "-n",
            "--namespace",
            help="Work in this namespace alone, with a Role there; repeatable. Default: in all.",
        ),
    ] = None,
    install_namespace: Annotated[
        str | None,
        typer.Option(
            "--install-namespace",
            help="Where the operator's pods run. Default: --namespace if there is one, then NAME.",
        ),
    ] = None,
    create_namespace: Annotated[
        bool | None,
        typer.Option(
            "--create-namespace/--no-create-namespace",
            help="Also print the Namespace of the pods. Default: if neither namespace is given.",
        ),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas",
            min=0,
            help="Number of pods. With several, one is elected, or with --shards all work. Default: 1, or 3.",
        ),
    ] = None,
    shards: Annotated[
        int,
        shards_option("The pods share the objects: the number of slots, such as 64. See docs/replicas.md."),
    ] = 0,
    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            "--ca-bundle",
            metavar="FILE",
            help="The authority of the webhooks' certificate, in PEM, if you create the Secret NAME-webhook. Default: "
            "cert-manager creates both.",
        ),
    ] = None,
    static_webhooks: Annotated[
        bool,
        typer.Option(
            "--static-webhooks",
            help="Register the webhooks with these objects, even while no pod serves them. Default: the operator "
            "registers them once it serves them.",
        ),
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of the operator; repeatable."),
    ] = None,
    setting_from: Annotated[
        list[str] | None,
        typer.Option(
            "--set-from",
            metavar="FIELD=SOURCE",
            help="A setting from secret/NAME/KEY or configmap/NAME/KEY; repeatable.",
        ),
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option(
            "--mount",
            metavar="SOURCE:PATH",
            help="Mount secret/NAME or configmap/NAME as files in this folder; repeatable.",
        ),
    ] = None,
    network_policy: Annotated[
        bool,
        typer.Option(
            "--network-policy/--no-network-policy",
            help="Let only namespaces with the label metrics=enabled read /metrics and /debug.",
        ),
    ] = True,
    pod_monitor: Annotated[
        bool, typer.Option("--pod-monitor", help="Also print a PodMonitor, for the Prometheus Operator.")
    ] = False,
    metrics_auth: Annotated[
        bool,
        typer.Option(
            "--metrics-auth", help="The metrics ask for a token, as by aioinformer run --metrics-auth."
        ),
    ] = False,
    service_monitor: Annotated[
        bool,
        typer.Option("--service-monitor", help="Add a ServiceMonitor, a kind of the Prometheus operator."),
    ] = False,
    dashboard: Annotated[
        Path | None,
        typer.Option(
            "--dashboard",
            metavar="FILE",
            help="Also write a Grafana dashboard of the metrics into this file.",
        ),
    ] = None,
    alerts: Annotated[
        bool,
        typer.Option("--alerts", help="Also print alerts, as a PrometheusRule of the Prometheus operator."),
    ] = False,
) -> None:
    """Print what installs an operator: its CustomResourceDefinitions, its rights and its Deployment."""
    from ..operator import Operator  # these need longer than other commands
    from ..operator.manifests import Installation, manifests, to_yaml, write_chart, write_kustomization
    from ..operator.manifests.settings import missing_variables, parse_mount, parse_settings
    from .loading import DEFAULT_OBJECT, load

    with report_errors(), convert_write_errors():
        for watched in namespace or ():
            require_namespace("--namespace", watched)
        if install_namespace is not None:
            require_namespace("--install-namespace", install_namespace)
        operator = load(target)
        if not isinstance(operator, Operator):
            raise ConfigError(
                f"{target} is a function that returns a Manager, which does not say what rights it needs: declare an "
                "Operator"
            )
        name = operator.name if name is None else name
        installation = Installation(
            target=target if ":" in target else f"{target}:{DEFAULT_OBJECT}",
            name=name,
            image=f"{name}:latest" if image is None else image,
            namespace=install_namespace or "",
            watched=tuple(namespace) if namespace else None,
            replicas=(SHARING if shards else 1) if replicas is None else replicas,
            shards=shards,
            create_namespace=create_namespace,
            ca_bundle=None if ca_bundle is None else _read(ca_bundle),
            static_webhooks=static_webhooks,
            settings=parse_settings(setting or (), setting_from or ()),
            mounts=tuple(map(parse_mount, mount or ())),
            network_policy=network_policy,
            pod_monitor=pod_monitor,
            metrics_auth=metrics_auth,
            service_monitor=service_monitor,
            alerts=alerts,
        )
        if folder is not None:
            written = write_kustomization(manifests(operator, installation), folder)
            print_error(f"wrote {len(written)} files; install them by: kubectl apply -k {folder}")
        if helm is not None:
            written = write_chart(operator, installation, helm)
            print_error(
                f"wrote {len(written)} files; install them by: helm install {name} {helm} --namespace {name} "
                "--create-namespace"
            )
        if folder is None and helm is None:
            write(to_yaml(manifests(operator, installation)))
        if dashboard is not None:
            _write_dashboard(operator.name, dashboard)
        if missing := missing_variables(operator, installation):
            print_error(
                f"the Deployment needs values, by --set or --set-from, or in your overlay: {', '.join(missing)}"
            )


def _write_dashboard(name: str, path: Path) -> None:
    from ..operator.manifests import make_dashboard

    try:
        path.write_text(json.dumps(make_dashboard(name), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--dashboard: {path}: {error.strerror}") from error
    print_error(f"wrote a Grafana dashboard: {path}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--ca-bundle: {path}: {error.strerror}") from error
