"""Custom resources with a schema: unknown fields, defaults, and values that do not fit."""

from __future__ import annotations

from typing import Any

from ..api import JSON_PATCH, MERGE, Object
from ..definitions import definition
from ..recording import AnswerRecorder
from .common import version_of

APPLY = "application/apply-patch+yaml"
TEXT = {"type": "string"}
SHORT = {"type": "string", "maxLength": 20}
NUMBER = {"type": "integer"}


EMBEDDED: Object = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def struct(**properties: Any) -> Object:
    """An object's schema."""
    return {"type": "object", "properties": properties}


def with_rules(schema: Object, *rules: Object) -> Object:
    """A schema with rules in CEL."""
    return schema | {"x-kubernetes-validations": [*rules]}


FIELDS: Object = {
    "size": NUMBER | {"minimum": 1, "maximum": 10},
    "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "maximum": 2.5, "multipleOf": 0.5},
    "small": NUMBER | {"format": "int32"},
    "even": NUMBER | {"multipleOf": 2},
    "name": TEXT | {"minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "mode": TEXT | {"enum": ["fast", "slow"]},
    "level": NUMBER | {"enum": [1, 2]},
    "on": {"type": "boolean"},
    "port": {"x-kubernetes-int-or-string": True},
    "maybe": TEXT | {"nullable": True},
    "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "maxItems": 3},
    "many": {"type": "array", "items": NUMBER, "minItems": 2},
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "kind"],
        "items": struct(name=TEXT, kind=TEXT | {"default": "main"}, amount=NUMBER | {"minimum": 0})
        | {"required": ["name"]},
    },
    "labels": {"type": "object", "additionalProperties": TEXT | {"maxLength": 3}, "maxProperties": 2},
    "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "either": struct(a=NUMBER, b=NUMBER) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "some": struct(a=NUMBER, b=NUMBER) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "never": struct(a=NUMBER, b=NUMBER) | {"not": {"required": ["a", "b"]}},
    "all": NUMBER | {"allOf": [{"minimum": 3}, {"maximum": 5}]},
    "deep": struct(enabled={"type": "boolean", "default": True}, inner=struct(count=NUMBER | {"default": 7}))
    | {"default": {}},
    **{
        format_.replace("-", ""): TEXT | {"format": format_}
        for format_ in (
            *("date", "date-time", "duration", "ipv4", "ipv6", "cidr", "uuid", "email", "hostname", "uri"),
            *("mac", "byte", "k8s-short-name", "unknown-format"),
        )
    },
}


def cases(name: str, *values: Any) -> list[Object]:
    """One spec for each value of a field."""
    return [{name: value} for value in values]


