"""Random edits: the same steps for a typed object, and for the items of the whole object that they are about."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .classes import View
from .nodes import Anything, ListOf, MapOf, Object, Scalar, SetOf

CHANGE, ADD, REMOVE, MOVE, COPY = "change", "add", "remove", "move", "copy"
EVERY_STEP = frozenset([CHANGE, ADD, REMOVE, MOVE, COPY])


@dataclass
class _List:
    """A list as it was before the edit."""

    view: View
    known: list[str]
    original: list[str]
    items: list[Any]
    unknown: list[bool]
    now: list[Any]
    typed: list[Any]


@dataclass
class Edit:
    """An edit of a typed object.

    Args:
        random: Makes the choices.
        steps: What may be done.

    Attributes:
        log: The steps, for messages.
        may_be_refused: Whether an item with unknown fields was changed in a way that another edit looks like.
        may_get_defaults: Whether an item may be written as a new one, with the defaults of its class.
        has_new_keys: Whether the key of an item, or the keys of an object in an ``Any``, were changed. Server-side
            apply adds them.
        is_visible: Whether it means what the typed object shows: an item that equals one that was read is that item.
    """

    random: Random
    steps: frozenset[str] = EVERY_STEP
    log: list[str] = field(default_factory=list)
    may_be_refused: bool = False
    may_get_defaults: bool = False
    has_new_keys: bool = False
    is_visible: bool = True
    _lists: dict[int, _List] = field(default_factory=dict)
    _removed: list[tuple[dict[str, Any], str]] = field(default_factory=list)

    def apply(self, view: View, typed: Any, whole: Any) -> None:
        """Make some steps to an object and to what the server has of it."""
        for _ in range(self.random.randint(1, 3)):
            self._object(view, typed, whole, "")
        for edited in self._lists.values():
            self._judge(edited)

    # -- steps ---------------------------------------------------------------------------------------------

    def _object(self, view: View, typed: Any, whole: dict[str, Any], path: str) -> None:
        assert isinstance(view.node, Object)
        if not view.fields:
            return
        name = self.random.choice([*view.fields])
        inner, where = view.fields[name], f"{path}.{name}".lstrip(".")
        value = getattr(typed, name)
        is_removable = name not in view.node.required and name not in view.defaults
        if name not in whole:
            if any(whole is parent and name == gone for parent, gone in self._removed):
                self.is_visible = False  # an object in place of an object is an edit of that
            if ADD in self.steps:
                self._set(view, typed, whole, name, where)
        elif REMOVE in self.steps and is_removable and value is not None and self.random.random() < 0.15:
            self.log.append(f"remove {where}")
            setattr(typed, name, None)
            del whole[name]
            self._removed.append((whole, name))
        elif isinstance(inner.node, (Scalar, Anything)):
            if CHANGE in self.steps:
                self._set(view, typed, whole, name, where)
        else:
            setattr(typed, name, self._inside(inner, value, whole[name], where))

    def _set(self, view: View, typed: Any, whole: dict[str, Any], name: str, where: str) -> None:
        inner = view.fields[name]
        value = inner.make(self.random)
        if name in whole and _text(inner.known_part(whole[name])) == _text(value):
            return
        self.log.append(f"set {where} to {json.dumps(value)}")
        if name not in whole and value == view.defaults.get(name):
            self.is_visible = False  # a default that the object lacks is no edit
        self.has_new_keys |= isinstance(inner.node, Anything) and isinstance(whole.get(name), dict)
        setattr(typed, name, inner.convert(value))
        if view.omits and view.defaults.get(name) == value and type(value) is type(view.defaults[name]):
            whole.pop(name, None)
        else:
            whole[name] = copy.deepcopy(value)

    def _inside(self, view: View, typed: Any, whole: Any, path: str) -> Any:
        """Make a step inside a value, and return it."""
        if isinstance(view.node, Object):
            self._object(view, typed, whole, path)
        elif isinstance(view.node, MapOf):
            self._map(view, typed, whole, path)
        elif isinstance(view.node, SetOf):
            return self._set_members(view, typed, whole, path)
        elif isinstance(view.node, ListOf):
            self._list(view, typed, whole, path)
        return typed

    def _map(self, view: View, typed: dict[str, Any], whole: dict[str, Any], path: str) -> None:
        assert isinstance(view.node, MapOf)
        assert view.inner is not None
        name = self.random.choice([*whole, ""])
        if not name:
            if ADD not in self.steps:
                return
            name, value = view.node.new_name(self.random), view.inner.make(self.random)
            self.log.append(f"add {path}[{name}]")
            typed[name], whole[name] = view.inner.convert(value), value
        elif REMOVE in self.steps and self.random.random() < 0.3:
            self.log.append(f"remove {path}[{name}]")
            del typed[name], whole[name]
        elif isinstance(view.inner.node, (Scalar, Anything)):
            if CHANGE in self.steps:
                value = view.inner.make(self.random)
                self.has_new_keys |= isinstance(view.inner.node, Anything) and isinstance(whole[name], dict)
                self.log.append(f"set {path}[{name}] to {json.dumps(value)}")
                typed[name], whole[name] = view.inner.convert(value), value
        else:
            typed[name] = self._inside(view.inner, typed[name], whole[name], f"{path}[{name}]")

    def _set_members(self, view: View, typed: Any, whole: list[Any], path: str) -> Any:
        assert isinstance(view.node, SetOf)
        members = set(typed)
        if whole and REMOVE in self.steps and self.random.random() < 0.5:
            gone = self.random.choice(whole)
            self.log.append(f"remove {gone} from {path}")
            whole.remove(gone)
            members.remove(gone)
        if ADD in self.steps:
            new = view.node.item.make(self.random)
            if new not in members:
                self.log.append(f"add {new} to {path}")
                whole.append(new)
                members.add(new)
        return type(typed)(members)

    def _list(self, view: View, typed: list[Any], whole: list[Any], path: str) -> None:
        inner = view.inner
        assert inner is not None
        self._remember(view, typed, whole)
        place = self.random.randrange(len(typed)) if typed else 0
        step = self.random.choice([*sorted(self.steps)])
        if step == ADD or (not typed and ADD in self.steps):
            value = inner.make(self.random)
            if view.keys and _key(view, value) in [_key(view, item) for item in whole]:
                return
            self.log.append(f"insert {json.dumps(value)} into {path} at {place}")
            typed.insert(place, inner.convert(value))
            whole.insert(place, value)
        elif not typed:
            return
        elif step == REMOVE:
            self.log.append(f"remove {path}[{place}]")
            del typed[place], whole[place]
        elif step == MOVE:
            order = self.random.sample(range(len(typed)), len(typed))
            self.log.append(f"order {path} as {order}")
            typed[:] = [typed[number] for number in order]
            whole[:] = [whole[number] for number in order]
        elif step == COPY and not view.keys:
            self.log.append(f"copy {path}[{place}]")
            typed.append(copy.deepcopy(typed[place]))
            whole.append(inner.known_part(whole[place]))
        elif step == CHANGE:
            self._change_item(view, typed, whole, place, path)

    def _change_item(self, view: View, typed: list[Any], whole: list[Any], place: int, path: str) -> None:
        inner = view.inner
        assert inner is not None
        if isinstance(inner.node, Scalar):
            value = inner.make(self.random)
            self.log.append(f"set {path}[{place}] to {json.dumps(value)}")
            typed[place] = whole[place] = value
            return
        before = _key(view, whole[place])
        self._object(inner, typed[place], whole[place], f"{path}[{place}]")
        after = _key(view, whole[place])
        if before != after:  # another item, by its key
            self.log.append(f"so {path}[{place}] is another item")
            self.has_new_keys = True
            self._forget(whole[place])
            whole[place] = inner.known_part(whole[place])
            keys = [_key(view, item) for item in whole]
            if keys.count(after) > 1:
                self.is_visible = False

    # -- what it means -------------------------------------------------------------------------------------

    def _remember(self, view: View, typed: list[Any], whole: list[Any]) -> None:
        inner = view.inner
        assert inner is not None
        if id(whole) not in self._lists and isinstance(inner.node, Object):
            self._lists[id(whole)] = _List(
                view,
                [_text(inner.known_part(item)) for item in whole],
                [_text(item) for item in whole],
                [*whole],
                [inner.has_unknown(item) for item in whole],
                whole,
                typed,
            )

    def _forget(self, item: Any) -> None:
        """Forget the lists within an item that is taken as it is."""
        for part in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
            self._lists.pop(id(part), None)
            self._forget(part)

    def _judge(self, was: _List) -> None:
        """Judge how a list looks after the edit."""
        inner = was.view.inner
        assert inner is not None
        if was.view.keys:
            keys = [_key(was.view, json.loads(item)) for item in was.original]
            now = [_key(was.view, item) for item in was.now]
            places = {id(item): place for place, item in enumerate(was.items)}
            for item, key in zip(was.now, now, strict=True):
                if id(item) not in places and key in keys:
                    self.is_visible = False  # removed, and added again
            return
        places = {id(item): place for place, item in enumerate(was.items)}
        origins = [places.get(id(item)) for item in was.now]
        known = [_text(inner.known_part(item)) for item in was.now]
        times = Counter(was.known)
        is_changed = [
            place is None or was.known[place] != text for place, text in zip(origins, known, strict=True)
        ]
        self.may_get_defaults |= any(
            place is not None and changed for place, changed in zip(origins, is_changed, strict=True)
        )
        for place, text in zip(origins, known, strict=True):
            if times[text] and (place is None or was.known[place] != text):
                if any(was.unknown):
                    self.may_be_refused = True
                if not self._is_copy(was, text, known):
                    self.is_visible = False  # it looks like another item
        kept = [place for place, changed in zip(origins, is_changed, strict=True) if not changed]
        lost = {*range(len(was.items))} - {*kept}
        if any(is_changed) and any(was.unknown[place] for place in lost):
            self.may_be_refused = True
        alike = {text for text in was.known if times[text] > 1}
        if alike and any(was.unknown):
            self.may_be_refused = True
            shown = [place for place in kept if place is not None]
            by_text: dict[str, list[int]] = {}
            for place in sorted(shown, reverse=True):
                by_text.setdefault(was.known[place], []).append(place)
            if all(len(by_text.get(text, ())) in (0, times[text]) for text in alike):
                in_order = [by_text[was.known[place]].pop() for place in shown]
                if in_order == sorted(in_order) and shown != in_order:
                    self.is_visible = False  # items that look alike were exchanged
            elif known == was.known:
                self.is_visible = False

    @staticmethod
    def _is_copy(was: _List, text: str, known: list[str]) -> bool:
        """Return whether an item is there more often than before, the original among them."""
        return known.count(text) > was.known.count(text)


def _key(view: View, item: Any) -> Any:
    return tuple(item.get(key) for key in view.keys) if view.keys else None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
