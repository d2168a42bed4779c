"""Items of edited lists: which item of the object is meant, and which fields stay."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from aioinformer.errors import AioInformerError, AmbiguousEditError, ConfigError
from aioinformer.objects.decoders import decoder_of
from aioinformer.objects.kube_object import encode
from aioinformer.objects.nesting import decode_any
from aioinformer.operator.webhooks.patching import apply_patch, json_patch
from aioinformer.resources.merging import with_unknown_fields
from aioinformer.typed import CamelStruct, CustomResource, MapOf, Metadata

Object = dict[str, Any]


class Rule(CamelStruct, kw_only=True):
    host: str
    weight: float | None = None


class Port(CamelStruct, kw_only=True):
    number: int
    protocol: str = "TCP"
    label: str | None = None


class Secret(CamelStruct, tag="secret", tag_field="type"):
    name: str


class Volume(CamelStruct, tag="volume", tag_field="type"):
    path: str


class Endpoint(TypedDict, total=False):
    url: str


class Spec(CamelStruct, kw_only=True):
    rules: list[Rule] = []
    ports: Annotated[list[Port], MapOf("number", "protocol")] | None = None
    named: Annotated[list[Rule], msgspec.Meta(extra={"x-kubernetes-list-map-keys": ["host"]})] = []
    hosts: set[str] = set()
    numbers: frozenset[int] = frozenset()
    names: list[str] = []
    groups: dict[str, list[Rule]] = {}
    sources: list[Secret | Volume] = []
    source: Secret | Volume | None = None
    address: Port | str | None = None
    endpoints: list[Endpoint] = []
    pair: tuple[Rule, Rule] | None = None
    anything: Any = None
    counts: dict[int, str] = {}


class Room(CamelStruct):
    name: str
    size: int = 1


class Rooms(CamelStruct):
    rooms: list[Room] = []


class Gate(CustomResource, group="example.com", version="v1"):
    spec: Spec


class Condition(CamelStruct):
    type: str
    status: str


class Status(CamelStruct):
    conditions: list[Condition] = []


class Door(CustomResource, group="example.com", version="v1"):
    status: Status | None = None


class ContainerPort(CamelStruct):
    container_port: int
    protocol: str = "TCP"
    name: str | None = None


class Container(CamelStruct):
    name: str
    ports: list[ContainerPort] = []


class Alias(CamelStruct):
    ip: str


class KeyedPod(CamelStruct):
    containers: list[Container]
    host_aliases: list[Alias] = []


class PortWithoutProtocol(CamelStruct):
    container_port: int
    name: str | None = None


class ContainerWithout(CamelStruct):
    name: str
    ports: list[PortWithoutProtocol] = []


class PodWithout(CamelStruct):
    containers: list[ContainerWithout]


class Toleration(CamelStruct):
    key: str


class TolerantPod(CamelStruct):
    tolerations: list[Toleration] = []


class Tagged(CamelStruct):
    tags: set[str]


class TaggedItems(CamelStruct):
    items: list[Tagged]


def gate(**spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gate",
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": spec,
    }


def rule(host: str, **more: Any) -> Object:
    return {"host": host, "backend": f"of {host}", **more}


def edit(original: Object, change: Any, kind: type[Any] = Gate) -> Object:
    """Return an object after a change of what a class has of it; a webhook's patch gives the same."""
    raw = msgspec.json.encode(original)
    edited = msgspec.json.decode(raw, type=kind)
    change(edited.spec)
    merged = with_unknown_fields(raw, edited)
    patched = msgspec.json.decode(raw)
    apply_patch(patched, json_patch(raw, edited))
    assert msgspec.json.encode(patched, order="sorted") == msgspec.json.encode(merged, order="sorted")
    spec: Object = merged["spec"]
    return spec


def refusal(original: Object, change: Any, kind: type[Any] = Gate) -> AmbiguousEditError:
    with pytest.raises(AmbiguousEditError) as raised:
        edit(original, change, kind)
    return raised.value


ABC = [rule("a"), rule("b"), rule("c")]


@pytest.mark.parametrize(
    "hosts", [*itertools.chain.from_iterable(itertools.permutations("abc", n) for n in range(4))]
)
def test_items_in_any_order_keep_their_unknown_fields(hosts: tuple[str, ...]) -> None:
    def change(spec: Spec) -> None:
        spec.rules = [Rule(host=host) for host in hosts]

    assert edit(gate(rules=ABC), change)["rules"] == [rule(host) for host in hosts]


