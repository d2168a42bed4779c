"""Our shared informer and client-go's leave the same traces of the same scripts. See README.md."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import SharedIndexInformer
from aioinformer.cache import Processor, ProcessorListener

from ..virtual_time import virtual_time
from .differences import BY_CHANCE, QUEUES, Difference
from .informer_compare import compare
from .informer_script import Script
from .informer_subject import play
from .informer_suites import INFORMER, INFORMER_036
from .suite import Suite, first_failure, scripts

SCRIPTS = 1000
SHARE = 250


@pytest.mark.parametrize("begin", range(0, SCRIPTS, SHARE))
@pytest.mark.parametrize("suite", [INFORMER.name, INFORMER_036.name], indirect=True)
def test_random_scripts_leave_the_same_trace(suite: Suite[Any], begin: int) -> None:
    failure = first_failure(suite, scripts(suite, "make test", begin, SHARE))
    assert failure is None, failure


A = '{"name":"a","version":"5","uid":"u1","via":"l1"}'
AGAIN = '{"name":"a","version":"5","uid":"u1","via":"l1.1"}'
EVENT = '{"type":"ADDED","object":{"name":"a","version":"5","uid":"u1","via":"e2.0"}}'
CLOSING = '{"type":"BOOKMARK","object":{"name":"","version":"9","uid":"","via":"e2"},"closes":"true"}'
EXPIRED = '{"code":410,"reason":"Expired"}'
START = '{"do":"start"}'
LIST = f'{{"do":"list","items":[{A}],"version":"9"}}'
OPEN = '{"do":"open"}'
ADD_HANDLER = '{"do":"add_handler"}'
REMOVE_HANDLER = '{"do":"remove_handler"}'
RELIST = f'{{"do":"open","error":{EXPIRED}}}'
STREAM = f'{{"do":"open","events":[{EVENT},{CLOSING}]}}'
REFUSED_STREAM = '{"do":"open","error":{"code":403,"reason":"Forbidden"}}'
REFUSED_LIST = '{"do":"list","error":{"code":403,"reason":"Forbidden"}}'


def script(*steps: str, **options: Any) -> str:
    written = {name: msgspec.json.encode(value).decode() for name, value in options.items()}
    fields = [f'"steps":[{",".join(steps)}]', *(f'"{name}":{value}' for name, value in written.items())]
    return f"{{{','.join(fields)}}}"


MET: list[tuple[Suite[Any], str, Difference]] = [
    (INFORMER, script(ADD_HANDLER, START, LIST, RELIST, LIST), Difference.UNCHANGED),
    (
        INFORMER_036,
        script(ADD_HANDLER, START, LIST, '{"do":"wait","seconds":4}', RELIST, LIST, resync=3.0),
        Difference.RESYNC_TIMER,
    ),
    (
        INFORMER,
        script('{"do":"add_handler","resync":2}', START, LIST, '{"do":"wait","seconds":3}', resync=0.5),
        Difference.SHORTEST_PERIOD,
    ),
    (INFORMER, script(START, LIST, '{"do":"open","error":{"kind":"reset"}}', LIST), Difference.NETWORK),
    (
        INFORMER,
        script(START, LIST, RELIST, f'{{"do":"list","error":{EXPIRED}}}', LIST),
        Difference.PAGES,
    ),
    (
        INFORMER_036,
        script(ADD_HANDLER, START, f'{{"do":"list","items":[{A},{AGAIN}],"version":"9"}}'),
        Difference.LISTED_TWICE,
    ),
    (
        INFORMER_036,
        script(START, OPEN, '{"do":"events","end":"close"}', watch_list=True),
        Difference.BROKEN_STREAM,
    ),
    (
        INFORMER_036,
        script(START, REFUSED_STREAM, REFUSED_LIST, REFUSED_STREAM, watch_list=True),
        Difference.REFUSED_STREAM,
    ),
    (
        INFORMER_036,
        script(START, '{"do":"open","events":[{"type":"ADDED"}]}', watch_list=True),
        Difference.UNREADABLE,
    ),
    (
        INFORMER_036,
        script(START, STREAM, '{"do":"events","end":"close"}', watch_list=True),
        Difference.STREAM_END,
    ),
    (
        INFORMER,
        script(START, LIST, OPEN, f'{{"do":"events","events":[{{"type":"ERROR","status":{EXPIRED}}}]}}'),
        Difference.STREAM_ERRORS,
    ),
    (INFORMER_036, script(START, STREAM, watch_list=True, transform=True), Difference.TRANSFORMED_ONCE),
    (INFORMER, script(ADD_HANDLER, REMOVE_HANDLER, START, LIST), Difference.REMOVED),
]

BESIDE = {Difference.REFUSED_STREAM: {Difference.STREAM_ERRORS}}
"""The second is only met together with the first: it takes a second refusal."""


@pytest.mark.parametrize(
    ("suite", "script", "difference"),
    [pytest.param(suite.name, script, difference, id=difference.name) for suite, script, difference in MET],
    indirect=["suite"],
)
def test_each_known_difference_is_as_described(
    suite: Suite[Any], script: str, difference: Difference
) -> None:
    suite.met.clear()
    assert suite.compare([msgspec.json.decode(script, type=suite.script_type)]) == [None]
    assert set(suite.met) - BESIDE.get(difference, set()) == {difference}


def test_each_known_difference_has_a_script() -> None:
    assert {difference for *_, difference in MET} >= set(Difference) - set(QUEUES) - BY_CHANCE


@virtual_time
async def test_only_handlers_of_client_go_036_may_sync_early() -> None:
    made = msgspec.json.decode(script(ADD_HANDLER, START, LIST), type=Script)
    right = await play(made, "real")
    (call,) = right.calls[0]
    early = msgspec.structs.replace(right, calls={0: [msgspec.structs.replace(call, synced=True)]})
    assert not call.synced
    assert compare(made, right, early, real=True) == (None, {Difference.SAID_EARLY})
    assert compare(made, early, right, real=True)[0] is not None
    assert compare(made, early, early, real=True)[0] is not None
    assert compare(made, right, early, real=False)[0] is not None


class TestBugsAreFound:
    """Planted bugs that are likely in an informer."""

    def find_difference(self, suite: Suite[Any]) -> Any:
        failure = first_failure(suite, scripts(suite, "bugs", 0, 200))
        assert failure is not None
        assert len(failure.shrunk.steps) <= 6
        return failure

    @pytest.mark.parametrize("suite", [INFORMER.name], indirect=True)
    def test_missing_initial_adds_of_a_late_handler_are_found(
        self, suite: Suite[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ProcessorListener, "add_all", lambda listener, notifications: None)
        self.find_difference(suite)

    @pytest.mark.parametrize("suite", [INFORMER.name], indirect=True)
    def test_handler_that_syncs_early_is_found(
        self, suite: Suite[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ProcessorListener, "has_synced", lambda listener: listener._upstream_synced())
        self.find_difference(suite)

    @pytest.mark.parametrize("suite", [INFORMER.name], indirect=True)
    def test_resync_for_every_handler_is_found(
        self, suite: Suite[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def distribute_all(processor: Processor, notifications: Any, listeners: Any = None) -> None:
            for listener in processor.listeners:
                listener.add_all(notifications)

        monkeypatch.setattr(Processor, "distribute_all", distribute_all)
        self.find_difference(suite)

    @pytest.mark.parametrize("suite", [INFORMER_036.name], indirect=True)
    def test_informer_that_never_syncs_is_found(
        self, suite: Suite[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SharedIndexInformer, "has_synced", lambda informer: False)
        self.find_difference(suite)


@pytest.mark.parametrize("suite", [INFORMER.name], indirect=True)
def test_crash_of_our_side_is_reported(suite: Suite[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processor, "add_listener", lambda processor, listener: 1 / 0)
    made = msgspec.json.decode(script(ADD_HANDLER), type=suite.script_type)
    (listing,) = suite.compare([made])
    assert listing is not None
    assert "ZeroDivisionError" in listing