INVALID: tuple[Object, ...] = (
    *cases("size", 0, 11, 1.5, "1", True, None, [], {}),
    *cases("ratio", 0, 2.6, 3, 0.7, 1, "x"),
    *cases("small", 2**31, 2**31 - 1, 1.0, "x"),
    *cases("even", 3, 4),
    *cases("name", "a", "abcdef", "A1", "ab\n", 7, "äö"),
    *cases("mode", "none", 1, "fast"),
    *cases("level", 3, 1, "1"),
    *cases("port", 1, "1", True, 1.5, {}),
    *cases("maybe", None, 1),
    *cases("tags", ["a", "a"], ["a", "b", "c", "d"], "a", [1], [None]),
    *cases("many", [1], [], [1, "a"]),
    *cases(
        "parts",
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a"}, {"name": "a", "kind": "other"}],
        [{}],
        [{"name": "a", "amount": -1, "unknown": 1}],
        ["a"],
    ),
    *cases("labels", {"a": "1234"}, {"a": "1", "b": "2", "c": "3"}, {"a": 1}, {"a": None}),
    {"anything": {"x": {"y": [1, None]}, "z": None}},
    {"anything": 7},
    {"unknown": 1, "other": {"a": [1]}},
    *cases(
        "template",
        {},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {}},
        {"apiVersion": "v1", "kind": ""},
        {"apiVersion": "a/b/c", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "-"}}},
    ),
    *cases("either", {}, {"a": 1}, {"a": 1, "b": 2}),
    *cases("some", {}, {"a": 1}, {"a": 1, "b": 2}),
    *cases("never", {"a": 1}, {"a": 1, "b": 2}),
    *cases("all", 2, 4, 6),
    {"deep": {"enabled": False}},
    {"deep": {"inner": {}}},
    {"deep": None},
    *cases("size", 1e18, 2**63, 1.0, 1e1),
    *cases("ratio", 1e300, 2**70),
    *cases("even", 1e18, 1e3),
    *cases("date", "0000-01-01", "0000-02-29", "0000-02-30", [], [True], {}),
    *cases("datetime", "0000-01-01T00:00:00Z", "2026-01-31t10:00:00z", "2026-01-31T10:00:00x5Z", [True]),
    *cases("datetime", "2026-01-31T10:00:00+99:99"),
    *cases("date", "2026-01-31", "2026-02-31", "x"),
    *cases("datetime", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00", "2026-01-31 10:00:00Z", "x"),
    *cases("duration", "1h30m", "5 days", "x", ""),
    *cases("ipv4", "10.0.0.1", "10.0.0", "::1", "010.0.0.1"),
    *cases("ipv6", "::1", "10.0.0.1", "::g"),
    *cases("cidr", "10.0.0.0/8", "10.0.0.0/33", "::/0", "10.0.0.0"),
    *cases("uuid", "7f2c1d0a-0000-4000-8000-000000000000", "x"),
    *cases("email", "a@example.com", "A <a@example.com>", "a@", "a"),
    *cases("hostname", "a.example.com", "-a", "a_b", "1a"),
    *cases("uri", "https://a/b", "/a", "a", "a b"),
    *cases("mac", "00:00:5e:00:53:01", "00:00"),
    *cases("byte", "YQ==", "YQ", "?"),
    *cases("k8sshortname", "a-b", "A", "-a"),
    {"unknownformat": "whatever"},
)


async def custom_values(server: AnswerRecorder) -> None:
    """Valid and invalid values in every kind of field."""
    group = f"values.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(_definition_of(group, struct(spec=struct(**FIELDS))))
    for number, spec in enumerate(INVALID):
        body = _relic(group, f"relic-{number}", spec)
        await server.ask("POST", relics, body)


