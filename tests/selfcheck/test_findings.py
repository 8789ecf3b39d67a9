"""Where ours stands in each figure."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.selfcheck.findings import Column, Row, Section, Standing, Table, standings, to_data
from tests.selfcheck.checks import check


def stands(column: Column, ours: float, others: dict[str, float], **row: Any) -> Standing:
    rows = [
        Row("ours", {"x": ours}, ours=True),
        *(Row(name, {"x": value}, **row) for name, value in others.items()),
    ]
    (found,) = standings(Section("k", "t", "q", tables=(Table("t", (column,), tuple(rows)),)))
    return found


LOW = Column("x", "x", "seconds", "low", 0.1)
HIGH = Column("x", "x", "share", "high", 0.05)


@pytest.mark.parametrize(
    ("column", "ours", "best", "kind"),
    [
        (LOW, 1.0, 2.0, "best"),
        (LOW, 2.0, 1.0, "worse"),
        (LOW, 1.05, 1.0, "tied"),
        (LOW, 1.0, math.inf, "best"),
        (LOW, math.inf, 1.0, "worse"),
        (HIGH, 0.9, 0.5, "best"),
        (HIGH, 0.5, 0.9, "worse"),
        (HIGH, 0.87, 0.9, "tied"),
        (Column("x", "x", "signed share", "low", 0.01), -0.3, 0.2, "worse"),
        (Column("x", "x", "signed share", "low", 0.01), 0.1, -0.2, "best"),
    ],
)
def test_ours_is_held_against_the_best_of_the_others(
    column: Column, ours: float, best: float, kind: str
) -> None:
    worse = 10 * best if column.better == "low" else best / 10
    found = stands(column, ours, {"other": worse, "rival": best})
    assert found.kind == kind
    assert (found.behind > column.tie) == (kind == "worse")
    if math.isfinite(best):
        assert found.rival == "rival"


def test_a_rival_that_does_not_compete_is_left_out() -> None:
    rows = (
        Row("ours", {"x": 0.5}, ours=True),
        Row("cries wolf", {"x": 1.0}, void=frozenset({"x"})),
        Row("honest", {"x": 0.4}),
        Row("absent", absent="not installed"),
    )
    (found,) = standings(Section("k", "t", "q", tables=(Table("t", (HIGH,), rows),)))
    assert (found.rival, found.kind) == ("honest", "best")


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3))
def test_two_that_are_swapped_are_never_both_best(one: float, other: float) -> None:
    first, second = (stands(LOW, a, {"rival": b}).kind for a, b in ((one, other), (other, one)))
    assert (first, second) in {
        ("best", "worse"),
        ("worse", "best"),
        ("tied", "tied"),
        ("tied", "worse"),
        ("worse", "tied"),
    }


def test_all_of_it_goes_into_data_without_what_json_lacks() -> None:
    data = to_data(check())
    cost = data["sections"][2]["tables"][0]["rows"][1]
    assert cost["values"] == {"seconds": None, "processes": None}
    assert data["sections"][4]["failed"].startswith("CannotCapture")
    kinds = {one["kind"] for section in data["sections"] for one in section["standings"]}
    assert kinds == {"best", "tied", "worse"} or kinds == {"best", "tied"}
