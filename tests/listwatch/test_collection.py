from __future__ import annotations

import pytest

from aioinformer import ApiError, ConfigError, ListOptions
from aioinformer.listwatch.collection import Collection, query_of, request_text


@pytest.mark.parametrize(
    ("resource", "path", "name"),
    [
        (Collection("v1", "pods"), "/api/v1/pods", "pods"),
        (Collection("v1", "pods", "default"), "/api/v1/namespaces/default/pods", "pods in default"),
        (Collection("apps/v1", "deployments"), "/apis/apps/v1/deployments", "deployments.apps"),
        (
            Collection("example.com/v1alpha1", "caves", "a-1"),
            "/apis/example.com/v1alpha1/namespaces/a-1/caves",
            "caves.example.com in a-1",
        ),
    ],
)
def test_paths_and_names(resource: Collection, path: str, name: str) -> None:
    assert resource.path == path
    assert str(resource) == name


@pytest.mark.parametrize(
    "api_version",
    [
        *("", "/v1", "apps/", "apps/v1/x", "Apps/v1", "v1?x", "../v1", "apps/1", "apps/v1-"),
        *("apps", "configmaps", "v1alpha", "vv1", "example.com"),
    ],
)
def test_an_odd_version_is_refused(api_version: str) -> None:
    with pytest.raises(ConfigError, match=r"api_version must be 'v1'.*, like 'apps/v1', not ") as caught:
        Collection(api_version, "pods")
    assert str(caught.value).endswith(f"not {api_version!r}")


def test_core_group_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match="the core group's api_version is 'v1', not 'core/v1'"):
        Collection("core/v1", "pods")


@pytest.mark.parametrize("api_version", ["v1", "v2", "v1beta1", "apps/v1", "example.com/foo10", "x.io/a-b"])
def test_versions(api_version: str) -> None:
    assert Collection(api_version, "pods").path.endswith(f"/{api_version}/pods")


@pytest.mark.parametrize(("first", "second"), [("configmaps", "v1"), ("deployments", "apps/v1")])
def test_swapped_arguments_get_a_hint(first: str, second: str) -> None:
    with pytest.raises(ConfigError, match=f"not '{first}'; the api_version '{second}' comes first"):
        Collection(first, second)


@pytest.mark.parametrize("plural", ["", "Pods", "pods/status", "pods?", "po ds", "-pods", "..", "pods\n"])
def test_an_odd_plural_is_refused(plural: str) -> None:
    with pytest.raises(ConfigError, match=r"plural"):
        Collection("v1", plural)


@pytest.mark.parametrize("namespace", ["a/b", "..", "A", "a b", "", "-"])
def test_an_odd_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(ConfigError, match=r"namespace"):
        Collection("v1", "pods", namespace)


def test_empty_options_send_nothing() -> None:
    assert query_of(ListOptions()) == []
    assert query_of(ListOptions(), watch=True) == [("watch", "true")]


def test_every_option_is_sent_by_its_name() -> None:
    options = ListOptions(
        resource_version="5",
        resource_version_match=r"NotOlderThan",
        limit=500,
        continue_token="abc",
        label_selector="a=b",
        field_selector="x=y",
        allow_watch_bookmarks=True,
        send_initial_events=False,
        timeout_seconds=300,
    )
    assert dict(query_of(options, watch=True)) == {
        "watch": "true",
        "resourceVersion": "5",
        "resourceVersionMatch": "NotOlderThan",
        "limit": "500",
        "continue": "abc",
        "labelSelector": "a=b",
        "fieldSelector": "x=y",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "false",
        "timeoutSeconds": "300",
    }
    assert dict(query_of(ListOptions(send_initial_events=True)))["sendInitialEvents"] == "true"


def test_selectors_of_the_options_override_the_collections() -> None:
    resource = Collection("v1", "pods", label_selector="app=web", field_selector="spec.nodeName=a")
    own = resource.with_selectors(ListOptions(label_selector="app=db", limit=5))
    assert (own.label_selector, own.field_selector, own.limit) == ("app=db", "spec.nodeName=a", 5)


@pytest.mark.parametrize(
    ("resource", "lists", "expected"),
    [
        (Collection("v1", "pods"), True, "application/json"),
        (
            Collection("v1", "pods", protobuf=True),
            True,
            "application/vnd.kubernetes.protobuf,application/json",
        ),
        (
            Collection("v1", "pods", protobuf=True),
            False,
            "application/vnd.kubernetes.protobuf,application/json",
        ),
        (Collection("example.com/v1", "caves", protobuf=True), True, "application/json"),
        (
            Collection("v1", "pods", metadata_only=True),
            True,
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        ),
        (
            Collection("example.com/v1", "caves", metadata_only=True, protobuf=True),
            False,
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        ),
    ],
)
def test_accept_header(resource: Collection, lists: bool, expected: str) -> None:
    assert resource.accept(lists=lists) == expected


def test_request_text() -> None:
    assert request_text("list", "pods", ListOptions()) == "list pods"
    assert request_text("list", "pods", ListOptions(resource_version="0")) == "list pods at resourceVersion 0"
    assert request_text("list", "pods", ListOptions(continue_token="x")) == "list pods, a further page"


@pytest.mark.parametrize(
    ("message", "has_hint"), [("field label not supported: spec.node", True), ("invalid version", False)]
)
def test_error_for_an_unsupported_field_selector_says_what_to_use(message: str, has_hint: bool) -> None:
    pods = Collection("v1", "pods", field_selector="spec.node=a")
    with pytest.raises(ApiError, match=message) as raised, pods.explain_errors():
        raise ApiError(400, "BadRequest", message)
    assert ("use an index or a predicate" in str(raised.value)) is has_hint


@pytest.mark.parametrize(
    ("api_version", "plural", "where"),
    [
        ("v1", "deployments", " (deployments are in 'apps/v1')"),
        ("batch/v1beta1", "cronjobs", " (cronjobs are in 'batch/v1')"),
        ("v1", "backups", ""),
        ("example.com/v1", "jobs", ""),
        ("apps/v1", "deployments", ""),
    ],
)
def test_a_built_in_resource_in_the_wrong_group_gets_the_right_one(
    api_version: str, plural: str, where: str
) -> None:
    absent = ApiError(404, "NotFound", "404 page not found")
    with pytest.raises(ApiError) as raised, Collection(api_version, plural).explain_errors():
        raise absent
    assert f"check api_version {api_version!r}{where}, plural {plural!r}" in str(raised.value)