async def custom_updates(server: AnswerRecorder) -> None:
    """What an update changes, and which faults of unchanged values it tolerates."""
    group = f"updates.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    loose = {
        "size": NUMBER,
        "name": TEXT,
        "parts": FIELDS["parts"],
        "tags": {"type": "array", "items": TEXT},
        "labels": {"type": "object", "additionalProperties": TEXT},
    }
    status = struct(phase=TEXT, count=NUMBER)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.{group}"
    await server.define(_definition_of(group, struct(spec=struct(**loose), status=status), status=True))
    parts = [{"name": "a", "amount": 1}, {"name": "b"}]
    spec = {"size": 0, "name": "A", "parts": parts, "tags": ["x", "x"], "labels": {"a": "12345"}}
    await server.ask("POST", relics, _relic(group, "a", spec) | {"status": {"phase": "ignored"}})
    await server.ask("PATCH", f"{relics}/a/status", {"status": {"phase": 7}}, content_type=MERGE)
    await server.ask("PATCH", f"{relics}/a/status", {"status": {"phase": "Odd", "x": 1}}, content_type=MERGE)
    strict = struct(
        spec=struct(**{name: FIELDS[name] for name in loose} | {"extra": TEXT | {"default": "e"}})
        | {"required": ["extra"]},
        status=struct(phase=TEXT | {"enum": ["Even"]}, count=NUMBER | {"minimum": 0}),
    )
    schema = _definition_of(group, strict)["spec"]["versions"][0]["schema"]
    patch = [{"op": "replace", "path": "/spec/versions/0/schema", "value": schema}]
    await server.ask("PATCH", path, patch, content_type=JSON_PATCH)
    await server.until_shown(f"{relics}/a", "extra")
    await server.ask("GET", f"{relics}/a")
    await server.ask("GET", relics)
    changes: tuple[Any, ...] = (
        {"labels": {"b": "ok"}},
        {"labels": {"b": "far too long"}},
        {"size": 0},
        {"size": 5},
        {"size": 0},
        {"name": "B"},
        {"extra": None},
        {"parts": [{"name": "b"}, {"name": "a", "amount": -1}]},
        {"unknown": 1},
    )
    for spec in changes:
        await server.ask("PATCH", f"{relics}/a", {"spec": spec}, content_type=MERGE)
    for status in ({"phase": "Odd"}, {"count": -1}, {"phase": "Even"}, {"count": 1}, {"more": 1}):
        await server.ask("PATCH", f"{relics}/a/status", {"status": status}, content_type=MERGE)
    for validation in ("Strict", "Warn", "Ignore"):
        query = {"fieldValidation": validation}
        body = _relic(
            group, validation.lower(), {"name": "ok", "size": 1, "odd": 1, "parts": [{"name": "a", "x": 1}]}
        )
        body["metadata"]["nonsense"] = 1
        await server.ask("POST", relics, body | {"top": 1}, query)
        patched = {"spec": {"odd": 2}}
        await server.ask("PATCH", f"{relics}/a", patched, query, content_type=MERGE)
    for applied in ({"size": 3}, {"odd": 1}, {"size": 30}):
        body = _relic(group, "applied", applied)
        await server.ask("PATCH", f"{relics}/applied", body, {"fieldManager": "me"}, content_type=APPLY)
    await server.ask("GET", f"{relics}/applied")


RULED = with_rules(
    struct(
        least=NUMBER,
        most=NUMBER,
        name=with_rules(SHORT, {"rule": "self == oldSelf", "message": "name is immutable"}),
        names={
            "type": "array",
            "maxItems": 5,
            "items": with_rules(
                SHORT, {"rule": "self.startsWith('a')", "messageExpression": "'not ' + self"}
            ),
        },
        ports=with_rules(
            {"x-kubernetes-int-or-string": True}, {"rule": "type(self) == int ? self > 0 : self != ''"}
        ),
        amounts=with_rules(
            {"type": "object", "additionalProperties": SHORT, "maxProperties": 5},
            {"rule": "self.all(k, isQuantity(self[k]) && quantity(self[k]).isLessThan(quantity('1Gi')))"},
        ),
        address=with_rules(SHORT, {"rule": "isIP(self) && cidr('10.0.0.0/8').containsIP(self)"}),
        link=with_rules(
            SHORT,
            {"rule": "isURL(self) && url(self).getScheme() == 'https'", "reason": "FieldValueForbidden"},
        ),
        sorted=with_rules(
            {"type": "array", "maxItems": 5, "items": NUMBER}, {"rule": "self.isSorted() && self.sum() < 10"}
        ),
        since=with_rules(
            SHORT | {"format": "date-time"}, {"rule": "self > timestamp('2020-01-01T00:00:00Z')"}
        ),
        wait=with_rules(SHORT | {"format": "duration"}, {"rule": "self < duration('1h')"}),
        version=with_rules(SHORT, {"rule": "semver(self).isGreaterThan(semver('1.0.0'))"}),
        parts={
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": with_rules(
                struct(name=SHORT, size=NUMBER) | {"required": ["name"]},
                {"rule": "self.size >= oldSelf.size", "fieldPath": ".size"},
            ),
        },
        once=with_rules(
            SHORT,
            {
                "rule": "oldSelf.hasValue() || self == 'first'",
                "optionalOldSelf": True,
                "message": "not first",
            },
        ),
        gone={"type": "boolean"},
        **{"with-dash": NUMBER, "namespace": SHORT},
    ),
    {
        "rule": "!has(self.least) || self.least <= self.most",
        "message": "least is more than most",
        "fieldPath": ".least",
    },
    {"rule": "!has(self.__namespace__) || self.__namespace__ != 'no'", "reason": "FieldValueRequired"},
    {"rule": "!has(self.with__dash__dash) || self.with__dash__dash / 0 == 1", "message": "divided"},
    {"rule": "!has(oldSelf.gone) || has(self.gone)", "message": "gone stays"},
)

