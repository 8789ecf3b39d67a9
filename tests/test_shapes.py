"""A shape as text: its arguments, and whether its inputs are to be cold."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.shapes import cold, hot, is_cold, parse_shape
from accel_micro.sweep import Sweep


def is_text(word: str) -> bool:
    """Whether a value reads as text: it is no number and no truth value."""
    with contextlib.suppress(ValueError):
        float(word)
        return False
    return word not in {"True", "False"}


names = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True).filter(lambda name: name != "cache")
texts = st.text("abcdefghijklmnopqrstuvwxyz_-+.=/", min_size=1, max_size=12).filter(is_text)
values = st.integers() | st.booleans() | st.floats(allow_nan=False) | texts
labels = st.none() | st.text("abc 0.:,=", max_size=12)


@given(st.dictionaries(names, values, max_size=6), labels)
def test_a_shape_reads_back_as_written(arguments: dict[str, Any], label: str | None) -> None:
    text = " ".join(f"{key}={value}" for key, value in arguments.items())
    read = parse_shape(text if label is None else f"{label}: {text}")
    assert read == arguments
    assert [type(value) for value in read.values()] == [type(value) for value in arguments.values()]


@pytest.mark.parametrize("text", ["64", "m=64 k", "=3", "m =3", "2m=3", "a-b=3"])
def test_a_word_that_is_no_argument_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not key=value"):
        parse_shape(text)


@given(st.dictionaries(names, values, min_size=1, max_size=6), labels)
def test_a_cold_shape_has_the_arguments_of_its_hot_one(arguments: dict[str, Any], label: str | None) -> None:
    text = " ".join(f"{key}={value}" for key, value in arguments.items())
    shape = text if label is None else f"{label}: {text}"
    assert not is_cold(shape)
    assert hot(shape) == shape
    assert is_cold(cold(shape))
    assert cold(cold(shape)) == cold(shape)
    assert hot(cold(shape)) == shape
    assert parse_shape(cold(shape)) == parse_shape(shape) == arguments


def test_a_sweep_has_no_cold_sizes() -> None:
    assert not Sweep.parse("n=16..4096").covers(cold("n=64"))
