"""Numbers as people read them: right to the last digit shown, and no more digits than the interval bears."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.report.units import byte_count, factor, percent, quantity, time_text
from accel_micro.stats.estimate import Estimate, estimate

PREFIXES = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
PREFIXES |= {"P": 1e15, "E": 1e18}


def parsed(text: str, unit: str) -> float:
    match = re.fullmatch(rf"([\d.]+) (\D?){unit}", text)
    assert match is not None, text
    return float(match[1]) * PREFIXES[match[2]]


@given(st.floats(1e-12, 1e3))
def test_seconds_read_back_within_half_a_digit(value: float) -> None:
    text = quantity(value, "s")
    assert parsed(text, "s") == pytest.approx(value, rel=0.0051)
    assert len(re.sub(r"\D", "", text.lstrip("0."))) <= 4


@given(st.floats(1.0, 9e17))
def test_rates_have_three_digits_and_a_prefix(value: float) -> None:
    text = quantity(value, "FLOP/s")
    assert parsed(text, "FLOP/s") == pytest.approx(value, rel=0.0051)
    assert len(re.sub(r"\D", "", text)) == 3, "three significant digits, and never 1000 of a unit"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999.9e-9, "s", "1.00 µs"),
        (999.4e-9, "s", "999 ns"),
        (0.9996, "s", "1.00 s"),
        (59.94, "s", "59.9 s"),
        (1234.0, "s", "1234 s"),
        (0.0, "s", "0 s"),
        (99.96e9, "B/s", "100 GB/s"),
        (2.5e20, "FLOP/s", "250 EFLOP/s"),
    ],
)
def test_where_a_prefix_changes(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_small_numbers_of_bytes_are_exact() -> None:
    assert [byte_count(n) for n in (0, 7, 999, 1000, 16_384)] == ["0 B", "7 B", "999 B", "1.00 kB", "16.4 kB"]


def test_percent_never_shows_a_false_zero() -> None:
    shares = [0.0, 1e-9, 0.000999, 0.001, 0.0994, 0.0996, 1.0, 1.59]
    assert [percent(s) for s in shares] == [
        "0.0 %",
        "<0.1 %",
        "<0.1 %",
        "0.1 %",
        "9.9 %",
        "10 %",
        "100 %",
        "159 %",
    ]


def test_factors() -> None:
    assert [factor(f) for f in (1.04, 9.94, 9.96, 140.2)] == ["1.0×", "9.9×", "10×", "140×"]


def made(seconds: float, low: float, high: float, confidence: float = 0.95) -> Estimate:
    return Estimate(seconds, low, high, 3, 60, False, 0.01, confidence)


@pytest.mark.parametrize(
    ("e", "short", "full"),
    [
        (made(12.34e-6, 11.94e-6, 12.74e-6), "12.3 µs ± 0.4", "12.3 µs [11.9, 12.7]"),
        (made(12.34e-6, 12.31e-6, 12.37e-6), "12.34 µs ± 0.03", "12.34 µs [12.31, 12.37]"),
        (made(123.4e-6, 120.4e-6, 127.4e-6), "123 µs ± 4", "123 µs [120, 127]"),
        (made(999.6e-9, 980e-9, 1020e-9), "1.00 µs ± 0.02", "1.00 µs [0.98, 1.02]"),
        (made(2e-3, 2e-3, 2e-3), "2.000 ms ± 0.000", "2.000 ms [2.000, 2.000]"),
        (made(2e-3, 2e-3 - 1e-9, 2e-3 + 1e-9), "2.000 ms ± <0.001", "2.000 ms [2.000, 2.000]"),
        (made(2e-6, 1e-6, 9e-6), "2.00 µs ± 7.00", "2.00 µs [1.00, 9.00]"),
        (made(2e-6, 2e-6, 2e-6, confidence=0.0), "2.00 µs", "2.00 µs"),
    ],
)
def test_an_estimate_in_words(e: Estimate, short: str, full: str) -> None:
    text = time_text(e)
    assert (text.short, text.full) == (short, full)


samples = st.lists(st.floats(1e-8, 10.0), min_size=2, max_size=20)


@given(st.lists(samples, min_size=1, max_size=6))
def test_the_interval_shown_is_the_interval(trial: list[list[float]]) -> None:
    e = estimate(trial)
    text = time_text(e)
    unit = PREFIXES[text.unit.removesuffix("s")]
    last_digit = 10.0 ** -len(text.value.partition(".")[2])
    for shown, seconds in ((text.value, e.seconds), (text.low, e.low), (text.high, e.high)):
        nearest = 0.51 * last_digit + 1e-12 * seconds / unit  # floats of such size have no finer digits
        assert float(shown) == pytest.approx(seconds / unit, abs=nearest)
    assert len({len(part.partition(".")[2]) for part in (text.value, text.low, text.high)}) == 1