AGAINST_RULES: tuple[Object, ...] = (
    {"least": 1, "most": 2},
    {"least": 3, "most": 2},
    {"least": 3},
    *cases("names", ["a", "b"], ["ab"]),
    *cases("ports", 0, "", 1),
    *cases("amounts", {"a": "1Mi"}, {"a": "2Gi"}, {"a": "x"}),
    *cases("address", "10.1.1.1", "11.1.1.1", "x"),
    *cases("link", "https://a", "http://a", "x"),
    *cases("sorted", [1, 2], [2, 1], [4, 6]),
    *cases("since", "2021-01-01T00:00:00Z", "2019-01-01T00:00:00Z"),
    *cases("wait", "5m", "2h"),
    *cases("version", "1.2.3", "0.1.0", "x"),
    *cases("once", "first", "second"),
    *cases("namespace", "yes", "no"),
    {"with-dash": 1},
    {"least": "x", "address": "x"},
)


async def custom_rules(server: AnswerRecorder) -> None:
    """Rules in CEL."""
    group = f"rules.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(_definition_of(group, struct(spec=RULED)))
    for number, spec in enumerate(AGAINST_RULES):
        await server.ask("POST", relics, _relic(group, f"relic-{number}", spec))
    start = {
        "name": "a",
        "gone": True,
        "once": "first",
        "parts": [{"name": "a", "size": 3}, {"name": "b", "size": 3}],
    }
    await server.ask("POST", relics, _relic(group, "a", start))
    for spec in (
        {"name": "b"},
        {"gone": None},
        {"once": "second"},
        {"parts": [{"name": "b", "size": 2}, {"name": "a", "size": 4}]},
        {"parts": [{"name": "c", "size": 1}, {"name": "a", "size": 4}]},
        {"least": 1},
    ):
        await server.ask("PATCH", f"{relics}/a", {"spec": spec}, content_type=MERGE)