def test_new_items_are_taken_as_they_are() -> None:
    def change(spec: Spec) -> None:
        spec.rules = [Rule(host="d"), *spec.rules, Rule(host="e")]

    assert edit(gate(rules=ABC), change)["rules"] == [{"host": "d"}, *ABC, {"host": "e"}]


def test_an_item_that_was_changed_or_replaced_is_refused() -> None:
    def change(spec: Spec) -> None:
        spec.rules[1].host = "d"

    error = refusal(gate(rules=ABC), change)
    assert error.field == "spec.rules"
    assert isinstance(error, ConfigError)
    assert isinstance(error, AioInformerError)
    for part in (
        "Rule lacks a field of item 1",
        "(backend)",
        'MapOf("name")',
        "list[dict[str, Any]]",
        "Nothing was written",
    ):
        assert part in str(error)
    assert "of b" not in str(error)  # values may be secret


def test_without_unknown_fields_a_changed_item_is_taken_as_it_is() -> None:
    def change(spec: Spec) -> None:
        spec.rules[1].host = "d"
        spec.rules.reverse()

    hosts = [{"host": host} for host in "abc"]
    assert edit(gate(rules=hosts), change)["rules"] == [{"host": "c"}, {"host": "d"}, {"host": "a"}]


def test_a_changed_item_may_be_next_to_items_with_unknown_fields() -> None:
    def change(spec: Spec) -> None:
        spec.rules[1].host = "d"

    assert edit(gate(rules=[rule("a"), {"host": "b"}]), change)["rules"] == [rule("a"), {"host": "d"}]


class TestItemsThatLookAlike:
    TWO = [rule("a"), {"host": "a", "backend": "another"}, rule("b")]

    def test_stay_in_their_order(self) -> None:
        def change(spec: Spec) -> None:
            spec.rules.insert(0, Rule(host="new"))
            spec.rules.append(Rule(host="last"))

        assert edit(gate(rules=self.TWO), change)["rules"] == [{"host": "new"}, *self.TWO, {"host": "last"}]

    @pytest.mark.parametrize(
        "hosts",
        [("b", "a", "a"), ("a", "b"), ("a", "a", "a", "b")],
        ids=["moved", "one removed", "one added"],
    )
    def test_are_not_distinguished(self, hosts: tuple[str, ...]) -> None:
        def change(spec: Spec) -> None:
            spec.rules = [Rule(host=host) for host in hosts]

        assert "rules" in refusal(gate(rules=self.TWO), change).field

    def test_are_all_the_same_if_their_unknown_fields_are(self) -> None:
        def change(spec: Spec) -> None:
            spec.rules = [spec.rules[2], spec.rules[0]]

        assert edit(gate(rules=[rule("a"), rule("a"), rule("b")]), change)["rules"] == [rule("b"), rule("a")]

    def test_are_not_taken_for_a_changed_item(self) -> None:
        # The class shows [b, a] -> [a, a]: the other a is a copy of it, or b with another host.
        def change(spec: Spec) -> None:
            spec.rules[0].host = "a"

        assert refusal(gate(rules=[rule("b"), {"host": "a"}]), change)


