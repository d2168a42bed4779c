"""``python -m benchmarks.harness quick|bench|full``: measure, and write the report.

Finished cells are written to ``.cache/benchmarks/runs/TIER.jsonl``; ``--resume`` continues an interrupted run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markdown import Markdown

from benchmarks.building import BUILDS, FOLDER

from .goals import judge, load_goals
from .matrix import Matrix, load
from .plots import draw
from .report import goals_table, render
from .results import Results, Summary, summarize
from .run import ROUNDS, MissingServerError, results_at, run

DOCS = FOLDER.parent / "docs"
BEGIN, END = "<!-- the last run -->\n", "<!-- end of the last run -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run every client in turn on the same bytes")
    parser.add_argument("tier", choices=list(ROUNDS))
    parser.add_argument("--rounds", type=int, help="number of rounds, instead of the tier's")
    parser.add_argument("--only", default="", help="regular expression of SCENARIO/CLIENT")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument("--publish", action="store_true", help="also write docs/benchmarks.md and its plots")
    options = parser.parse_args()
    console = Console()
    path = BUILDS / "runs" / f"{options.tier}.jsonl"
    matrix = load()
    with results_at(path, options, console) as results:
        if not options.report:
            rounds = options.rounds or ROUNDS[options.tier]
            try:
                run(matrix, options.tier, rounds, results, console, options.only)
            except MissingServerError as error:
                raise SystemExit(f"the replay server cannot be built: {error}") from None
            except KeyboardInterrupt:
                raise SystemExit(
                    f"interrupted after {len(results.cells)} cells; continue with --resume"
                ) from None
    write_report(results, matrix, path.with_suffix(""), console)
    if options.publish:
        publish(results, matrix, DOCS)


def write_report(results: Results, matrix: Matrix, folder: Path, console: Console) -> None:
    """Write results.json, report.md and the plots into a folder, and print the goals."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(_text(results, matrix, folder, ""))
    summary = summarize(results)
    (folder / "results.json").write_bytes(_json(summary))
    outcomes = [judge(goal, summary, results) for goal in load_goals()]
    console.print(
        Markdown(goals_table([outcome for outcome in outcomes if outcome.verdict != "not measured"]))
    )
    console.print(f"report: {folder / 'report.md'}", markup=False)


def publish(results: Results, matrix: Matrix, docs: Path) -> None:
    """Write the report between the marks of docs/benchmarks.md, and plots and figures into the folder beside it."""
    page = docs / "benchmarks.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    text = _text(results, matrix, docs / "benchmarks", "benchmarks/")
    text += "\nAll figures: [results.json](benchmarks/results.json).\n"
    (docs / "benchmarks" / "results.json").write_bytes(_json(summarize(results)))
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def _json(summary: Summary) -> bytes:
    return msgspec.json.format(msgspec.json.encode(summary)) + b"\n"


def _text(results: Results, matrix: Matrix, folder: Path, prefix: str) -> str:
    summary = summarize(results)
    outcomes = [judge(goal, summary, results) for goal in load_goals()]
    plots = {title: prefix + name for title, name in draw(summary, folder).items()}
    return render(summary, matrix, outcomes, plots)


if __name__ == "__main__":
    main()