INVALID_SCHEMAS: tuple[Object, ...] = (
    {"type": "array", "items": TEXT},
    {"type": "object", "additionalProperties": TEXT},
    *(
        struct(a=schema)
        for schema in (
            {},
            {"type": "text"},
            {"type": "null"},
            {"$ref": "#/a"},
            {"type": "array"},
            {"type": "object", "items": TEXT},
            TEXT | {"default": 5},
            NUMBER | {"default": 5, "maximum": 3},
            struct(b=TEXT) | {"default": {"c": 1}},
            TEXT | {"pattern": "("},
            TEXT | {"pattern": "^(?=a)b"},
            TEXT | {"pattern": "[a"},
            TEXT | {"pattern": "*"},
            *(
                TEXT | {"pattern": pattern}
                for pattern in (
                    *(
                        r"a\Z",
                        "a{1,2000}",
                        "(a{100}){11}",
                        "a++",
                        "(?x)a",
                        "(?#b)a",
                        "(?<=a)b",
                        "(?<!a)b",
                        "(?>a)",
                    ),
                    *(
                        "(a)?(?(1)b|c)",
                        r"(a)\1",
                        r"\u0041",
                        r"\C",
                        "[z-a]",
                        "[[:foo:]]",
                        r"\pX",
                        "a**",
                        "\\",
                        "a)",
                    ),
                )
            ),
            NUMBER | {"default": 2**63},
            NUMBER | {"default": 2**70},
            TEXT | {"default": "2020-01-01T00:00:00", "format": "date-time"},
            EMBEDDED | {"default": {}},
            EMBEDDED | {"default": {"apiVersion": "a/b/c", "kind": "Pod"}},
            struct(b=EMBEDDED) | {"default": {"b": {}}},
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"kind": TEXT | {"default": "Pod"}, "apiVersion": TEXT | {"default": "v1"}},
                "default": {},
            },
            struct(b=TEXT) | {"additionalProperties": TEXT},
            {"type": "array", "items": TEXT, "uniqueItems": True},
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "map"},
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "bag"},
            {
                "type": "array",
                "items": struct(n=TEXT),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["n"],
            },
            {
                "type": "array",
                "items": struct(n=TEXT),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["m"],
            },
            {"type": "array", "items": struct(n=TEXT), "x-kubernetes-list-type": "set"},
            {"type": "object", "x-kubernetes-embedded-resource": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            NUMBER | {"anyOf": [{"type": "integer"}]},
            NUMBER | {"allOf": [{"properties": {"x": {"minimum": 1}}}]},
            NUMBER | {"oneOf": [{"minimum": 1, "description": "x"}]},
            with_rules(TEXT, {"rule": "self.foo("}),
            with_rules(TEXT, {"rule": "self > 5"}),
            with_rules(TEXT, {"rule": "self + 'a'"}),
            with_rules(TEXT, {"rule": "unknown(self)"}),
            with_rules(TEXT, {"rule": ""}),
            with_rules(TEXT, {"rule": "self == 'a'", "message": "  "}),
            with_rules(TEXT, {"rule": "self ==\n'a'"}),
            with_rules(TEXT, {"rule": "self == 'a'", "reason": "Nonsense"}),
            with_rules(TEXT, {"rule": "self == 'a'", "messageExpression": "5"}),
            with_rules(struct(b=TEXT), {"rule": "self.b == 'a'", "fieldPath": ".c"}),
            with_rules(struct(b=TEXT), {"rule": "self.c == 'a'"}),
        )
    ),
    struct(metadata=struct(labels={"type": "object"})),
    struct(kind=NUMBER),
    struct(spec=struct(), apiVersion=TEXT | {"default": "x"}),
)


EMPTY: Object = {"default": {}}

DEFAULTS: Object = {
    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "default": ["a", "a"]},
    "map": {
        "type": "array",
        "items": struct(k=TEXT) | {"required": ["k"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "default": [{"k": "a"}, {"k": "a"}],
    },
    "moment": TEXT | {"format": "date-time", "default": "0000-01-01T00:00:00Z"},
    "least": NUMBER | {"minimum": -(2**63)},
    "most": NUMBER | {"maximum": 2**63},
    "fine": NUMBER | {"maximum": 2**63 - 1024},
    "half": NUMBER | {"multipleOf": 0.5},
    "tenth": {"type": "number", "multipleOf": 0.1},
    "wide": {"type": "number", "maximum": 1e300},
    "choice": TEXT | {"nullable": True, "enum": ["a", None]},
    "maybe": NUMBER | {"nullable": True, "default": 3},
    "no_list": TEXT | {"format": "uuid", "minItems": 1, "maxItems": 0},
}
OF_DEFAULTS: tuple[Object, ...] = (
    {},
    {"set": ["b"], "map": []},
    *({"set": [], "map": []} | given for given in (
        *cases("least", 1), *cases("most", 1), *cases("fine", 1, 2**63 - 1), *cases("half", 1), *cases("tenth", 1, 0.3),
        *cases("wide", 1, 1.5), *cases("choice", None, "a"), *cases("maybe", None, 1), *cases("no_list", [], [1]),
    )),
)  # fmt: skip


async def custom_defaults(server: AnswerRecorder) -> None:
    """Defaults that the definition may have, also of a status, and limits that no value can meet."""
    group = f"defaults.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    status = struct(
        ready={"type": "boolean", "default": False}, part=struct(n=NUMBER | {"default": 1}) | EMPTY
    )
    schema = struct(spec=struct(**DEFAULTS), status=status | {"default": {"ready": True}})
    await server.define(_definition_of(group, schema, status=True))
    for number, spec in enumerate(OF_DEFAULTS):
        await server.ask("POST", relics, _relic(group, f"relic-{number}", spec))
    whole = _relic(group, "a", {"set": [], "map": []})
    await server.ask("POST", relics, whole | {"status": {"ready": False}})
    await server.ask("PATCH", f"{relics}/a", {"status": None, "spec": {"fine": 1}}, content_type=MERGE)
    await server.ask("PATCH", f"{relics}/a/status", {"status": {"ready": None}}, content_type=MERGE)
    await server.ask("PATCH", f"{relics}/a/status", {"status": None}, content_type=MERGE)


