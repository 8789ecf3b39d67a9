"""Numbers for readers: SI prefixes chosen per value, and as many digits as the interval bears."""

import math
from dataclasses import dataclass
from typing import Final, TypeGuard

from accel_micro.stats.estimate import Estimate

_PREFIXES: Final = {
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}


def _leading(value: float, digits: int) -> int:
    """Power of ten of the first digit once the value is rounded to `digits` significant digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _scale(value: float, digits: int, largest: int) -> tuple[int, str, int]:
    """Power of ten of the prefix, the prefix, and the decimals that leave `digits` significant digits."""
    leading = _leading(value, digits)
    power = min(max(leading // 3 * 3, min(_PREFIXES)), largest)
    return power, _PREFIXES[power], max(0, digits - 1 - (leading - power))


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """A value ≥ 0 with its unit and `digits` significant digits; seconds never go above seconds.

    >>> quantity(1.234e-5, "s"), quantity(9.999e-7, "s"), quantity(1.5e12, "FLOP/s"), quantity(1234.0, "s")
    ('12.3 µs', '1.00 µs', '1.50 TFLOP/s', '1234 s')
    """
    if value == 0:
        return f"0 {unit}"
    power, prefix, decimals = _scale(value, digits, 0 if unit == "s" else max(_PREFIXES))
    return f"{value / 10.0**power:.{decimals}f} {prefix}{unit}"


def byte_count(value: int) -> str:
    """A number of bytes with SI prefixes; small ones exactly.

    >>> byte_count(0), byte_count(512), byte_count(67_108_864)
    ('0 B', '512 B', '67.1 MB')
    """
    return f"{value} B" if value < 1000 else quantity(float(value), "B")


def percent(share: float) -> str:
    """A share as percent: whole ones from ten on, and never a false zero.

    >>> percent(0.874), percent(0.0321), percent(0.0002)
    ('87 %', '3.2 %', '<0.1 %')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return "<0.1 %"
    return f"{value:.1f} %" if value < 9.95 else f"{value:.0f} %"


def factor(value: float) -> str:
    """A factor such as dispatch ÷ device.

    >>> factor(3.675), factor(14.2), factor(1.0)
    ('3.7×', '14×', '1.0×')
    """
    return f"{value:.1f}×" if value < 9.95 else f"{value:.0f}×"


@dataclass(frozen=True)
class TimeText:
    """An estimate in words: all numbers in the same unit with the same decimals.

    `half` (the larger half of the interval), `low` and `high` are empty when there is no interval.
    """

    value: str
    unit: str
    half: str = ""
    low: str = ""
    high: str = ""

    @property
    def short(self) -> str:
        """`12.3 µs ± 0.4`."""
        return f"{self.value} {self.unit}" + (f" ± {self.half}" if self.half else "")

    @property
    def full(self) -> str:
        """`12.3 µs [12.1, 12.7]`."""
        return f"{self.value} {self.unit}" + (f" [{self.low}, {self.high}]" if self.half else "")


def time_text(e: Estimate) -> TimeText:
    """The words of an estimate: three significant digits, four if the interval is narrower than the third."""
    step = 10.0 ** (_leading(e.seconds, 3) - 2)
    digits = 4 if e.confidence > 0 and e.half_width < step / 2 else 3
    power, prefix, decimals = _scale(e.seconds, digits, 0)

    def text(seconds: float) -> str:
        return f"{seconds / 10.0**power:.{decimals}f}"

    if e.confidence == 0:
        return TimeText(text(e.seconds), f"{prefix}s")
    half = text(e.half_width)
    if e.half_width > 0 and not half.strip("0."):
        half = f"<{10.0**-decimals:.{decimals}f}"
    return TimeText(text(e.seconds), f"{prefix}s", half, text(e.low), text(e.high))


def is_finite_positive(value: float | None) -> TypeGuard[float]:
    """Whether a number can be shown, divided by and put on a logarithmic axis."""
    return value is not None and math.isfinite(value) and value > 0
