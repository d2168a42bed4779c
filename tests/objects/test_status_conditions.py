"""conditions.py: pure functions, by apimachinery's rules."""

from __future__ import annotations

import asyncio
import copy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    KubeObject,
    find_status_condition,
    is_status_condition_false,
    is_status_condition_true,
    remove_status_condition,
    set_ready_condition,
    set_status_condition,
)
from aioinformer.testing import Simulation, simulate

from ..samples import Pod

BEGAN, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
CREATED: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "generation": 3}}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Done",
    "message": "",
    "observedGeneration": 3,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
KINDS = pytest.mark.parametrize("kind", [dict, KubeObject.from_dict], ids=["dict", "KubeObject"])


def with_conditions(*conditions: Any, **metadata: Any) -> dict[str, Any]:
    status = {"phase": "x", "conditions": list(conditions)}
    return {**CREATED, "metadata": {**CREATED["metadata"], **metadata}, "status": status}


@KINDS
class TestSetting:
    @pytest.mark.parametrize(
        "status", [{}, {"status": None}, {"status": {}}, {"status": {"conditions": None}}]
    )
    def test_the_first(self, kind: Any, status: Any) -> None:
        obj = kind({**CREATED, **status})
        untouched = copy.deepcopy(obj)
        after, changed = set_status_condition(obj, "Ready", "True", "Done", now=BEGAN)
        assert changed
        assert type(after) is type(obj)
        assert after["status"]["conditions"] == [READY]
        assert obj == untouched

    def test_unchanged_object_is_returned_itself(self, kind: Any) -> None:
        obj = kind(with_conditions(READY))
        after, changed = set_status_condition(obj, "Ready", "True", "Done", now=LATER)
        assert (after is obj, changed) == (True, False)

    def test_transition_time_changes_with_the_status(self, kind: Any) -> None:
        obj = kind(with_conditions(READY))
        after, changed = set_status_condition(obj, "Ready", "False", "Broken", "no", now=LATER)
        assert changed
        assert after["status"] == {
            "phase": "x",
            "conditions": [
                {
                    **READY,
                    "status": "False",
                    "reason": "Broken",
                    "message": "no",
                    "lastTransitionTime": "2026-01-02T00:00:00Z",
                }
            ],
        }

    @pytest.mark.parametrize(
        ("reason", "message", "generation"), [("Other", "", 3), ("Done", "other", 3), ("Done", "", 4)]
    )
    def test_with_another_reason_message_or_generation_it_stays(
        self, kind: Any, reason: str, message: str, generation: int
    ) -> None:
        obj = kind(with_conditions(READY, generation=generation))
        after, changed = set_status_condition(obj, "Ready", "True", reason, message, now=LATER)
        assert changed
        assert after["status"]["conditions"] == [
            {**READY, "reason": reason, "message": message, "observedGeneration": generation}
        ]

    def test_others_their_order_and_their_fields_stay(self, kind: Any) -> None:
        other, own = {"type": "Other", "status": "False"}, {**READY, "severity": "high"}
        obj, _ = set_status_condition(
            kind(with_conditions(own, other)), "Ready", "Unknown", "Done", now=LATER
        )
        assert [condition["type"] for condition in obj["status"]["conditions"]] == ["Ready", "Other"]
        assert obj["status"]["conditions"][0]["severity"] == "high"
        assert obj["status"]["conditions"][1] == other
        obj, _ = set_status_condition(obj, "New", "True", "Done", now=LATER)
        assert [condition["type"] for condition in obj["status"]["conditions"]] == ["Ready", "Other", "New"]

    def test_what_has_no_generation_was_observed_at_none(self, kind: Any) -> None:
        obj, changed = set_status_condition(
            kind(with_conditions(READY, generation=0)), "Ready", "True", "Done", now=LATER
        )
        assert changed
        assert "observedGeneration" not in obj["status"]["conditions"][0]
        assert not set_status_condition(obj, "Ready", "True", "Done", now=LATER)[1]

    @pytest.mark.parametrize("unset", [{}, {"message": "", "observedGeneration": 0}, {"message": None}])
    def test_what_is_not_said_is_as_what_is_empty(self, kind: Any, unset: Any) -> None:
        said = {name: READY[name] for name in ("type", "status", "reason")}
        obj = kind(with_conditions({**said, **unset}, generation=0))
        assert set_status_condition(obj, "Ready", "True", "Done", now=LATER) == (obj, False)
        obj, changed = set_status_condition(obj, "Ready", "True", "Done", "more", now=LATER)
        assert changed
        assert obj["status"]["conditions"] == [{**said, "message": "more"}]

    def test_times_are_utc_and_the_clocks_by_default(self, kind: Any) -> None:
        here = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        obj, _ = set_status_condition(kind(CREATED), "Ready", "True", "Done", now=here)
        assert obj["status"]["conditions"] == [READY]
        before = datetime.now(UTC).replace(microsecond=0)
        obj, _ = set_status_condition(kind(CREATED), "Ready", "True", "Done")
        stamp = datetime.fromisoformat(obj["status"]["conditions"][0]["lastTransitionTime"])
        assert before <= stamp <= datetime.now(UTC)


