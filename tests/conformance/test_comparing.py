"""What counts as the same, and what is hidden."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.e2e.api import Answer

from .answers import difference
from .masks import mask
from .mutations import mutate, places
from .results import DIFFERS, WORDS
from .samples import SAMPLES, Sample


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web   1/1     Running   12s", "web  1/1  Running  AGE"),
        ('resourceVersion: "12"', 'resourceVersion: "VERSION"'),
        ("creationTimestamp: 2026-01-02T03:04:05Z", "creationTimestamp: TIME"),
        ("uid: 01234567-89ab-cdef-0123-456789abcdef", "uid: UID"),
        (
            "web  ClusterIP  10.0.0.7  <none>  80:31234/TCP",
            "web  ClusterIP  CLUSTER-IP  <none>  80:NODE-PORT/TCP",
        ),
        ("  indented:  value", "  indented:  value"),
    ],
)
def test_what_differs_on_every_server_is_hidden(text: str, shown: str) -> None:
    assert mask(text) == shown


def compare(ours: Answer, theirs: Answer) -> tuple[str, str]:
    difference_found = difference(ours, theirs)
    assert difference_found is not None
    return difference_found.outcome, difference_found.cause


def test_equal_answers_have_no_difference() -> None:
    ours, theirs = ({"metadata": {"resourceVersion": version}, "data": {"k": "1"}} for version in ("3", "44"))
    assert difference(Answer(200, ours), Answer(200, theirs)) is None


def test_other_status_is_a_difference() -> None:
    refusal = {"details": {"causes": [{"reason": "FieldValueRequired", "field": "spec"}]}}
    cause = "accepted, the real server answers 422 (FieldValueRequired)"
    assert compare(Answer(201, {}), Answer(422, refusal)) == (DIFFERS, cause)


def test_other_message_is_a_difference_in_words() -> None:
    assert compare(Answer(400, {"message": "a"}), Answer(400, {"message": "b"})) == (
        WORDS,
        "400 in other words",
    )


def test_missing_field_is_named_without_its_index() -> None:
    ours: Any = {"spec": {"ports": [{"port": 80}]}}
    theirs: Any = {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}
    assert compare(Answer(200, ours), Answer(200, theirs)) == (DIFFERS, ".spec.ports[].protocol: missing")


def test_missing_warning_is_a_difference() -> None:
    assert compare(Answer(200, {}), Answer(200, {}, warnings=("unknown field",))) == (DIFFERS, "warnings")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.plural)
def test_change_keeps_the_sample_and_what_object_it_is(sample: Sample) -> None:
    made = sample.with_name("a")
    for seed in range(50):
        changed = mutate(Random(seed), made)
        assert made == sample.with_name("a")
        assert changed["metadata"]["name"] == "a"
        assert (changed["apiVersion"], changed["kind"]) == (made["apiVersion"], made["kind"])


def test_places_have_json_pointers() -> None:
    assert [place.pointer for place in places({"kind": "A", "a/b": [1]})] == ["/a~1b", "/a~1b/0"]