class TestKeys:
    PORTS = [
        {"number": 80, "protocol": "TCP", "label": "web", "target": 1},
        {"number": 80, "protocol": "UDP", "label": "quic", "target": 2},
        {"number": 53, "protocol": "UDP", "target": 3},
    ]

    def test_find_changed_items_in_any_order(self) -> None:
        def change(spec: Spec) -> None:
            assert spec.ports is not None
            spec.ports[1].label = "http3"
            spec.ports = [Port(number=1), spec.ports[2], spec.ports[1]]

        assert edit(gate(ports=self.PORTS), change)["ports"] == [
            {"number": 1, "protocol": "TCP"},
            self.PORTS[2],
            {**self.PORTS[1], "label": "http3"},
        ]

    def test_another_key_is_another_item(self) -> None:
        def change(spec: Spec) -> None:
            assert spec.ports is not None
            spec.ports[0].number = 443

        assert edit(gate(ports=self.PORTS), change)["ports"] == [
            {"number": 443, "protocol": "TCP", "label": "web"},
            *self.PORTS[1:],
        ]

    def test_of_meta_count_as_those_of_map_of(self) -> None:
        def change(spec: Spec) -> None:
            spec.named[1].weight = 2.5
            spec.named.reverse()

        assert edit(gate(named=ABC), change)["named"] == [ABC[2], {**ABC[1], "weight": 2.5}, ABC[0]]

    def test_that_are_there_twice_do_not_identify_an_item(self) -> None:
        twice = [rule("a", weight=1.0), rule("a", weight=2.0), rule("b")]

        def move(spec: Spec) -> None:
            spec.named.reverse()

        def change(spec: Spec) -> None:
            spec.named[0].weight = 3.0

        assert edit(gate(named=twice), move)["named"] == twice[::-1]
        assert "its own host" in str(refusal(gate(named=twice), change))

    def test_that_no_class_gives_are_names_in_custom_resources(self) -> None:
        rooms = [{"name": name, "size": 1, "color": name} for name in "abc"]

        def change(spec: Rooms) -> None:
            spec.rooms[1].size = 2
            spec.rooms = [*spec.rooms[::-1], Room("d")]

        def rename(spec: Rooms) -> None:
            spec.rooms[1].name = "d"

        def repeat(spec: Rooms) -> None:
            spec.rooms.append(Room("a"))

        kind = msgspec.defstruct("Cave", [("spec", Rooms)])
        assert edit(gate(rooms=rooms), change, kind)["rooms"] == [
            rooms[2],
            {**rooms[1], "size": 2},
            rooms[0],
            {"name": "d", "size": 1},
        ]
        assert refusal(gate(rooms=rooms), rename, kind)
        assert refusal(gate(rooms=rooms), repeat, kind)

    def test_of_metadata_and_conditions_need_no_declaration(self) -> None:
        original = gate()
        conditions = [
            {"type": condition, "status": "True", "severity": "low"} for condition in ("Ready", "Synced")
        ]
        owners = [
            {"apiVersion": "v1", "kind": "A", "name": letter, "uid": letter, "future": letter}
            for letter in "xy"
        ]
        original["status"] = {"conditions": conditions}
        original["metadata"]["ownerReferences"] = owners
        raw = msgspec.json.encode(original)
        edited = msgspec.json.decode(raw, type=Door)
        assert edited.status is not None
        edited.status.conditions[1].status = "False"
        edited.status.conditions.reverse()
        edited.metadata.owner_references.reverse()
        merged = with_unknown_fields(raw, edited)
        assert merged["status"]["conditions"] == [{**conditions[1], "status": "False"}, conditions[0]]
        assert merged["metadata"]["ownerReferences"] == owners[::-1]


class TestBuiltInKinds:
    """Kubernetes' own types have keys; what has none is found by equality."""

    def deployment(self) -> Object:
        containers = [
            {
                "name": name,
                "image": f"{name}:1",
                "ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 8}],
            }
            for name in ("web", "log")
        ]
        aliases = [{"ip": f"10.0.0.{number}", "hostnames": [f"h{number}"]} for number in (1, 2)]
        tolerations = [{"key": key, "operator": "Exists"} for key in "ab"]
        pod = {"containers": containers, "hostAliases": aliases, "tolerations": tolerations}
        spec = {"replicas": 1, "template": {"spec": pod}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}

    def kind(self, pod: type[Any]) -> type[Any]:
        template = msgspec.defstruct("Template", [("spec", pod)])
        spec = msgspec.defstruct("DeploymentSpec", [("template", template)])
        return msgspec.defstruct("Deployment", [("spec", spec)])

    def test_containers_ports_and_aliases_are_found_by_their_keys(self) -> None:
        def change(spec: Any) -> None:
            pod = spec.template.spec
            pod.containers.reverse()
            pod.containers[0].ports[0].name = "metrics"
            pod.host_aliases.reverse()

        original = self.deployment()["spec"]["template"]["spec"]
        pod = edit(self.deployment(), change, self.kind(KeyedPod))["template"]["spec"]
        web, log = original["containers"]
        assert pod["containers"] == [{**log, "ports": [{**log["ports"][0], "name": "metrics"}]}, web]
        assert pod["hostAliases"] == original["hostAliases"][::-1]

    def test_a_class_without_the_key_is_refused_with_the_keys_name(self) -> None:
        def change(spec: Any) -> None:
            spec.template.spec.containers[0].ports[0].name = "http"

        error = refusal(self.deployment(), change, self.kind(PodWithout))
        assert error.field == "spec.template.spec.containers[web].ports"
        assert "give PortWithoutProtocol the fields that identify an item (protocol)" in str(error)

    def test_tolerations_have_no_key(self) -> None:
        def move(spec: Any) -> None:
            spec.template.spec.tolerations.reverse()

        def change(spec: Any) -> None:
            spec.template.spec.tolerations[0].key = "c"

        tolerations = self.deployment()["spec"]["template"]["spec"]["tolerations"]
        kind = self.kind(TolerantPod)
        assert edit(self.deployment(), move, kind)["template"]["spec"]["tolerations"] == tolerations[::-1]
        assert refusal(self.deployment(), change, kind).field.endswith("tolerations")


