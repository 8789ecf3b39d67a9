"""Precision that differs from side to side: told when it makes products faster, and not otherwise."""

from typing import Any

from accel_micro.explain.capture import Capture
from tests.explain.test_causes import named, rows
from tests.explain.worlds import LAYERS, capture


def rounded(error: float, **changes: Any) -> Capture:
    errors = dict.fromkeys(range(len(LAYERS)), error)
    return capture(rows=rows(error=errors, tolerance=dict.fromkeys(errors, 1.0)), **changes)


def card(switches: str = "", **changes: Any) -> dict[str, Any]:
    return {"device": "cuda", "setting": f"cuda batch=4{switches}", **changes}


def test_products_in_tf32_on_one_side() -> None:
    found = named(rounded(3e-7, slower={0: 3.0}, **card()), rounded(4e-4, **card(" tf32=on")))[
        "precision mode"
    ]
    assert "round as float32 does, those of the contender as TF32 or float16" in found.text
    assert found.side == "baseline" and str(found.setting) == "cuda batch=4 tf32=on"


def test_the_same_precision_or_no_faster_is_no_cause() -> None:
    assert "precision mode" not in named(rounded(3e-7, slower={0: 3.0}), rounded(5e-7, **card()))
    assert "precision mode" not in named(rounded(4e-4, slower={0: 3.0}, **card()), rounded(3e-7))
    # Something else than products is what differs.
    free = {n: 0.0 for n in range(len(LAYERS)) if n != 0}
    plain = rows(error={0: 3e-7}, tolerance={0: 1.0}, flops=free)
    coarse = rows(error={0: 4e-4}, tolerance={0: 1.0}, flops=free)
    assert "precision mode" not in named(
        capture(rows=plain, slower={1: 30.0}), capture(rows=coarse, **card())
    )


def test_where_nothing_was_checked_the_modes_tell() -> None:
    slow = capture(slower={0: 3.0}, modes={"threads": 2, "matmul_tf32": False}, **card())
    assert "precision mode" in named(slow, capture(modes={"threads": 2, "matmul_tf32": True}, **card()))
    assert "precision mode" not in named(slow, capture(modes={"threads": 2, "matmul_tf32": False}, **card()))
