"""The page of what is covered, as people read it."""

from collections.abc import Callable

from syrupy.assertion import SnapshotAssertion

from accel_micro.catalogue.coverage import Coverage, Place, Row
from accel_micro.report.coverage import to_markdown


def place(op: str, words: str = "", *directions: str) -> Place:
    return Place(False, 0, op, words, directions or ("forward",))


COVERAGE = Coverage(
    benchmark=(
        Row("cos", ("unary_test",), ("aten.cos",), (place("pointwise.unary", "name=cos"),), (), ()),
        Row("cos_", ("unary_test",), ("aten.cos_",), (), ("in_place",), ()),
        Row(
            "diag", ("diag_test",), ("aten.diag_embed", "aten.lu"), (place("layout.diag"),), (), ("aten.lu",)
        ),
        Row("a|b <i>", ("odd_test",), (), (), ("in_place",), ()),
    ),
    models=(
        Row(
            "aten.mm",
            tuple("abcdefg"),
            ("aten.mm",),
            (
                *(place(f"matmul.mm{n}") for n in range(2)),
                place("matmul.linear", "", "backward"),
                place("x.y"),
            ),
            (),
            (),
        ),
    ),
    sentences={"in_place": "The same kernel as without the underscore."},
    stale=(),
)


def test_page(golden: Callable[[str], SnapshotAssertion]) -> None:
    text = to_markdown(COVERAGE, "2.99.0")
    assert golden("md") == text
    assert "<i>" not in text
