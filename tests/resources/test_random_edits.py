"""Random edits through random classes: the merged object, and the patch of a webhook, are what the edit means."""

from __future__ import annotations

import copy
import json
from collections import Counter
from random import Random
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.errors import AmbiguousEditError
from aioinformer.operator.webhooks.patching import json_patch
from aioinformer.resources.merging import with_unknown_fields
from tests.edits.classes import class_of
from tests.edits.editing import Edit
from tests.edits.kinds import BUILT_IN, EVERYTHING, EditedKind
from tests.edits.nodes import normal

Value = dict[str, Any]


def outcome_of(kind: EditedKind, random: Random) -> str:
    """Make an edit, check its outcome, and return it."""
    part = random.choice(
        [name for name in kind.node.fields if name != "metadata" or random.random() < 0.2] or ["metadata"]
    )
    original: Value = {"apiVersion": kind.api_version, "kind": kind.kind, **kind.node.make(random)}
    if part not in original:
        return "nothing to edit"
    original["metadata"] |= {"name": "a", "resourceVersion": "1", "uid": "u"}
    raw = msgspec.json.encode(original)
    view = class_of(kind, part, random)
    edited = msgspec.json.decode(raw, type=view.type)
    meant: Value = copy.deepcopy(original)
    edit = Edit(random)
    edit.apply(view, edited, meant)
    if not edit.is_visible:
        return "looks like another edit"
    text = f"{edit.log}\noriginal {json.dumps(original)}\nmeant {json.dumps(meant)}"
    try:
        merged = with_unknown_fields(raw, edited)
    except AmbiguousEditError:
        if not edit.may_be_refused:
            pytest.fail(text)
        with pytest.raises(AmbiguousEditError):
            json_patch(raw, edited)
        return "refused"
    patched = jsonpatch.apply_patch(json.loads(raw), json.loads(msgspec.json.encode(json_patch(raw, edited))))
    as_written = view.fill if edit.may_get_defaults else lambda value: value
    for result in (merged, patched):
        assert exact(normal(kind.node, as_written(result))) == exact(normal(kind.node, as_written(meant))), (
            f"{json.dumps(result)}\n{text}"
        )
    return "changed" if exact(merged) != exact(original) else "unchanged"


def exact(value: Any) -> str:
    """Return JSON in which True is not 1, and 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{exact(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(exact, value)) + "]"
    return json.dumps(value)


@settings(max_examples=500)
@given(st.integers(0, 1 << 64), st.sampled_from([EVERYTHING, EVERYTHING, *BUILT_IN]))
def test_an_edit_changes_exactly_what_it_means_or_is_refused(seed: int, kind: EditedKind) -> None:
    outcome_of(kind, Random(seed))


def test_most_edits_are_made() -> None:
    random = Random(1)
    outcomes = Counter(outcome_of(kind, random) for kind in [EVERYTHING, *BUILT_IN] for _ in range(150))
    made, refused = outcomes["changed"], outcomes["refused"]
    assert made > 3 * refused > 30, outcomes
