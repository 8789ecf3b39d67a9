"""The columns of the terminal's tables, and which of them fit a width. Pure; `table` draws them.

All tables of a report have the same columns, so that the eye finds a number in the same place in each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from accel_micro.dtypes import SHORT
from accel_micro.report import units, words
from accel_micro.report.rows import Row

GAP: Final = 2
"""Spaces between two columns."""


@dataclass(frozen=True)
class Column:
    """A column: its key, its title, the text of a row's cell, and where that stands in its column.

    With `align_at` the cells are padded so that the first occurrences of that text stand below each other.
    """

    key: str
    title: str
    text: Callable[[Row], str]
    justify: Literal["left", "right"] = "left"
    align_at: str = ""


@dataclass(frozen=True)
class Layout:
    """The columns that fit, the cells by column key and row, and the width of each column."""

    columns: tuple[Column, ...]
    cells: dict[str, list[str]]
    widths: dict[str, int]

    @property
    def width(self) -> int:
        """Characters that a table takes."""
        return sum(self.widths.values()) + GAP * (len(self.columns) - 1)


def short_dtype(dtype: str) -> str:
    """`fp32` for `float32`, `bf16` for `bfloat16`; other names as they are."""
    return SHORT.get(dtype, dtype)


def short_direction(direction: str) -> str:
    """`fwd` or `bwd`."""
    return {"forward": "fwd", "backward": "bwd"}.get(direction, words.clean(direction))


def op_name(row: Row) -> str:
    """The op's name without its family, which heads the table."""
    return words.clean(row.case.op.partition(".")[2] or row.case.op)


def bound_text(row: Row) -> str:
    """`launch 3.7×` (dispatch ÷ device) or `device`; empty on a CPU."""
    ratio = row.dispatch_over_device
    if ratio is None:
        return ""
    return f"launch {units.factor(ratio)}" if row.bound == "launch-bound" else "device"


def _bound_short(row: Row) -> str:
    return row.bound.removesuffix("-bound")


def _clock(clock: str) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        e = row.estimates.get(clock)
        if e is None and clock == "device" and row.device_interval is not None:
            return words.device_interval(*row.device_interval)
        return "" if e is None else units.quantity(e.seconds, "s")

    return text


def _median(form: Literal["short", "full"]) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        if row.headline is None:
            return ""
        time: str = getattr(units.time_text(row.headline), form)
        return time if row.clock == "throughput" else f"{time} ({row.clock})"

    return text


def _rate(row: Row) -> str:
    return "" if row.rate is None else units.quantity(row.rate.per_second, row.rate.unit)


def _share(row: Row) -> str:
    known = row.rate is not None and row.rate.share_of_peak is not None
    return units.percent(row.rate.share_of_peak) if known else ""  # type: ignore[union-attr, arg-type]


def over_hot(row: Row) -> str:
    """`2.3×` of a cold case: its time over that of the hot one."""
    return "" if row.over_hot is None else units.factor(row.over_hot)


def _memory(row: Row) -> str:
    return "" if row.peak_memory_bytes is None else units.byte_count(row.peak_memory_bytes)


def _first_call(row: Row) -> str:
    return words.first_call(row)


_COLUMNS: Final = (
    Column("op", "op", op_name),
    Column("direction", "", lambda row: short_direction(row.case.direction)),
    Column("dtype", "dtype", lambda row: short_dtype(words.clean(row.case.dtype))),
    Column("shape", "shape", lambda row: words.clean(row.case.shape)),
    Column("full", "median [interval]", _median("full"), "right", " ["),
    Column("short", "median", _median("short"), "right", " ± "),
    Column("cold", "cold ÷ hot", over_hot, "right"),
    Column("rate", "rate", _rate, "right"),
    Column("share", "of peak", _share, "right"),
    Column("dispatch", "dispatch", _clock("dispatch"), "right"),
    Column("device", "device", _clock("device"), "right"),
    Column("bound", "bound by", bound_text),
    Column("bound short", "bound by", _bound_short),
    Column("latency", "latency", _clock("latency"), "right"),
    Column("memory", "memory", _memory, "right"),
    Column("first call", "first call", _first_call, "right"),
    Column("flags", "flags", words.flag_marks),
)

_SHORTER: Final = {"full": "short", "bound": "bound short"}
"""Columns that are replaced by a shorter one before they go altogether."""

_STEPS: Final[tuple[tuple[tuple[str, ...], int], ...]] = (
    ((), 30),
    (("memory",), 30),
    (("latency",), 30),
    (("first call",), 30),
    (("dispatch", "device"), 30),
    (("full",), 30),
    ((), 20),
    (("rate",), 20),
    (("bound",), 20),
    ((), 16),
    (("cold",), 16),
    (("share",), 16),
    (("bound short",), 16),
)
"""What is given up when the width does not suffice, first to last, and the width at which shapes wrap then
(between their words). What names the case, its time and its flags always stays."""


def layout(rows: Sequence[Row], width: int) -> Layout:
    """The columns that fit into `width` characters; those without any content are left out in any case.

    Below some 60 characters the least columns do not fit: they keep their widths, so that no number is cut.
    """
    cells = {column.key: _cells(column, rows) for column in _COLUMNS}
    natural = {column.key: max(len(column.title), *map(len, cells[column.key]), 0) for column in _COLUMNS}
    longest_part = max((len(part) for cell in cells["shape"] for part in _parts(cell, 1)), default=0)
    empty = {key for key, column in cells.items() if not any(column)}
    dropped: set[str] = set()
    for drops, shape_width in _STEPS:
        dropped.update(drops)
        kept = _kept(dropped, empty)
        fixed = sum(natural[column.key] for column in kept if column.key != "shape") + GAP * (len(kept) - 1)
        if fixed + min(natural["shape"], max(shape_width, longest_part)) <= width:
            break
    widths = {column.key: natural[column.key] for column in kept}
    widths["shape"] = min(natural["shape"], max(width - fixed, longest_part))
    cells["shape"] = [wrap_shape(cell, widths["shape"]) for cell in cells["shape"]]
    return Layout(kept, {column.key: cells[column.key] for column in kept}, widths)


def wrap_shape(shape: str, width: int) -> str:
    """Break a shape into lines between its words, and after the `=` of one that is too long; not elsewhere.

    >>> wrap_shape("n=32 kernel=3 layout=channels_last", 14)
    'n=32 kernel=3\\nlayout=\\nchannels_last'
    """
    lines = [""]
    for part in _parts(shape, width):
        glue = "" if lines[-1] == "" or lines[-1].endswith("=") else " "
        if len(lines[-1] + glue + part) <= width or lines == [""]:
            lines[-1] += glue + part
        else:
            lines.append(part)
    return "\n".join(lines)


def _parts(shape: str, width: int) -> Iterator[str]:
    for word in shape.split():
        if len(word) <= width:
            yield word
        else:
            key, equals, value = word.partition("=")
            yield key + equals
            if value:
                yield value


def _cells(column: Column, rows: Sequence[Row]) -> list[str]:
    cells = [column.text(row) for row in rows]
    if not column.align_at:
        return cells
    parts = [cell.partition(column.align_at) for cell in cells]
    left = max((len(before) for before, _, _ in parts), default=0)
    right = max((len(at + after) for _, at, after in parts), default=0)
    return [f"{before:>{left}}{at + after:<{right}}" if before else "" for before, at, after in parts]


def _kept(dropped: set[str], empty: set[str]) -> tuple[Column, ...]:
    waiting = {shorter for longer, shorter in _SHORTER.items() if longer not in dropped}
    return tuple(column for column in _COLUMNS if column.key not in dropped | waiting | empty)