async def refused_schemas(server: AnswerRecorder) -> None:
    """Schemas that no CustomResourceDefinition can have."""
    group = f"schemas.{server.namespace}.example.com"
    for schema in INVALID_SCHEMAS:
        made = _definition_of(group, schema)
        await server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made)


async def differing_versions(server: AnswerRecorder) -> None:
    """Two versions with other fields and no conversion: each drops what it does not know, on reads and on writes."""
    group = f"differing.{server.namespace}.example.com"
    newer, older = (f"/apis/{group}/{version}/namespaces/NS/relics" for version in ("v1", "v1beta1"))
    shared = {"size": NUMBER | {"default": 1}}
    made = _definition_of(
        group,
        struct(spec=struct(host=TEXT | {"default": "h"}, **shared), status=struct(n=NUMBER)),
        status=True,
    )
    (v1,) = made["spec"]["versions"]
    fields = struct(domain=TEXT | {"default": "d"}, parts=struct(a=TEXT), **shared)
    beta = {"openAPIV3Schema": struct(spec=fields, status=struct(phase=TEXT, n=NUMBER))}
    made["spec"]["versions"].append({**v1, "name": "v1beta1", "storage": False, "schema": beta})
    await server.define(made)
    await server.until(200, older)
    first = _relic(group, "older", {"domain": "x", "size": 3, "parts": {"a": "b"}})
    created = await server.ask("POST", older, {**first, "apiVersion": f"{group}/v1beta1"})
    await server.ask("POST", newer, _relic(group, "newer", {"host": "y", "size": 4}))
    for path in (older, newer):
        for name in ("older", "newer"):
            await server.ask("GET", f"{path}/{name}")
        await server.ask("GET", path)
    for size, path in enumerate((older, newer), 5):
        for name in ("older", "newer"):
            await server.ask("PATCH", f"{path}/{name}", {"spec": {"size": size}}, content_type=MERGE)
            await server.ask("PATCH", f"{path}/{name}", {"spec": {"domain": "z"}}, content_type=MERGE)
        await server.ask(
            "PATCH", f"{path}/newer/status", {"status": {"n": size, "phase": "p"}}, content_type=MERGE
        )
        await server.ask("GET", f"{path}/newer")
    await server.ask("PUT", f"{older}/older", {**created.body, "spec": {"domain": "w"}})
    for path in (older, newer):
        await server.watch(path, {"resourceVersion": version_of(created)})
    await server.ask("DELETE", f"{older}/newer")
    await server.ask("GET", newer)


def _definition_of(group: str, schema: Object, *, status: bool = False) -> Object:
    made = definition(group, "Relic")
    (version,) = made["spec"]["versions"]
    version["schema"] = {"openAPIV3Schema": schema}
    if not status:
        del version["subresources"]
    return made


def _relic(group: str, name: str, spec: Any) -> Object:
    return {"apiVersion": f"{group}/v1", "kind": "Relic", "metadata": {"name": name}, "spec": spec}
