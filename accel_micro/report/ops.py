"""The catalogue of a suite, for a terminal and for programs.

JSON, schema 1, is one object: `profile`, `rounds` (processes a case), `ops`, an object each: `op`, `family`, `text`,
`device`, `directions`, `dtypes`, `shapes` (profile → shapes), `cases` (each of five names, with `seconds` left to the
op), `skipped` (reason → cases), `seconds` of all its processes, `known` cases that ran here before, `aten`.
"""

import csv
import io
import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, Literal

import accel_micro
from accel_micro.catalogue import Listed, Listing
from accel_micro.report.layout import short_dtype
from accel_micro.report.words import clean, count
from accel_micro.shapes import is_cold

Format = Literal["table", "json", "csv"]

SCHEMA: Final = 1
_GAP: Final = "  "
_LEAST_ROOM: Final = 40
"""Characters that a description must have beside the numbers, else it stands below them."""


def render(listing: Listing, format: Format = "table", *, cases: bool = False, width: int = 100) -> str:
    """The text of a listing, with a line's end.

    Args:
        cases: list every case of a table, too; the CSV has a line a case then.
    """
    if format == "json":
        return json.dumps(to_json(listing), indent=1, ensure_ascii=False) + "\n"
    if format == "csv":
        return to_csv(listing, cases=cases)
    return "\n".join(_lines(listing, cases, width)) + "\n"


def to_json(listing: Listing) -> dict[str, Any]:
    """All of it; see the module's text for its form."""
    return {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "profile": listing.profile,
        "rounds": listing.rounds,
        "ops": [
            {
                **{name: value for name, value in asdict(row).items() if name != "cases"},
                "family": row.family,
                "cases": [asdict(case) for case in row.cases],
            }
            for row in listing.rows
        ],
    }


def to_csv(listing: Listing, *, cases: bool = False) -> str:
    """A line an op, or a line a case."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if cases:
        writer.writerow(("op", "direction", "device", "dtype", "shape"))
        writer.writerows(
            (case.op, case.direction, case.device, case.dtype, case.shape)
            for row in listing.rows
            for case in row.cases
        )
        return out.getvalue()
    writer.writerow(
        ("op", "text", "device", "directions", "dtypes", "cases", "skipped", "seconds", "known", "aten")
    )
    for row in listing.rows:
        writer.writerow(
            (row.op, row.text, row.device, " ".join(row.directions), " ".join(row.dtypes), len(row.cases),
             sum(row.skipped.values()), f"{row.seconds:.1f}", row.known, " ".join(row.aten))
        )  # fmt: skip
    return out.getvalue()


def duration(seconds: float) -> str:
    """`45 s`, `3 min`, `2 h 10 min`: an estimate has no more digits."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def _lines(listing: Listing, cases: bool, width: int) -> Iterator[str]:
    for device in listing.devices:
        rows = listing.of(device)
        yield from (line for text in _head(listing, device, rows) for line in _wrapped(text, width))
        names = max(len(row.op) for row in rows)
        for family in dict.fromkeys(row.family for row in rows):
            yield ""
            for row in (row for row in rows if row.family == family):
                yield from _op(row, names, cases, width)
        yield ""
    yield from _wrapped(
        "Cases: op × shape × dtype, forward or backward. Time: of all processes, from those that ran here before; "
        "* where none of the op's own did.",
        width,
    )


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, max(width, 40), subsequent_indent=indent + "  ", break_long_words=False)


def _head(listing: Listing, device: str, rows: tuple[Listed, ...]) -> Iterator[str]:
    total = sum(len(row.cases) for row in rows)
    seconds = sum(row.seconds for row in rows)
    known = sum(row.known for row in rows)
    ran = f"{known} of them ran here before" if known else "a guess: nothing was measured here yet"
    cold = sum(is_cold(case.shape) for row in rows for case in row.cases)
    of_them = f", {cold} of them with cold inputs" if cold else ""
    yield (
        f"{count(len(rows), 'op')} in {count(len(dict.fromkeys(r.family for r in rows)), 'family', 'families')} on "
        f"{device}. Profile {listing.profile}: {count(total, 'case')}{of_them}, "
        f"{count(listing.rounds, 'process', 'processes')} each, about {duration(seconds)} ({ran})"
    )
    skipped: dict[str, int] = {}
    for row in rows:
        for reason, number in row.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + number
    for reason, number in sorted(skipped.items(), key=lambda item: -item[1])[:5]:
        yield f"  without {count(number, 'case')}: {clean(reason)}"


def _op(row: Listed, names: int, cases: bool, width: int) -> Iterator[str]:
    guess = "" if row.known or not row.cases else "*"
    cells = [
        row.op.ljust(names),
        f"{len(row.cases):3d}",
        f"{duration(row.seconds) if row.cases else '-':>10s}{guess or ' '}",
        "fwd bwd" if len(row.directions) > 1 else "fwd    ",
        "/".join(map(short_dtype, row.dtypes)).ljust(19),
    ]
    line = _GAP.join(cells)
    room = width - len(line) - len(_GAP)
    text = clean(row.text)
    if room >= _LEAST_ROOM:
        yield (line + _GAP + (text if len(text) <= room else text[: room - 1] + "…")).rstrip()
    else:
        yield line.rstrip()
        yield from _wrapped("    " + text, width)
    if row.aten:
        yield from _wrapped("    " + " ".join(row.aten), width)
    if cases:
        for case in row.cases:
            yield f"    {case.direction} {case.dtype} {case.shape}"
