"""The goals of goals.toml, and whether a run meets them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from .results import Results, Summary, figures_of

GOALS = Path(__file__).parents[1] / "goals.toml"

Verdict = Literal["met", "missed", "not measured"]


class Where(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A figure of the report."""

    scenario: str
    client: str
    figure: str


class Goal(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A goal.

    Attributes:
        measure: The goal's name in the report.
        ours: The figure.
        compare: "ratio" to ``theirs``, "difference" from it, or "alone".
        at_most: The limit; either this or ``at_least``.
        unit: The unit of the compared value.
        over: The ratio is divided by the ratio of this pair, to see the effect of a change.
    """

    measure: str
    ours: Where
    compare: Literal["ratio", "difference", "alone"] = "ratio"
    theirs: Where | None = None
    over: tuple[Where, Where] | None = None
    at_most: float | None = None
    at_least: float | None = None
    unit: str = "×"

    @property
    def text(self) -> str:
        sign, limit = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        return f"{sign} {limit:g} {self.unit}"


class Outcome(msgspec.Struct, frozen=True):
    """A goal and the measured values. The spread is over single rounds."""

    goal: Goal
    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    ours: float | None = None
    theirs: float | None = None

    @property
    def text(self) -> str:
        """Return "met", or how far the goal was missed."""
        if self.value is None or self.verdict != "missed":
            return self.verdict
        limit = self.goal.at_most if self.goal.at_most is not None else self.goal.at_least
        assert limit is not None
        return f"missed: {self.value / limit:.2f} × the goal"


def load_goals(path: Path = GOALS) -> list[Goal]:
    """Return the goals.

    Raises:
        msgspec.ValidationError: The file is invalid.
    """
    return msgspec.convert(tomllib.loads(path.read_text())["goals"], list[Goal])


def judge(goal: Goal, summary: Summary, results: Results) -> Outcome:
    """Compare medians with a goal."""
    ours = _median(summary, goal.ours)
    theirs = None if goal.theirs is None else _median(summary, goal.theirs)
    value = _compare(goal, ours, theirs)
    if goal.over is not None and value is not None:
        base = _compare(goal, *(_median(summary, where) for where in goal.over))
        value = None if base is None else value / base
    if value is None:
        return Outcome(goal, "not measured", ours=ours, theirs=theirs)
    met = (goal.at_most is None or value <= goal.at_most) and (
        goal.at_least is None or value >= goal.at_least
    )
    spread = [] if goal.over is not None else _rounds(goal, results)
    low, high = (min(spread), max(spread)) if spread else (None, None)
    return Outcome(goal, "met" if met else "missed", value, low, high, ours, theirs)


def _median(summary: Summary, where: Where) -> float | None:
    return summary.median(where.scenario, where.client, where.figure)


def _compare(goal: Goal, ours: float | None, theirs: float | None) -> float | None:
    if ours is None:
        return None
    if goal.compare == "alone":
        return ours
    if theirs is None:
        return None
    return ours - theirs if goal.compare == "difference" else ours / theirs


def _rounds(goal: Goal, results: Results) -> list[float]:
    """Return the ratio of each round."""
    mine = {measured.round: measured for measured in results.of(goal.ours.scenario, goal.ours.client)}
    spread = []
    for number, measured in mine.items():
        ours = measured.values.get(goal.ours.figure)
        theirs = None
        if goal.theirs is not None:
            same = [
                measured
                for measured in results.of(goal.theirs.scenario, goal.theirs.client)
                if measured.round == number
            ]
            figure = figures_of(same).get(goal.theirs.figure)
            theirs = None if figure is None else figure.median
        value = _compare(goal, ours, theirs)
        if value is not None:
            spread.append(value)
    return spread
