"""The catalogue as people and programs read it."""

import csv
import io
import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from accel_micro.catalogue import Listed, Listing
from accel_micro.measure.records import Case
from accel_micro.report.ops import duration, render


def listed(
    op: str, text: str, cases: int, seconds: float, known: int, device: str = "cpu", **facts: object
) -> Listed:
    return Listed(
        op=op,
        text=text,
        device=device,
        directions=("forward", "backward")[: 1 + cases % 2],
        dtypes=("float32", "bfloat16"),
        shapes={"quick": ("n=1",), "standard": (), "full": ()},
        cases=tuple(Case(op, "forward", device, "float32", f"n={n}") for n in range(cases)),
        seconds=seconds,
        known=known,
        **{"skipped": {}, **facts},  # type: ignore[arg-type]
    )


LISTING = Listing(
    "standard",
    3,
    (
        listed("matmul.mm", "Product of two matrices, row by row in memory.", 3, 40.4, 3),
        listed("matmul.linear", "Layer with k inputs, n outputs and a bias, applied to each of m rows.", 2, 75.0, 0),
        listed("fft.rfft", "Of real rows.\x1b[2J", 0, 0.0, 0, skipped={"no bfloat16 here": 2, "too long": 4}),
        listed("matmul.mm", "Product of two matrices, row by row in memory.", 1, 7000.0, 0, "cuda",
               aten=("aten.mm", "aten.t")),
    ),
)  # fmt: skip


def test_cold_cases_are_counted_and_listed_as_such() -> None:
    cases = tuple(Case("layout.copy", "forward", "cpu", "float32", s) for s in ("n=9", "n=9 cache=cold"))
    row = replace(listed("layout.copy", "A copy.", 2, 9.0, 0), cases=cases)
    text = render(Listing("standard", 3, (row,)), cases=True, width=200)
    assert "Profile standard: 2 cases, 1 of them with cold inputs, 3 processes each" in text
    assert "    forward float32 n=9 cache=cold\n" in text


@pytest.mark.parametrize("width", [80, 120])
def test_table(width: int, snapshot: SnapshotAssertion) -> None:
    text = render(LISTING, width=width)
    assert text == snapshot
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width


def test_cases_are_listed_where_they_are_asked_for() -> None:
    assert render(LISTING, cases=True).count("    forward float32 n=") == 6
    rows = list(csv.reader(io.StringIO(render(LISTING, "csv", cases=True))))
    assert len(rows) == 1 + 6
    assert rows[1] == ["matmul.mm", "forward", "cpu", "float32", "n=0"]


def test_programs_get_all_of_it() -> None:
    data = json.loads(render(LISTING, "json"))
    assert (data["schema"], data["profile"], data["rounds"]) == (1, "standard", 3)
    first, *_, last = data["ops"]
    assert (first["op"], first["family"], first["known"], len(first["cases"])) == (
        "matmul.mm",
        "matmul",
        3,
        3,
    )
    assert last["aten"] == ["aten.mm", "aten.t"]
    rows = list(csv.DictReader(io.StringIO(render(LISTING, "csv"))))
    assert [row["cases"] for row in rows] == ["3", "2", "0", "1"]
    assert rows[2]["skipped"] == "6"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (5900, "98 min"), (7800, "2 h 10 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
