"""Faults by name: ``500?times=3&verb=list``, from an option of the command line or a request to ``/faults``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from aiohttp import web

from aioinformer.testing.errors import StatusError, TestingError
from aioinformer.testing.faults import Fault, Faults

if TYPE_CHECKING:
    from collections.abc import Mapping

FAULTS_PATH = "/faults"
STATE_PATH = "/state"
METHODS = "use POST /faults/NAME, GET /faults, DELETE /faults/ID, DELETE /faults or GET /state"


@dataclass(frozen=True, slots=True)
class NamedFault:
    """A fault that can be injected by its name.

    Attributes:
        help: What it does.
        parameters: The parameters, with the conversion from text.
        inject: Injects it. Returns the Fault, or what was affected at once.
    """

    help: str
    parameters: Mapping[str, Callable[[str], Any]]
    inject: Callable[..., Fault | int]


def _cut(faults: Faults, resource: str | None = None) -> int:
    return faults.cut_connections() if resource is None else faults.drop_watches(resource, mid_line=True)


def _expire(faults: Faults, resource: str | None = None) -> int:
    faults.expire_history()
    return faults.watch_error(resource=resource)


_SELECTED = {"times": int, "verb": str, "resource": str}

NAMED: dict[str, NamedFault] = {
    "cut": NamedFault("reset all connections, or the watches of a resource", {"resource": str}, _cut),
    "410": NamedFault(
        "expire all resourceVersions, and end the open watches with 410", {"resource": str}, _expire
    ),
    "half-open": NamedFault(
        "the open watches get no more bytes; new requests are answered", {"resource": str}, Faults.half_open
    ),
    "delay": NamedFault("delay answers", {"seconds": float, **_SELECTED}, Faults.delay),
    "freeze": NamedFault("connections stay open but silent", {"verb": str, "resource": str}, Faults.freeze),
    "truncate": NamedFault(
        "reset lists in the middle", {"times": int, "fraction": float, "resource": str}, Faults.truncate
    ),
    "lag": NamedFault(
        "answer lists from a stale replica", {"changes": int, "times": int, "resource": str}, Faults.lag
    ),
}
"""The faults by name, besides HTTP statuses from 400 on."""

_STATUS = NamedFault(
    "answer with this HTTP status",
    {"retry_after": int, "reason": str, "message": str, **_SELECTED},
    Faults.fail,
)


def parse_fault(text: str) -> Callable[[Faults], Fault | int]:
    """Return what injects a fault.

    Args:
        text: A name, such as ``cut`` or ``503``, and after a question mark its parameters.

    Raises:
        TestingError: The name or a parameter is unknown or has another form.
    """
    name, _, query = text.partition("?")
    positional: tuple[Any, ...] = ()
    if name in NAMED:
        fault = NAMED[name]
    elif name.isdecimal() and 400 <= int(name) <= 599:
        fault, positional = _STATUS, (int(name),)
    else:
        raise TestingError(f"unknown fault {name!r}: it is {', '.join(NAMED)}, or a status from 400 to 599")
    options = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in fault.parameters:
            raise TestingError(
                f"fault {name}: unknown parameter {key!r}: it has {', '.join(fault.parameters)}"
            )
        try:
            options[key] = fault.parameters[key](value)
        except ValueError as error:
            kind = fault.parameters[key].__name__
            raise TestingError(f"fault {name}: {key} is no {kind}: {value!r}") from error
    for needed in {"delay": ("seconds",), "lag": ("changes",)}.get(name, ()):
        if needed not in options:
            raise TestingError(f"fault {name} needs {needed}: {name}?{needed}=2")
    return lambda faults: fault.inject(faults, *positional, **options)


class Control:
    """Answers requests for faults and for the server's state.

    Args:
        faults: The server's faults.
        state: Returns the server's state.
    """

    def __init__(self, faults: Faults, state: Callable[[], bytes]) -> None:
        self._faults = faults
        self._state = state
        self._injected: dict[int, tuple[str, Fault]] = {}
        self._last = 0

    def serves(self, path: str) -> bool:
        """Return whether a path is one of these."""
        return path in (FAULTS_PATH, STATE_PATH) or path.startswith(f"{FAULTS_PATH}/")

    def answer(self, http: web.BaseRequest) -> web.Response:
        """Answer a request for such a path.

        Raises:
            StatusError: 400, 404 or 405.
        """
        name = http.path.removeprefix(FAULTS_PATH).strip("/")
        match http.method:
            case "GET" if http.path == STATE_PATH:
                return web.Response(body=self._state(), content_type="application/json")
            case "GET" if not name:
                return web.json_response(list(self._injected_faults()))
            case "POST" if name and http.path != STATE_PATH:
                return self._inject(f"{name}?{http.query_string}")
            case "DELETE" if http.path != STATE_PATH:
                return self._remove(name)
        raise StatusError(405, "MethodNotAllowed", METHODS)

    def _inject(self, text: str) -> web.Response:
        try:
            result = parse_fault(text)(self._faults)
        except (TestingError, ValueError) as error:
            raise StatusError(400, "BadRequest", str(error)) from error
        text = text.removesuffix("?")
        if not isinstance(result, Fault):
            return web.json_response({"fault": text, "affected": result})
        self._last += 1
        self._injected[self._last] = text, result
        return web.json_response({"id": self._last, "fault": text}, status=201)

    def _injected_faults(self) -> Iterator[dict[str, Any]]:
        for number, (text, fault) in self._injected.items():
            yield {"id": number, "fault": text, "hits": fault.hits, "active": fault.is_active}

    def _remove(self, number: str) -> web.Response:
        """Remove a fault, or all for an empty number."""
        if not number:
            self._faults.clear()
            self._injected.clear()
        elif number.isdecimal() and int(number) in self._injected:
            self._injected.pop(int(number))[1].remove()
        else:
            raise StatusError(404, "NotFound", f"there is no fault {number}: see GET {FAULTS_PATH}")
        return web.json_response(list(self._injected_faults()))
