"""Settings in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.setting import SWITCHES, Setting, WrongSetting, shown


def test_words_with_spaces_or_commas() -> None:
    found = Setting.parse("cuda:1, batch=64 foreach=off")
    assert found == Setting("cuda:1", 64, {"foreach": "off"})
    assert str(found) == "cuda:1 batch=64 foreach=off"
    assert Setting.parse("") == Setting()
    assert Setting.parse("batch=4", device="mps").device == "mps"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("batch=0", "wants a number"),
        ("threads=two", "wants a number"),
        ("onednn=maybe", "wants on or off"),
        ("speed=fast", "unknown switch 'speed'; known: batch"),
        ("4", "neither a device nor a switch"),
        ("dtype=complex64", "dtype= wants float32"),
    ],
)
def test_others_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(WrongSetting, match=sentence):
        Setting.parse(text)


@given(
    st.sampled_from(["cpu", "cuda", "cuda:2"]),
    st.none() | st.integers(1, 512),
    st.dictionaries(
        st.sampled_from([n for n in SWITCHES if n.startswith(("f", "o", "n"))]),
        st.sampled_from(["on", "off"]),
    ),
)
def test_written_and_parsed_again(device: str, batch: int | None, switches: dict[str, str]) -> None:
    made = Setting(device, batch, switches)
    assert Setting.parse(str(made)) == made


def test_a_path_with_spaces_or_commas_is_written_and_parsed_again() -> None:
    """The environment of a build lies in the project's folder, whatever that is called."""
    made = Setting("cpu", 4, {"build": "20261101"}).changed(python="/my work, 2026/env/bin/python")
    assert Setting.parse(str(made)) == made
    assert shown(str(made)) == "cpu batch=4 build=20261101"


def test_changed_keeps_the_rest() -> None:
    found = Setting.parse("cpu batch=4 threads=1").changed(batch="16", onednn="off")
    assert str(found) == "cpu batch=16 threads=1 onednn=off"
