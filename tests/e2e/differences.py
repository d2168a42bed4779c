"""Where the embedded server is known to answer other than the real one, and why that is all right.

Everything that is not named here has to be equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .recording import Recorded

WORDS = "words"
"""Status code and reason are equal; message and details may differ."""

ANYTHING = "anything"
"""The answers differ completely."""


class Known(NamedTuple):
    """A known difference.

    Attributes:
        request: Matches the requests (as they are recorded) that it is about.
        differs: WORDS or ANYTHING.
        why: The reason.
    """

    request: str
    differs: str
    why: str


JSON_WORDS = "the words of Go's JSON decoder are its own"
PROTOBUF_WORDS = "so are those of its protobuf decoder"
ENUM_ORDER = "supported values are listed in another order"
PATCH_WORDS = "a refused patch is shown in other words"
ADMISSION = "admission plugins of the real server add to pods: tolerations for nodes that are not ready"
TWICE = "the real server checks an updated object several times, and says so each time"
WHOLE_PATCHES = "the real server's message shows the patched object with its managedFields"
VERSIONS = "the real server shows what it has made of the versions"
IMPERSONATION = "the real server shows the user of the headers in Go's syntax"
REVIEWS = "a review that asks for nothing is refused with other words"
KINDS = "a kind that does not fit is refused with other words"

KNOWN: tuple[Known, ...] = (
    Known(r'^POST \S+/pods .*"restartPolicy": "x"', WORDS, ENUM_ORDER),
    Known(r"^PATCH \S+/(typing\?fieldValidation=Strict|unchecked(-web)? )", WORDS, PATCH_WORDS),
    Known(r"^POST \S+/configmaps (\{no JSON|\[\]|7|)$", WORDS, JSON_WORDS),
    Known(r'^POST \S+/configmaps \{.*("labels": (\{"app": 7|\[)|"finalizers": \[7)', WORDS, JSON_WORDS),
    Known(r"^PATCH \S+/configmaps/a (\{|\[|)$", WORDS, JSON_WORDS),
    Known(r"^DELETE \S+/odd \[\]$", WORDS, JSON_WORDS),
    Known(r"^GET \S+\?continue=CONTINUE", WORDS, JSON_WORDS),
    Known(r"^PATCH \S+/unreadable(/status|\?\S+)? ", WORDS, JSON_WORDS),
    Known(r"^POST \S+ (k8s|\{\}$)", WORDS, PROTOBUF_WORDS),
    Known(r"^DELETE \S+ no options", WORDS, PROTOBUF_WORDS),
    Known(r"^POST \S+ Impersonate-(Group|Uid|Extra-Scopes): \w+ ", WORDS, IMPERSONATION),
    Known(r"^POST \S+/selfsubjectaccessreviews ", WORDS, REVIEWS),
    Known(r'"apiVersion": "v2"', WORDS, KINDS),
    Known(r'/relics \{"metadata": \{"name": "b"\}\}', WORDS, KINDS),
    Known(r'^PATCH \S+/configmaps/a \{"metadata": null\}', WORDS, KINDS),
    Known(r'^PATCH \S+/configmaps/a \{"kind": "Secret"\}', ANYTHING, KINDS),
    Known(
        r'^PATCH .*"(uid|labels|finalizers|deletionGracePeriodSeconds)": '
        r'(5|"f00"|\{"app": "-"|\["example.com/a", "example.com/c")',
        WORDS,
        TWICE,
    ),
    Known(r"^PATCH \S+/relics/a\?fieldValidation=Strict", WORDS, WHOLE_PATCHES),
    Known(r"^PATCH \S+/pods/web .*tolerations", ANYTHING, ADMISSION),
    Known(r'^POST \S+/customresourcedefinitions \{.*"storage": false', WORDS, VERSIONS),
)


def find_known(recorded: Recorded) -> Known | None:
    """The difference that a request is known for."""
    request = f"{recorded.request} {recorded.sent}"
    return next((difference for difference in KNOWN if re.search(difference.request, request)), None)


def compare(embedded: Recorded, real: Recorded) -> tuple[Any, Any]:
    """Return the parts of two answers that must be equal."""
    difference = find_known(embedded)
    if difference is not None and difference.differs == ANYTHING:
        return None, None
    ours, theirs = (_mask(_without_empty(record.body)) for record in (embedded, real))
    if difference is not None:
        ours, theirs = _without_words(ours), _without_words(theirs)
    return (
        (embedded.status, embedded.content_type, ours),
        (real.status, real.content_type, _what_we_have(ours, theirs)),
    )


def _without_empty(value: Any) -> Any:
    """Go leaves out fields that are empty; the embedded server keeps what a client has written."""
    if isinstance(value, dict):
        left = {name: _without_empty(member) for name, member in value.items()}
        return {
            name: content
            for name, content in left.items()
            if name in _EMPTY_COUNTS or content not in ({}, [], "", None)
        }
    return [_without_empty(element) for element in value] if isinstance(value, list) else value


_EMPTY_COUNTS = ("items", "continue", "labels")


def _mask(value: Any) -> Any:
    """Remove irrelevant differences; see the comments."""
    if isinstance(value, list):
        return [_mask(element) for element in value if not _is_ordinary_bookmark(element)]
    if isinstance(value, dict):
        masked = {name: _mask(member) for name, member in value.items() if name not in _NO_CONCERN}
        if isinstance(
            causes := masked.get("causes"), list
        ):  # the real server checks some objects several times
            unlike = [cause for number, cause in enumerate(causes) if cause not in causes[:number]]
            masked["causes"] = sorted(unlike, key=str)  # whose order is the server's own
        if isinstance(message := masked.get("message"), str) and " is invalid: [" in message:
            masked["message"] = message.partition(" is invalid: [")[0]  # the same causes
        return masked
    if isinstance(value, int) and 30_000 <= value < 32_768:
        return "NODE PORT"
    if not isinstance(value, str):
        return value
    return "AGE" if _AGE.fullmatch(value) else _ADDRESS.sub("ADDRESS", value)


_ADDRESS = re.compile(r"10\.(0|96)\.\d+\.\d+")  # of a Service
_AGE = re.compile(r"\d+s")  # in tables, and it passes
_NO_CONCERN = frozenset(
    [
        "description",  # of a table's column
        "storageVersionHash",  # of a resource
        "serverAddressByClientCIDRs",  # where else the server could be
        "compiler",  # this and the rest: of /version
        "gitCommit",
        "goVersion",
        "platform",
    ]
)


def _is_ordinary_bookmark(event: Any) -> bool:
    """They come when the server likes."""
    return (
        isinstance(event, dict)
        and event.get("type") == "BOOKMARK"
        and "annotations" not in event["object"]["metadata"]
    )


def _without_words(status: Any) -> Any:
    if isinstance(status, dict) and status.get("kind") == "Status":
        return {name: value for name, value in status.items() if name not in ("message", "details")}
    return status


def _what_we_have(ours: Any, theirs: Any) -> Any:
    """The real server fills in defaults all over spec and status of built-in kinds: of those only what is here too."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return _side_by_side(_what_we_have, ours, theirs)
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return theirs
    result = dict(theirs)
    if isinstance(theirs.get("metadata"), dict) and theirs.get("kind") != "Relic":
        for part in ("spec", "status"):
            if isinstance(theirs.get(part), dict):
                result[part] = _share(ours.get(part, {}), theirs[part])
                if not result[part] and part not in ours:
                    del result[part]
    if isinstance(theirs.get("versions"), list) and isinstance(ours.get("versions"), list):
        here = {_name(version) for version in ours["versions"]}  # the real server has more
        result["versions"] = [version for version in theirs["versions"] if _name(version) in here]
    for part in ("groups", "resources"):  # and these in an order of its own
        if isinstance(theirs.get(part), list) and isinstance(ours.get(part), list):
            result[part] = _in_our_order(ours[part], theirs[part])
    for part in ("items", "object", "rows"):
        if part in theirs and part in ours:
            result[part] = _what_we_have(ours[part], theirs[part])
    return result


def _in_our_order(ours: list[Any], theirs: list[Any]) -> list[Any]:
    named = {_name(item): item for item in theirs}
    return [_what_we_have(item, named[_name(item)]) for item in ours if _name(item) in named]


def _name(entry: Any) -> str:
    return str(entry.get("name") or entry.get("version")) if isinstance(entry, dict) else str(entry)


def _share(ours: Any, theirs: Any) -> Any:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {name: _share(ours[name], value) for name, value in theirs.items() if name in ours}
    if isinstance(ours, list) and isinstance(theirs, list):
        return _side_by_side(_share, ours, theirs)
    return theirs


def _side_by_side(how: Callable[[Any, Any], Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
    paired = [how(mine, other) for mine, other in zip(ours, theirs, strict=False)]
    return paired + theirs[len(paired) :]