class TestSets:
    def test_keep_the_order_of_the_server(self) -> None:
        def change(spec: Spec) -> None:
            spec.hosts = (spec.hosts - {"c"}) | {"z", "d"}

        assert edit(gate(hosts=["c", "b", "a"]), change)["hosts"] == ["b", "a", "d", "z"]

    def test_have_no_order(self) -> None:
        def change(spec: Spec) -> None:
            spec.hosts = {*"cab"}
            spec.numbers = frozenset([3, 1, 2])
            spec.names = ["changed"]

        merged = edit(gate(hosts=["b", "c", "a"], numbers=[2, 3, 1], names=[]), change)
        assert (merged["hosts"], merged["numbers"]) == (["b", "c", "a"], [2, 3, 1])

    def test_within_items_have_no_order(self) -> None:
        kind = msgspec.defstruct("Tags", [("spec", TaggedItems)])
        items = [{"tags": [*"cab"], "future": 1}, {"tags": [*"xzy"], "future": 2}]

        def change(spec: TaggedItems) -> None:
            spec.items = [Tagged({*"zyx"}), Tagged({*"bca"})]

        assert edit(gate(items=items), change, kind)["items"] == items[::-1]


def test_a_list_of_scalars_is_what_the_edit_says() -> None:
    def change(spec: Spec) -> None:
        spec.names = ["c", "a", "a", "d"]

    assert edit(gate(names=["a", "b", "c"]), change)["names"] == ["c", "a", "a", "d"]


def test_lists_in_dicts_are_found_by_their_names() -> None:
    def change(spec: Spec) -> None:
        spec.groups["x"].reverse()
        spec.groups["z"] = spec.groups.pop("y")

    assert edit(gate(groups={"x": ABC, "y": [{"host": "q"}]}), change)["groups"] == {
        "x": ABC[::-1],
        "z": [{"host": "q"}],
    }


class TestUnions:
    def test_items_keep_the_fields_of_their_variant(self) -> None:
        sources = [
            {"type": "secret", "name": "a", "optional": True},
            {"type": "volume", "path": "/a", "readOnly": True},
        ]

        def change(spec: Spec) -> None:
            spec.sources.reverse()

        assert edit(gate(sources=sources), change)["sources"] == sources[::-1]

    def test_another_variant_gets_no_fields_of_the_old_one(self) -> None:
        def change(spec: Spec) -> None:
            spec.source = Volume("/a")

        assert edit(gate(source={"type": "secret", "name": "a"}), change)["source"] == {
            "type": "volume",
            "path": "/a",
        }
        error = refusal(gate(source={"type": "secret", "name": "a", "optional": True}), change)
        assert error.field == "spec.source"
        assert "Secret" in str(error)
        assert "optional" in str(error)

    def test_a_change_of_a_field_keeps_the_others(self) -> None:
        def change(spec: Spec) -> None:
            assert isinstance(spec.source, Secret)
            spec.source.name = "b"

        changed = edit(gate(source={"type": "secret", "name": "a", "optional": True}), change)
        assert changed["source"] == {"type": "secret", "name": "b", "optional": True}

    def test_text_may_replace_an_object(self) -> None:
        def change(spec: Spec) -> None:
            spec.address = "web"

        assert edit(gate(address={"number": 1, "protocol": "TCP", "future": 1}), change)["address"] == "web"


