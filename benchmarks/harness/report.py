"""The report of a run in Markdown: the goals, then one table per scenario."""

from __future__ import annotations

from .goals import Outcome
from .matrix import Matrix, Scenario
from .results import Cell, Figure, Summary

Column = tuple[str, str, float, int]
"""A figure, its heading, its factor, and its decimals."""

_SYNC: list[Column] = [
    ("sync.wall_s", "wall s", 1, 2),
    ("sync.cpu_us", "CPU µs/pod", 1, 1),
    ("sync.bytes", "KiB/pod settled", 1 / 1024, 2),
    ("sync.peak_ratio", "peak/settled", 1, 2),
]
_START: list[Column] = [
    ("start.s", "from the process's start, s", 1, 2),
    ("sync.wall_s", "of it from the first request, s", 1, 3),
    ("sync.resident_mb", "resident MiB", 1, 0),
]
"""Of scenarios without phases."""


def render(summary: Summary, matrix: Matrix, outcomes: list[Outcome], plots: dict[str, str]) -> str:
    """Return the report.

    Args:
        plots: The paths of the plots by title.
    """
    machine = summary.machine
    parts = [
        f"Run `{machine.tier}` of {machine.began}: {machine.cores} cores of {machine.processor}, "
        f"{machine.memory_gib} GiB, Linux {machine.kernel}, Python {machine.python}. Medians over the rounds; "
        "after ±, half of the range between the lowest and the highest.",
        *([machine.note] if machine.note else []),
        _versions(summary),
        "### Goals\n\nA ratio is that of the medians; from–to are the ratios of single rounds.",
        goals_table(outcomes),
    ]
    for title, path in plots.items():
        parts.append(f"![{title}]({path})")
    for scenario in matrix.scenarios:
        cells = [cell for cell in summary.cells if cell.scenario == scenario.name]
        if cells:
            parts += [f"### {scenario.title}", scenario_table(scenario, matrix, cells)]
            parts += [
                f"- {cell.client}: {cell.status}, {cell.detail}" for cell in cells if cell.status != "ok"
            ]
    return "\n\n".join(parts) + "\n"


def goals_table(outcomes: list[Outcome]) -> str:
    """Return a table of goals, measured values and verdicts."""
    heading = ["measure", "goal", "measured", "from–to", "ours", "other", "verdict"]
    return _table([heading, *map(_goal_row, outcomes)], numbers=range(2, 6))


def _goal_row(outcome: Outcome) -> list[str]:
    return [
        outcome.goal.measure,
        outcome.goal.text,
        _number(outcome.value, outcome.goal.unit),
        "" if outcome.low is None else f"{_short(outcome.low)}–{_short(outcome.high)}",
        _short(outcome.ours),
        _short(outcome.theirs),
        outcome.text,
    ]


def scenario_table(scenario: Scenario, matrix: Matrix, cells: list[Cell]) -> str:
    """Return a table with one row per client."""
    columns = [] if any(phase.relist for phase in scenario.phases) else list(_SYNC)
    if not scenario.phases:
        columns = list(_START)
    if scenario.failures != "none":
        columns = []
    if scenario.probe:
        columns += _lag("sync", "lag in the sync")
    for phase in scenario.phases:
        if phase.name.startswith("_"):
            continue
        if phase.failures:
            columns += _failing(phase.name, has_events=scenario.failures == "events")
            continue
        heading = "CPU µs/pod" if phase.relist else _of_phase(phase.name, "CPU µs/event", scenario)
        columns.append((f"{phase.name}.cpu_us", heading, 1, 1))
        if not phase.rate and not phase.relist:
            columns.append((f"{phase.name}.events_s", "events/s", 1, 0))
        if phase.stamped:
            for figure in ("p50", "p99", "p999"):
                columns.append((f"{phase.name}.{figure}", f"{phase.name}/s {figure} µs", 1, 0))
        if phase.reads:
            for kind in ("get", "index", "label"):
                columns += [(f"{phase.name}.{kind}.p50", f"{kind} p50 µs", 1, 1)]
        if scenario.probe:
            columns += _lag(phase.name, f"lag at {phase.rate:,.0f}/s")
    columns = [column for column in columns if any(column[0] in cell.figures for cell in cells)]
    rows = [["client", "pods", *(heading for _, heading, _, _ in columns)]]
    for cell in cells:
        objects = scenario.of(matrix.client(cell.client)).objects
        marked = f"{cell.client} (saturated)" if cell.status == "saturated" else cell.client
        if not cell.figures:
            rows.append([f"{cell.client} ({cell.status})", f"{objects:,}", *("" for _ in columns)])
            continue
        figures = [_figure(cell.figures.get(name), factor, decimals) for name, _, factor, decimals in columns]
        rows.append([marked, f"{objects:,}", *figures])
    return _table(rows, numbers=range(1, len(rows[0])))


def _lag(phase: str, what: str) -> list[Column]:
    return [
        (f"{phase}.lag_{figure}", f"{what} {figure} ms", 1, 2) for figure in ("p50", "p99", "p999", "max")
    ]


def _failing(phase: str, *, has_events: bool) -> list[Column]:
    columns: list[Column] = [
        (f"{phase}.cpu_us", f"{phase}: CPU µs/failure", 1, 1),
        (f"{phase}.wall_s", "seconds", 1, 1),
        (f"{phase}.bytes", "KiB/pod more", 1 / 1024, 2),
        (f"{phase}.log_bytes", "log bytes/failure", 1, 2),
    ]
    if has_events:
        columns += [
            (f"{phase}.events_created", "Events created", 1, 0),
            (f"{phase}.events_patched", "updated", 1, 0),
        ]
    return columns


def _of_phase(name: str, heading: str, scenario: Scenario) -> str:
    shown = [phase for phase in scenario.phases if not phase.name.startswith("_")]
    return heading if len(shown) == 1 else f"{name}/s {heading}"


def _versions(summary: Summary) -> str:
    versions = {cell.client: cell.version for cell in summary.cells if cell.version}
    return "Clients: " + "; ".join(f"{client}: {version}" for client, version in versions.items()) + "."


def _figure(figure: Figure | None, factor: float, decimals: int) -> str:
    if figure is None:
        return ""
    middle, half = figure.median * factor, (figure.high - figure.low) / 2 * factor
    return f"{middle:,.{decimals}f}" + (f" ± {half:,.{decimals}f}" if figure.rounds > 1 else "")


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_short(value)} {unit}"


def _short(value: float | None) -> str:
    """Format a value with three digits, or all digits before the point."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def _table(rows: list[list[str]], numbers: range) -> str:
    rule = ["---:" if column in numbers else "---" for column in range(len(rows[0]))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]])
