"""Captures as files: JSON, written whole or not at all, and refused in one sentence when they are none."""

import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from accel_micro.explain.capture import SCHEMA, Capture, Reading

MOST_BYTES: Final = 64 << 20
"""A capture of GPT-2 small with five processes takes under one megabyte."""
_LARGEST: Final = sys.float_info.max


class NotACapture(ValueError):
    """The file holds no capture that this version can read; the message is one sentence."""


def write(capture: Capture, path: Path) -> None:
    """Write it to a temporary name, then rename. Raises OSError."""
    text = msgspec.json.format(msgspec.json.encode(_finite(asdict(capture))), indent=1)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text + b"\n")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path) -> Capture:
    """The capture in a file.

    Raises:
        NotACapture: it is torn, foreign, too large, or of a later version.
        OSError: it cannot be read.
    """
    if path.stat().st_size > MOST_BYTES:
        raise NotACapture(f"{path} is larger than {MOST_BYTES >> 20} MB, which no capture is")
    try:
        data = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotACapture(f"{path} is no capture: it is not JSON, or torn") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or "readings" not in data:
        raise NotACapture(f"{path} is no capture: it was not written by `accel-micro capture`")
    if schema > SCHEMA:
        raise NotACapture(f"{path} was written by a later version of accel_micro (schema {schema})")
    try:
        capture = msgspec.convert(data, Capture)
    except msgspec.ValidationError as error:
        raise NotACapture(f"{path} is a damaged capture: {error}") from None
    problem = next(_problems(capture), None)
    if problem is not None:
        raise NotACapture(f"{path} is a damaged capture: {problem}")
    return capture


def _problems(capture: Capture) -> Iterator[str]:
    """What types do not say."""
    if not capture.readings:
        yield "it has no process"
    if capture.batch < 1:
        yield f"a batch of {capture.batch}"
    rows = len(capture.rows)
    if any(not 0 <= index < rows for index in capture.sequence):
        yield "its sequence names rows that are not there"
    counts = Counter(capture.sequence)
    if any(counts[number] != row.count for number, row in enumerate(capture.rows)):
        yield "its sequence does not call its rows as often as they say"
    for reading in capture.readings:
        yield from _problems_of(reading, rows)


def _problems_of(reading: Reading, rows: int) -> Iterator[str]:
    if not reading.steps or any(not (math.isfinite(x) and x > 0) for x in reading.steps):
        yield "a step does not take a positive number of seconds"
    if reading.ops and not len(reading.ops) == len(reading.gaps) == len(reading.ops_errors) == rows:
        yield f"a process timed {len(reading.ops)} of {rows} rows"
    if any(not (math.isfinite(x) and x >= 0) for x in reading.ops):
        yield "an op takes a negative or infinite time"
    if not all(map(_is_number, (*reading.gaps, reading.tail_seconds))):
        yield "Python between ops takes an infinite time"
    if reading.host_seconds is not None and not (
        _is_number(reading.host_seconds) and reading.host_seconds > 0
    ):
        yield "enqueueing a step does not take a positive number of seconds"


def _is_number(value: float) -> bool:
    """Neither infinite nor what `_finite` wrote in place of that."""
    return abs(value) < _LARGEST


def _finite(value: Any) -> Any:
    """JSON has no infinity: it is written as the largest number there is."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return math.copysign(_LARGEST, value)
    return value
