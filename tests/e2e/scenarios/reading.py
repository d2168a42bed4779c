"""Lists: selectors, pages, versions, and other ways of showing them."""

from __future__ import annotations

from tests.samples import configmap

from ..api import JSON, MERGE, YAML
from ..clusters import pod_manifest
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, PODS, catch_up, version_of


async def selectors(server: AnswerRecorder) -> None:
    """Label and field selectors, good and bad."""
    for name, labels in (
        ("a", {"app": "web", "tier": "front"}),
        ("b", {"app": "db"}),
        ("c", {}),
        ("d", {"app": "", "n": "7"}),
    ):
        await server.ask("POST", CONFIGMAPS, configmap(name, labels=labels))
    for selector in (
        "app=web", "app==web", "app!=web", "app", "!app", "app in (web,db)", "app notin (web)", "app=", "app!=",
        "app=web,tier", "app in (web), tier notin (back)", " app = web ", "n>5", "n<5", "n>x", "app in ()", "",
        "app in (web", "app=web=db", "=web", "app,,tier", "app in web", "app=web,", ",", "!", "!!app", "-=a",
        "app=-", "a/b/c=d", "example.com/app", "app in (,)", "(", "app ! = web", f"-/{'-' * 64}", f"app={'-' * 64}",
    ):  # fmt: skip
        await server.ask("GET", CONFIGMAPS, query={"labelSelector": selector})
    for selector in (
        "metadata.name=a", "metadata.name==a", "metadata.name!=a", "metadata.namespace!=default",
        "metadata.name=a,metadata.name=b", "metadata.name=a,", "data.k=1", "metadata.labels=a", "metadata.name",
        "=a", "metadata.name=", "", ",", "metadata.name=a\\,b", "metadata.name>a", "a=b=c", "metadata.uid=a",
    ):  # fmt: skip
        await server.ask("GET", CONFIGMAPS, query={"fieldSelector": selector})
    await server.ask("POST", PODS, pod_manifest("web", node="node-1"))
    for selector in (
        "spec.nodeName=node-1", "spec.nodeName=", "status.phase=Pending", "status.phase!=Pending",
        "spec.restartPolicy=Always", "spec.schedulerName=x", "status.podIP=", "spec.hostNetwork=false",
        "status.nominatedNodeName=", "spec.serviceAccountName=", "spec.containers=a",
    ):  # fmt: skip
        await server.ask("GET", PODS, query={"fieldSelector": selector})
    await server.ask("GET", "/api/v1/namespaces", query={"fieldSelector": "metadata.name=NS"})


async def pages(server: AnswerRecorder) -> None:
    """Limits, continue tokens, versions and how they match."""
    versions = [
        version_of(await server.ask("POST", CONFIGMAPS, configmap(f"c{number}"))) for number in range(5)
    ]
    for limit in ("2", "5", "6", "0", "-1"):
        await server.ask("GET", CONFIGMAPS, query={"limit": limit})
        await server.ask("GET", CONFIGMAPS, query={"limit": limit, "resourceVersion": "0"})
    page = await server.ask("GET", CONFIGMAPS, query={"limit": "2"})
    await server.ask("DELETE", f"{CONFIGMAPS}/c3")
    while token := page.body["metadata"].get("continue"):
        page = await server.ask("GET", CONFIGMAPS, query={"limit": "2", "continue": token})
    page = await server.ask("GET", CONFIGMAPS, query={"limit": "1", "labelSelector": "!absent"})
    token = page.body["metadata"]["continue"]
    await server.ask("GET", CONFIGMAPS, query={"continue": token})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersion": versions[0]})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersion": "0"})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersionMatch": "Exact"})
    await server.ask("GET", CONFIGMAPS, query={"continue": "broken"})
    await server.ask("GET", CONFIGMAPS, query={"continue": "e30"})
    for version in ("", "0", versions[2], versions[4], "abc", "-1", "1.5"):
        for match in ("", "Exact", "NotOlderThan", "Sometime"):
            for limit in ("", "2"):
                given = {"resourceVersion": version, "resourceVersionMatch": match, "limit": limit}
                query = {name: value for name, value in given.items() if value}
                await server.ask("GET", CONFIGMAPS, query=query)
    future = str(10**9)
    await server.ask("GET", CONFIGMAPS, query={"resourceVersion": future})
    await server.ask("GET", CONFIGMAPS, query={"resourceVersion": future, "resourceVersionMatch": "Exact"})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": versions[4]})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": "0"})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": "abc"})
    await server.ask("GET", CONFIGMAPS, query={"sendInitialEvents": "true"})


