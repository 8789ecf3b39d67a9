"""How cost grows with size: the exponent of a power law through sizes and seconds. Pure."""

import math
from collections.abc import Sequence


def exponent(sizes: Sequence[float], seconds: Sequence[float], fixed: float = 0.0) -> float:
    """Slope of the least-squares line through log seconds over log size: 1 is linear. NaN of fewer than two sizes.

    Args:
        fixed: seconds that do not depend on the size, such as starting an interpreter; they are taken off.

    >>> round(exponent([10, 100, 1000], [0.1, 1.0, 10.0]), 3)
    1.0
    """
    points = [
        (math.log(size), math.log(spent - fixed))
        for size, spent in zip(sizes, seconds, strict=True)
        if spent > fixed
    ]
    if len(points) < 2:
        return math.nan
    x_mean = math.fsum(x for x, _ in points) / len(points)
    y_mean = math.fsum(y for _, y in points) / len(points)
    across = math.fsum((x - x_mean) ** 2 for x, _ in points)
    return math.fsum((x - x_mean) * (y - y_mean) for x, y in points) / across
