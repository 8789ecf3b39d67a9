"""A calibration as people and programs read it."""

import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro.measure.records import Case, Failure, Record
from accel_micro.report.calibration import headline, print_calibration, remedies, to_json
from accel_micro.results.calibrations import Calibration
from tests.results.calibrated import BLESSED, REFUSED, SHORT

FAILED = [
    Record(Case("conv2d.x", "forward", "cpu", "float32", "n=1"), failure=Failure("crashed", "signal 11")),
    Record(Case("attention.x", "forward", "cpu", "float32", "n=1"), skipped="no such kernel"),
]


def shown(calibration: Calibration, width: int = 100) -> str:
    stream = io.StringIO()
    print_calibration(calibration, FAILED, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("calibration", [BLESSED, REFUSED, SHORT], ids=["blessed", "refused", "too short"])
def test_people_read(calibration: Calibration, golden: Callable[[str], SnapshotAssertion]) -> None:
    assert shown(calibration) == golden("txt")


def test_no_line_is_wider_than_asked_and_none_ends_with_spaces() -> None:
    for line in shown(REFUSED, width=90).splitlines():
        assert line == line.rstrip()
        assert len(line) <= 90


def test_text_out_of_results_cannot_move_the_cursor() -> None:
    text = shown(replace(REFUSED, machine="vm\x1b[2J", why_not="a\x1b[31mb", torch_version="\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        (BLESSED, "can be trusted, for differences above 2.1 %"),
        (REFUSED, "cannot be trusted"),
        (SHORT, "not enough was measured to tell"),
    ],
)
def test_the_headline_says_it(calibration: Calibration, words: str) -> None:
    assert words in headline(calibration)


def test_advice_fits_the_reason() -> None:
    assert remedies(BLESSED) == ()
    assert "doctor" in remedies(REFUSED)[0]
    assert "--minutes" in remedies(SHORT)[0]


def test_a_machine_without_anything_known_is_shown_too() -> None:
    nothing = replace(
        SHORT, comparisons=0, false_positive_rate=None, difference=None, worst_difference=None, spread=None
    )
    text = shown(nothing)
    assert "no case ran often enough" in text
    assert "nan" not in text.lower().replace("linan", "")


def test_programs_read_the_line_and_the_sentences() -> None:
    data = json.loads(json.dumps(to_json(REFUSED), allow_nan=False))
    assert data["why_not"] == REFUSED.why_not
    assert data["remedies"]
    assert data["schema"] == 1
