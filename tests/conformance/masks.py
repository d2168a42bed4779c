"""What can never be the same on two servers: times, uids, versions, addresses and generated names."""

from __future__ import annotations

import re

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d+ \d\d:\d\d:\d\d \d{4}", "TIME"),
        (r"[\d-]{10} \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?", "TIME"),
        (r"\b[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
        (r"(resourceVersion[\\\"]*: *[\\\"]*|resource version: |version: \")\d+", r"\1VERSION"),
        (r"(Resource Version: +)\d+", r"\1VERSION"),
        (r"\b0x[0-9a-f]{2,}\b", "ADDRESS"),
        (r"(storageVersionHash\": \")[^\"]+", r"\1HASH"),
        (r"\?hash=[0-9A-F]+", "?hash=HASH"),
        (r"(\"(kid|x|y)\": \")[^\"]+", r"\1KEY"),
        (r'(Invalid value: )"\{\\"(?:[^"\\]|\\.)*"', r"\1PATCHED-OBJECT"),
        (r"\b10\.(0|96)\.0\.\d+\b", "CLUSTER-IP"),
        (r"\b3[0-2]\d{3}\b", "NODE-PORT"),
        (r"127\.0\.0\.1:\d+", "SERVER"),
        (r"/(LIVE|MERGED)-\d+/", r"/\1/"),
        (r"/\S*/(LIVE|MERGED)/", r"\1/"),
        (r"\bdebugger-\w{5}\b", "debugger-NAME"),
        (r"(?<=\S)\t+", "  "),
        (r"\b\d+(\.\d+)?(µs|ms)\b", "DURATION"),
        (r"(?<![\w.:/-])(\d+d)?(\d+h)?(\d+m)?\d+s(?![\w-])(?= ago|\s|$|\))", "AGE"),
        (r"(?<=\S) {2,}", "  "),
        (r"(?m)[ \t]+$", ""),
    )
)


def mask(text: str, *own: tuple[str, str]) -> str:
    """Return a text without what differs on every server.

    Args:
        text: What a server or kubectl has said.
        own: Further texts and what to show instead, such as a folder.
    """
    for value, shown in own:
        text = text.replace(value, shown)
    for pattern, shown in _MASKS:
        text = pattern.sub(shown, text)
    return text