def test_subclass_is_kept() -> None:
    class Site(KubeObject, frozen=True, eq=False, gc=False):
        pass

    site, changed = set_status_condition(Site.from_dict(CREATED), "Ready", "True", "Done")
    assert (type(site), changed) == (Site, True)


def test_simulation_uses_its_own_clock() -> None:
    async def scenario(world: Simulation) -> None:
        await asyncio.sleep(3600)
        obj, _ = set_status_condition(dict(CREATED), "Ready", "True", "Done")
        stamp = datetime.fromisoformat(obj["status"]["conditions"][0]["lastTransitionTime"])
        created = world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})["metadata"]
        assert stamp == datetime.fromisoformat(created["creationTimestamp"])

    simulate(scenario)


@KINDS
def test_finding_one(kind: Any) -> None:
    obj = kind(with_conditions({"type": "Other", "status": "False"}, READY))
    assert find_status_condition(obj, "Ready") == READY
    assert find_status_condition(obj, "ready") is None
    assert find_status_condition(kind(CREATED), "Ready") is None
    asked = ("Ready", "Other", "None")
    assert [is_status_condition_true(obj, type_) for type_ in asked] == [True, False, False]
    assert [is_status_condition_false(obj, type_) for type_ in asked] == [False, True, False]
    unknown = kind(with_conditions({**READY, "status": "Unknown"}))
    assert not is_status_condition_true(unknown, "Ready")
    assert not is_status_condition_false(unknown, "Ready")


@KINDS
def test_removing_one(kind: Any) -> None:
    other = {"type": "Other", "status": "False"}
    obj = kind(with_conditions(READY, other, READY))
    untouched = copy.deepcopy(obj)
    after, changed = remove_status_condition(obj, "Ready")
    assert (type(after), changed) == (type(obj), True)
    assert after["status"] == {"phase": "x", "conditions": [other]}
    assert obj == untouched
    for without in (after, kind(CREATED)):
        again, changed = remove_status_condition(without, "Ready")
        assert (again is without, changed) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Ready", True, "Done"), "a condition's status is 'True', 'False' or 'Unknown', not True"),
        (("Ready", "true", "Done"), "not 'true'"),
    ],
)
def test_bad_status_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        set_status_condition(dict(CREATED), *arguments)


def test_other_types_are_refused() -> None:
    obj: Any = [Pod(metadata=None)]  # type: ignore[arg-type]
    for ask in (
        find_status_condition,
        is_status_condition_true,
        is_status_condition_false,
        remove_status_condition,
    ):
        with pytest.raises(ConfigError, match="of a KubeObject, a dict or a Struct, not of a list"):
            ask(obj, "Ready")


def summarize(obj: Any) -> dict[str, tuple[str, str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in obj["status"]["conditions"]
    }


@KINDS
class TestReadiness:
    def test_success_progress_and_failure(self, kind: Any) -> None:
        obj, changed = set_ready_condition(kind(CREATED), now=BEGAN)
        assert changed
        assert summarize(obj) == {"Ready": ("True", "ReconcileSucceeded", "")}
        obj, changed = set_ready_condition(obj, progressing="1 of 2", now=BEGAN)
        waiting = ("WaitingToBeReady", "1 of 2")
        assert changed
        assert summarize(obj) == {"Ready": ("False", *waiting), "Progressing": ("True", *waiting)}
        obj, changed = set_ready_condition(obj, error=ValueError("no quota"), now=BEGAN)
        failed = ("False", "ReconcileFailed", "ValueError: no quota")
        assert changed
        assert summarize(obj) == {"Ready": failed, "Progressing": failed}
        same, changed = set_ready_condition(obj, error=ValueError("no quota"), now=LATER)
        assert (same is obj, changed) == (True, False)

    def test_generation_and_transition_time(self, kind: Any) -> None:
        obj, _ = set_ready_condition(kind(CREATED), error="no", now=BEGAN)
        obj, _ = set_ready_condition(obj, error="still no", now=LATER)
        (ready,) = obj["status"]["conditions"]
        assert (ready["observedGeneration"], ready["lastTransitionTime"]) == (3, "2026-01-01T00:00:00Z")

    def test_long_texts_are_cut_to_what_the_api_takes(self, kind: Any) -> None:
        obj, _ = set_ready_condition(kind(CREATED), error="x" * 40_000, reason="R" * 2000)
        (ready,) = obj["status"]["conditions"]
        assert (len(ready["reason"]), len(ready["message"])) == (1024, 32768)

    def test_conditions_that_are_no_list_are_an_error(self, kind: Any) -> None:
        with pytest.raises(ConfigError, match="is a list, not a"):
            set_ready_condition(kind({**CREATED, "status": {"conditions": 3}}))
