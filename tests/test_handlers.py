"""handlers.py and notifications.py: which handler method is called, and with what."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    FilteringResourceEventHandler,
    KubeObject,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
    field,
)
from aioinformer.cache import AddNotification, DeleteNotification, UpdateNotification
from aioinformer.handlers import handler_name, require_handler

from .samples import pod


class Recorder(ResourceEventHandler[KubeObject]):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.calls.append(("add", obj, is_in_initial_list))

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self.calls.append(("update", old, new))

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        self.calls.append(("delete", obj))


def test_notifications_call_their_method() -> None:
    recorder, old, new = Recorder(), pod(version="1"), pod(version="2")
    AddNotification(new, True).deliver(recorder)
    AddNotification(new).deliver(recorder)
    UpdateNotification(old, new).deliver(recorder)
    DeleteNotification(old).deliver(recorder)
    assert recorder.calls == [("add", new, True), ("add", new, False), ("update", old, new), ("delete", old)]


def test_only_adds_can_be_in_the_initial_list() -> None:
    assert AddNotification(pod(), True).is_in_initial_list
    assert not UpdateNotification(pod(), pod()).is_in_initial_list
    assert not DeleteNotification(pod()).is_in_initial_list


def test_omitted_functions_are_not_called() -> None:
    """Section 1.6: functions that were not given are ignored, and methods that were not overridden."""
    nothing: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs()

    class Deaf(ResourceEventHandler[KubeObject]):
        pass

    for handler in (nothing, Deaf()):
        assert handler.on_add(pod(), True) is None
        assert handler.on_update(pod(), pod()) is None
        assert handler.on_delete(pod()) is None


async def test_functions_may_be_plain_or_async() -> None:
    seen: list[str] = []

    async def later(obj: KubeObject, is_in_initial_list: bool) -> None:
        seen.append(f"{obj.key} {is_in_initial_list}")

    handler = ResourceEventHandlerFuncs(on_add=later, on_delete=lambda obj: seen.append("deleted"))
    result: Any = handler.on_add(pod(), True)
    await result
    handler.on_delete(DeletedFinalStateUnknown("ns/a", None))
    assert seen == ["ns/a True", "deleted"]


class TestDeletionsAsObjects:
    def test_the_last_known_object_comes_with_and_without_a_tombstone(self) -> None:
        gone: list[KubeObject] = []

        def record(obj: KubeObject) -> None:  # type checkers accept it: no tombstone in its annotation
            gone.append(obj)

        handler = ResourceEventHandlerFuncs[KubeObject](on_delete_object=record)
        seen, missed = pod("seen"), pod("missed")
        handler.on_delete(seen)
        handler.on_delete(DeletedFinalStateUnknown("ns/missed", missed))
        assert gone == [seen, missed]

    def test_no_call_without_a_known_object(self) -> None:
        handler = ResourceEventHandlerFuncs[KubeObject](on_delete_object=lambda obj: pytest.fail(repr(obj)))
        assert handler.on_delete(DeletedFinalStateUnknown("ns/a", None)) is None

    async def test_it_may_be_async(self) -> None:
        gone: list[str] = []

        async def record(obj: KubeObject) -> None:
            gone.append(obj.key)

        result: Any = ResourceEventHandlerFuncs[KubeObject](on_delete_object=record).on_delete(pod())
        await result
        assert gone == [pod().key]

    def test_two_functions_for_deletions_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="on_delete and on_delete_object exclude each other"):
            ResourceEventHandlerFuncs[KubeObject](on_delete=print, on_delete_object=print)

    def test_wrong_arguments_are_refused(self) -> None:
        function: Any = lambda: None  # noqa: E731
        with pytest.raises(ConfigError, match=r"on_delete_object is called with \(obj\)"):
            ResourceEventHandlerFuncs(on_delete_object=function)


class TestFiltering:
    """C60."""

    @pytest.fixture
    def recorder(self) -> Recorder:
        return Recorder()

    @pytest.fixture
    def handler(self, recorder: Recorder) -> FilteringResourceEventHandler[KubeObject]:
        return FilteringResourceEventHandler(lambda obj: self.version(obj) >= 5, recorder)

    @staticmethod
    def version(obj: Any) -> int:
        if isinstance(obj, DeletedFinalStateUnknown):
            obj = obj.obj
        return int(obj.resource_version) if obj is not None else 0

    def test_adds_and_deletions_pass_or_not_c60(self, handler: Any, recorder: Recorder) -> None:
        high, low = pod(version="7"), pod(version="3")
        for obj in (high, low):
            handler.on_add(obj, True)
            handler.on_delete(obj)
        assert recorder.calls == [("add", high, True), ("delete", high)]

    def test_an_update_across_the_boundary_is_an_add_or_a_deletion_c60(
        self, handler: Any, recorder: Recorder
    ) -> None:
        high, higher, low, lower = (pod(version=v) for v in "7931")
        handler.on_update(low, lower)
        assert recorder.calls == []
        handler.on_update(high, higher)
        handler.on_update(low, high)
        handler.on_update(high, low)
        assert recorder.calls == [("update", high, higher), ("add", high, False), ("delete", high)]

    def test_tombstones_reach_the_filter_and_pass_whole_c60(self, handler: Any, recorder: Recorder) -> None:
        passing = DeletedFinalStateUnknown("ns/a", pod(version="7"))
        handler.on_delete(passing)
        handler.on_delete(DeletedFinalStateUnknown("ns/a", None))
        assert recorder.calls == [("delete", passing)]

    def test_awaitable_of_the_handler_is_returned(self) -> None:
        inner = ResourceEventHandlerFuncs[KubeObject](on_add=lambda obj, initial: "awaitable")
        assert FilteringResourceEventHandler(lambda _: True, inner).on_add(pod(), True) == "awaitable"


def test_names_for_logs() -> None:
    def added(obj: KubeObject, is_in_initial_list: bool) -> None: ...

    assert handler_name(Recorder()) == "Recorder"
    assert handler_name(ResourceEventHandlerFuncs(on_add=added)).endswith("added")
    assert handler_name(ResourceEventHandlerFuncs()) == "nothing"
    assert handler_name(ResourceEventHandlerFuncs(on_add=added, on_update=lambda old, new: None)).endswith(
        "test_names_for_logs"
    ), "where they are at home"
    partials = ResourceEventHandlerFuncs(on_add=partial(added), on_update=partial(lambda old, new: None))
    assert handler_name(partials).count("partial(") == 2
    recorder = Recorder()
    funcs = ResourceEventHandlerFuncs(on_add=recorder.on_add, on_delete=recorder.on_delete)
    assert handler_name(funcs) == "Recorder"
    elsewhere = ResourceEventHandlerFuncs(on_add=added, on_delete=recorder.on_delete)
    assert handler_name(elsewhere).endswith("added, Recorder.on_delete")
    assert "partial" in handler_name(ResourceEventHandlerFuncs(on_add=partial(added)))
    assert handler_name(FilteringResourceEventHandler(bool, Recorder())) == "filtered Recorder"


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("on_add", lambda obj: None, r"on_add is called with \(obj, is_in_initial_list\)"),
        ("on_update", lambda new: None, r"on_update is called with \(old, new\)"),
        ("on_delete", lambda: None, r"on_delete is called with \(obj\)"),
        ("on_add", "print", "must be a function"),
    ],
)
def test_function_that_is_not_callable_is_refused(name: str, function: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ResourceEventHandlerFuncs(**{name: function})


def test_decorated_functions_are_not_inspected() -> None:
    @patch("os.getpid")
    def keep(obj: object, mocked: object) -> bool:
        return True

    assert FilteringResourceEventHandler(keep, Recorder())


def test_error_for_a_non_handler_says_what_to_use() -> None:
    function: Any = print
    with pytest.raises(
        ConfigError,
        match=r"no on_add, .*; pass functions as add_event_handler\(on_add=\.\.\.\) or .*, or sub",
    ):
        require_handler(function)


def test_misspelt_method_is_refused() -> None:
    class Misspelt(ResourceEventHandler[KubeObject]):
        def on_added(self, obj: KubeObject) -> None: ...

    misspelt: Any = Misspelt()
    with pytest.raises(
        ConfigError, match="Misspelt has on_added, and overrides none of on_add, on_update, on_delete"
    ):
        require_handler(misspelt)
    misspelt.on_add = lambda obj, is_in_initial_list: None
    require_handler(misspelt)


def test_handler_without_functions_is_allowed() -> None:
    class Quiet(ResourceEventHandler[KubeObject]):
        pass

    require_handler(Quiet())


class TestGenerators:
    """Calling a generator function runs no code of it, so such handlers are refused."""

    def test_functions_with_a_yield(self) -> None:
        def plain(obj: Any) -> Any:
            yield obj

        async def later(obj: Any) -> Any:
            yield obj

        class Callable:
            def __call__(self, obj: Any) -> Any:
                yield obj

        function: Any
        for function in (plain, later, partial(plain), Callable(), Callable().__call__):
            with pytest.raises(
                ConfigError, match=r"on_delete is called, not iterated over: .* would never run"
            ):
                ResourceEventHandlerFuncs(on_delete=function)

    def test_methods_with_a_yield(self) -> None:
        class Handler(Recorder):
            def on_update(self, old: KubeObject, new: KubeObject) -> Any:
                yield new

        async def in_steps(old: KubeObject, new: KubeObject) -> Any:
            yield new

        later = Recorder()
        later.on_update = in_steps  # type: ignore[method-assign]
        for handler in (Handler(), later):
            with pytest.raises(ConfigError, match=r"on_update is called, not iterated over"):
                require_handler(handler)
            with pytest.raises(ConfigError, match=r"on_update is called, not iterated over"):
                FilteringResourceEventHandler(lambda obj: True, handler)

    def test_callable_objects_and_lambdas_pass(self) -> None:
        class Callable:
            async def __call__(self, obj: Any) -> None: ...

        ResourceEventHandlerFuncs(on_add=lambda obj, initial: None, on_delete=Callable())
        require_handler(Recorder())


class TestFilters:
    def test_async_filter_is_refused(self) -> None:
        async def passes(obj: KubeObject) -> bool:
            return False

        def passes_in_steps(obj: KubeObject) -> Any:
            yield False

        with pytest.raises(
            ConfigError, match=r"filter_func must be a plain function, without async or yield"
        ):
            FilteringResourceEventHandler(passes, Recorder())  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"filter_func"):
            FilteringResourceEventHandler(passes_in_steps, Recorder())  # type: ignore[arg-type]

    def test_filter_accepts_tombstones_for_type_checkers(self) -> None:
        """mypy complains if one of these type-ignore comments is not needed."""

        def of_objects(obj: KubeObject) -> bool:
            return obj.name == "a"

        def of_both(obj: KubeObject | DeletedFinalStateUnknown[KubeObject]) -> bool:
            return obj.name == "a"

        def of_anything(obj: object) -> bool:
            return obj is not None

        for passes in (of_both, of_anything, field("metadata.name").equals("a")):
            FilteringResourceEventHandler(passes, Recorder())
        FilteringResourceEventHandler(lambda obj: obj.namespace == "ns", Recorder())
        FilteringResourceEventHandler(of_objects, Recorder())  # type: ignore[arg-type]
        FilteringResourceEventHandler(lambda obj: obj.uid == "", Recorder())  # type: ignore[union-attr]

    def test_filter_with_wrong_arguments(self) -> None:
        with pytest.raises(ConfigError, match=r"filter_func is called with \(obj\)"):
            FilteringResourceEventHandler(lambda old, new: True, Recorder())  # type: ignore[misc,arg-type]

    def test_a_handler_that_is_none(self) -> None:
        with pytest.raises(ConfigError, match=r"is not an event handler"):
            FilteringResourceEventHandler(bool, object())  # type: ignore[arg-type]
