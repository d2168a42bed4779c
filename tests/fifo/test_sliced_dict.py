"""SlicedDict: a dict without insertion order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.fifo.sliced_dict import SLICES, SlicedDict

keys = st.text("abc", max_size=2)
steps = st.lists(st.tuples(st.sampled_from(["set", "del", "pop", "default"]), keys, st.integers()))


@given(steps)
def test_behaves_like_a_dict(sequence: list[tuple[str, str, int]]) -> None:
    subject, model = SlicedDict[int](), dict[str, int]()
    for step, key, value in sequence:
        if step == "set":
            subject[key] = model[key] = value
        elif step == "default":
            assert subject.setdefault(key, value) == model.setdefault(key, value)
        elif step == "pop":
            assert subject.pop(key, None) == model.pop(key, None)
        elif key in model:
            del subject[key], model[key]
        assert (key in subject) == (key in model)
        assert subject.get(key) == model.get(key)
        assert subject.get(key, "nothing") == model.get(key, "nothing")
    assert subject == model
    assert len(subject) == len(model)


@pytest.mark.parametrize(
    "missing", [lambda it: it["x"], lambda it: it.pop("x"), lambda it: it.__delitem__("x")]
)
def test_missing_key_raises(missing: object) -> None:
    assert callable(missing)
    with pytest.raises(KeyError):
        missing(SlicedDict[int]())


def test_keys_are_spread_over_slices() -> None:
    subject = SlicedDict[int]()
    for number in range(10_000):
        subject[f"ns/{number}"] = number
    assert max(map(len, subject._slices)) < 3 * 10_000 / SLICES
