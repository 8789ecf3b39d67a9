"""What the examples in docstrings say is so."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITH_EXAMPLES = sorted(
    path.relative_to(ROOT).with_suffix("")
    for room in ("accel_micro", "benchmarks")
    for path in (ROOT / room).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.as_posix())
def test_examples_give_what_they_say(path: Path) -> None:
    module = importlib.import_module(".".join(path.parts).removesuffix(".__init__"))
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
