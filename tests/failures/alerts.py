"""Which alerts fire: promtool evaluates a chart's rules on what the pods served."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from typing import Any

from tests.prometheus.promtool import require_success, write_yaml

from .pods import Pod

_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LASTS = 1500
"""Seconds for which a failure is taken to last after its last scrape, in the same way."""


class Scrapes:
    """What Prometheus would have scraped once a second.

    Args:
        home: The namespace of the pods.
        rules: The rules of a PrometheusRule.
    """

    def __init__(self, home: str, rules: list[dict[str, Any]]) -> None:
        self._home = home
        self._rules = rules
        self._names = {name for rule in rules for name in re.findall(r"\w+(?=\{)", rule["expr"])}
        self._start = time()
        self._seconds = 0
        self._values: dict[str, list[str]] = {}

    @asynccontextmanager
    async def running(self, pods: Iterable[Pod]) -> AsyncIterator[None]:
        """Scrape the pods until the block ends."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._scrape_on(pods))
            yield
            task.cancel()

    async def _scrape_on(self, pods: Iterable[Pod]) -> None:
        while True:
            names = [pod.name for pod in pods]
            texts = await asyncio.gather(*(pod.scrape() for pod in pods), asyncio.sleep(1.0))
            for name, text in zip(names, texts[:-1], strict=True):
                self._add(f'namespace="{self._home}",pod="{name}"', text)
            self._seconds += 1

    def _add(self, labels: str, text: str | None) -> None:
        self._append(f"up{{{labels}}}", "0" if text is None else "1")
        for line in (text or "").splitlines():
            match = _LINE.fullmatch(line)
            if match and match[1] in self._names:
                value = match[3]
                if match[1].endswith("_timestamp_seconds"):  # promtool's time begins at 0
                    value = str(float(value) - self._start)
                self._append(f"{match[1]}{{{','.join(filter(None, (match[2], labels)))}}}", value)

    def _append(self, series: str, value: str) -> None:
        values = self._values.setdefault(series, [])
        values += ["_"] * (self._seconds - len(values)) + [value]

    def find_firing(self, promtool: Path, folder: Path) -> set[str]:
        """Return the alerts that fire: now, or if what happened in the last ten seconds goes on for 25 minutes."""
        end = max(map(len, self._values.values()))
        series = [
            {"series": name, "values": " ".join([*values, *self._continue(values, end)])}
            for name, values in self._values.items()
        ]
        names = [rule["alert"] for rule in self._rules]
        expected = [
            {"alertname": name, "eval_time": f"{second}s", "exp_alerts": []}
            for name in names
            for second in (*range(0, end, 10), end - 1, end + LASTS)
        ]
        rules = write_yaml(folder / "rules.yaml", {"groups": [{"name": "websites", "rules": self._rules}]})
        require_success(promtool, "check", "rules", rules)
        test = {"interval": "1s", "input_series": series, "alert_rule_test": expected}
        tests = {"rule_files": [rules], "evaluation_interval": "10s", "tests": [test]}
        command = [str(promtool / "promtool"), "test", "rules", write_yaml(folder / "tests.yaml", tests)]
        called = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        firing = set(re.findall(r"alertname: (\w+)", called.stdout + called.stderr))
        assert called.returncode == 0 or firing, called.stdout + called.stderr
        return firing

    @staticmethod
    def _continue(values: list[str], end: int) -> list[str]:
        known = values[-11:]
        if len(values) < end or "_" in known:
            return []
        slope = (float(known[-1]) - float(known[0])) / max(1, len(known) - 1)
        return [f"{float(known[-1])}{slope:+f}x{LASTS}"]
