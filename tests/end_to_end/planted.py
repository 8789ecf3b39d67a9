"""An op of real torch, and nightlies in which it does more work than it did."""

import re

SOFTMAX = """
from torch.nn import functional


@op(quick=["rows=256 width=1024"], backward=False)
def softmax(t, rows, width):
    x = t(rows, width)
    return lambda: functional.softmax(x, dim=1)
"""


def slower(text: str, more: int = 1) -> str:
    """`torch/nn/functional.py` whose softmax does its work so many times more."""
    changed = re.sub(
        r"(def softmax\((?:.*?)\n)(    if dtype is None:\n        ret = input\.softmax)",
        rf"\1    for _ in range({more}):\n        input.softmax(dim)\n\2",
        text,
        count=1,
        flags=re.DOTALL,
    )
    assert changed != text
    return changed