def test_fields_of_a_typed_dict_may_be_unknown_too() -> None:
    def change(spec: Spec) -> None:
        spec.endpoints.reverse()

    def replace(spec: Spec) -> None:
        spec.endpoints[0]["url"] = "c"

    endpoints = [{"url": "a", "future": 1}, {"url": "b", "future": 2}]
    assert edit(gate(endpoints=endpoints), change)["endpoints"] == endpoints[::-1]
    assert "Endpoint" in str(refusal(gate(endpoints=endpoints), replace))


def test_items_of_a_tuple_are_known_by_their_positions() -> None:
    def change(spec: Spec) -> None:
        assert spec.pair is not None
        spec.pair[1].host = "c"

    assert edit(gate(pair=[rule("a"), rule("b")]), change)["pair"] == [rule("a"), {**rule("b"), "host": "c"}]


def test_true_is_not_one_and_one_is_one_point_zero() -> None:
    def change(spec: Spec) -> None:
        spec.anything = [1, {"a": True}]

    assert str(edit(gate(anything=[True, {"a": 1}]), change)["anything"]) == "[1, {'a': True}]"
    raw = msgspec.json.encode(gate(anything={"a": [1, 1.0]}))
    assert json_patch(raw, gate(anything={"a": [1.0, 1]})) == []
    assert json_patch(raw, gate(anything={"a": [True, 1.0]})) == [
        {"op": "replace", "path": "/spec/anything/a", "value": [True, 1.0]}
    ]


def test_numbers_beyond_64_bits_stay() -> None:
    huge = 12345678901234567890123

    def change(spec: Spec) -> None:
        spec.rules.reverse()

    rules = [rule("a", number=huge), rule("b", number=huge + 1)]
    assert edit({**gate(rules=rules, future=huge)}, change) == gate(rules=rules[::-1], future=huge)["spec"]


@pytest.mark.parametrize("levels", [10, 2_000, 9_000])
def test_values_of_any_depth_stay_and_are_compared(levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    rules = b'{"host":"a","future":%s},{"host":"a","future":%s},{"host":"b"}' % (deep, deep)
    body = b'{"metadata":{"name":"a"},"spec":{"rules":[%s],"anything":[%s,1]}}' % (rules, deep)
    edited = decoder_of(Gate)(body, None)
    edited.spec.rules.reverse()
    edited.spec.anything[1] = 2
    patched = decode_any(body)
    apply_patch(patched, json_patch(body, edited))
    expected = b'{"host":"b"},{"host":"a","future":%s},{"host":"a","future":%s}' % (deep, deep)
    assert encode(patched) == b'{"metadata":{"name":"a"},"spec":{"rules":[%s],"anything":[%s,2]}}' % (
        expected,
        deep,
    )


def test_keys_of_a_dict_that_are_numbers_are_changed_in_place() -> None:
    def change(spec: Spec) -> None:
        spec.counts[1] = "b"
        del spec.counts[2]

    assert edit(gate(counts={"1": "a", "2": "x"}), change)["counts"] == {"1": "b"}


def test_null_in_a_part_that_is_not_changed_stays() -> None:
    def change(spec: Spec) -> None:
        spec.anything["b"]["c"] = 2

    changed = edit(gate(anything={"a": None, "b": {"c": 1, "d": None}}), change)
    assert changed["anything"] == {"a": None, "b": {"c": 2, "d": None}}


class Sparse(CamelStruct, omit_defaults=True):
    name: str = "none"
    inner: Rule = msgspec.field(default_factory=lambda: Rule(host=""))


class Sparsely(CamelStruct):
    items: list[Sparse] = []
    one: Sparse | None = None


SPARSE = msgspec.defstruct("Sparsely", [("spec", Sparsely)])


def test_a_default_that_json_omits_is_no_change() -> None:
    """msgspec omits a default by identity, so that of what was read is there, and that of what was set is not."""

    def change(spec: Sparsely) -> None:
        assert spec.one is not None
        spec.one.name = Sparse().name
        spec.items[0].name = Sparse().name
        spec.items.reverse()

    items = [{"name": "none", "future": 1}, {"name": "b", "future": 2}]
    merged = edit(gate(items=items, one={"name": "none", "future": 3}), change, SPARSE)
    assert merged == {"items": items[::-1], "one": {"name": "none", "future": 3}}


def test_metadata_of_another_class_is_whole() -> None:
    assert Metadata().labels == {}  # the class of CustomResources omits defaults, too

    def change(spec: Spec) -> None:
        spec.names = ["a"]

    assert edit(gate(), change) == {"names": ["a"]}