async def views(server: AnswerRecorder) -> None:
    """Tables and metadata alone."""
    await server.ask("POST", CONFIGMAPS, configmap("a", k="1", m="2"))
    await server.ask("POST", PODS, pod_manifest("web", node="node-1"))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/a", PODS, "/api/v1/namespaces/NS"):
        await server.ask("GET", path, accept=table)
    await server.ask("GET", CONFIGMAPS, query={"includeObject": "None"}, accept=table)
    await server.ask("GET", CONFIGMAPS, query={"includeObject": "Everything"}, accept=table)
    await server.ask("GET", CONFIGMAPS, accept=f"{table},application/json")
    await server.ask("GET", CONFIGMAPS, accept=partial)
    await server.ask("GET", CONFIGMAPS, query={"labelSelector": "none"}, accept=partial)
    await server.ask(
        "GET", f"{PODS}/web", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    )
    for accept in (
        f"{partial},application/json",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v2",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v2,application/json",
        "application/json;as=PartialObjectMetadataList;g=example.com;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=Nonsense;g=meta.k8s.io;v=v1",
        "application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json",
    ):
        await server.ask("GET", CONFIGMAPS, accept=accept)
    await server.ask("GET", CONFIGMAPS, query={"limit": "1"}, accept=partial)
    await server.ask("GET", f"{CONFIGMAPS}/a", accept=partial)
    await server.ask("GET", CONFIGMAPS, accept=table.replace("v=v1", "v=v1beta1"))
    await server.ask("GET", CONFIGMAPS, accept="application/vnd.kubernetes.protobuf")
    await server.ask("GET", CONFIGMAPS, accept="application/vnd.kubernetes.protobuf,application/json")


async def watched_views(server: AnswerRecorder) -> None:
    """Watches of metadata alone."""
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    first = version_of(await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1")))
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "2"}}, content_type=MERGE)
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    await server.ask("POST", CONFIGMAPS, configmap("b", labels={"app": "db"}, k="1"))
    await catch_up(server)
    stream = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    await server.watch_all(
        (CONFIGMAPS, {"resourceVersion": first}),
        (CONFIGMAPS, {"resourceVersion": first, "labelSelector": "app=web"}),
        (CONFIGMAPS, stream),
        (CONFIGMAPS, {}),
        accept=partial,
    )
    await server.watch_all(
        (CONFIGMAPS, {"resourceVersion": first}),
        accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    )


async def answers_in_yaml(server: AnswerRecorder) -> None:
    """Objects, lists, tables, statuses and discovery in YAML, which has no watches."""
    body = {"metadata": {"name": "a"}, "data": {"text": "two\nlines", "number": "7", "yes": "on"}}
    await server.ask("POST", CONFIGMAPS, body, accept=YAML)
    table = "as=Table;g=meta.k8s.io;v=v1"
    for accept in (YAML, f"{YAML},{JSON}", f"{YAML};q=0.5,{JSON}", f"{YAML};stream=watch", f"{YAML};{table}"):
        for path in (CONFIGMAPS, f"{CONFIGMAPS}/a", f"{CONFIGMAPS}/missing", "/apis/apps/v1/nonsense"):
            await server.ask("GET", path, accept=accept)
    metadata = f"{YAML};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    await server.ask("GET", f"{CONFIGMAPS}/a", accept=metadata)
    for path in ("/version", "/apis/apps/v1"):
        for accept in (YAML, "application/cbor", "application/*"):
            await server.ask("GET", path, accept=accept)
    await server.ask("GET", "/apis/apps", accept=YAML)
    for accept in (YAML, f"{YAML};stream=watch", "application/cbor"):
        await server.ask("GET", CONFIGMAPS, query={"watch": "1", "timeoutSeconds": "1"}, accept=accept)
    await server.ask("DELETE", f"{CONFIGMAPS}/a", accept=YAML)
