"""The cases of a profile, for commands that go through all of them."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from accel_micro import profiles
from accel_micro.shapes import is_cold
from accel_micro.suite import OpBenchmark

BENCHMARKS = Path(__file__).parent.parent


def op_benchmarks(folder: Path = BENCHMARKS) -> list[type[OpBenchmark]]:
    """The classes of all families."""
    from accel_micro.catalogue import load

    return load(folder)


def cases(
    device: str, profile: profiles.Profile, pattern: str, *, cold: bool = True
) -> Iterator[tuple[type[OpBenchmark], str, str, str]]:
    """Class, direction, dtype and shape of the cases of a profile whose name matches.

    Args:
        cold: those with cold inputs too, for commands that have several sets of them or time nothing.
    """
    for cls in op_benchmarks():
        directions = ("forward", "backward") if cls.op.backward else ("forward",)
        for direction, (dtype, shape) in product(
            directions, profile.runs(device, cls.op.lists, cls.op.dtypes)
        ):
            wanted = cold or not is_cold(shape)
            if wanted and re.search(pattern, f"{cls.op.name} {direction} {dtype} {shape}"):
                yield cls, direction, dtype, shape
