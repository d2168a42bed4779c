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
        inject: Injects it. Returns the Fault, or what was affected at once.
        parameters: The parameters, with the conversion from text.
        needs: The parameter that it cannot do without, if any.
    """

    inject: Callable[..., Fault | int]
    parameters: Mapping[str, Callable[[str], Any]]
    needs: str = ""


def _cut(faults: Faults, resource: str | None = None) -> int:
    return faults.cut_connections() if resource is None else faults.drop_watches(resource, mid_line=True)


def _expire(faults: Faults, resource: str | None = None) -> int:
    faults.expire_history()
    return faults.watch_error(resource=resource)


_SELECTED = {"times": int, "verb": str, "resource": str}

NAMED: dict[str, NamedFault] = {
    "cut": NamedFault(_cut, {"resource": str}),
    "410": NamedFault(_expire, {"resource": str}),
    "half-open": NamedFault(Faults.half_open, {"resource": str}),
    "delay": NamedFault(Faults.delay, {"seconds": float, **_SELECTED}, needs="seconds"),
    "freeze": NamedFault(Faults.freeze, {"verb": str, "resource": str}),
    "truncate": NamedFault(Faults.truncate, {"times": int, "fraction": float, "resource": str}),
    "lag": NamedFault(Faults.lag, {"changes": int, "times": int, "resource": str}, needs="changes"),
}
"""The faults by name, besides HTTP statuses from 400 on."""

_STATUS = NamedFault(Faults.fail, {"retry_after": int, "reason": str, "message": str, **_SELECTED})


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
    if fault.needs and fault.needs not in options:
        raise TestingError(f"fault {name} needs {fault.needs}: {name}?{fault.needs}=2")
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
