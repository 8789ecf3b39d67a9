"""Published times in a file: TOML, refused in one sentence when it is none."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

SCHEMA: Final = 1
SHIPPED: Final = Path(__file__).with_name("reports.toml")
MOST_BYTES: Final = 1 << 20


class NotPublished(ValueError):
    """The file holds no published times; the message is one sentence."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A misspelt field is refused, not skipped."""


class Device(_Table, frozen=True):
    """Where epochs ran. `host` is the machine that loads its batches; `bytes_per_second` its memory's, as stated."""

    host: str
    kind: Literal["cpu", "accelerator"]
    bytes_per_second: float | None = None


class Model(_Table, frozen=True):
    """Parameters, and calls of operators in a training step, where they are known."""

    parameters: int | None = None
    calls: int | None = None


class Row(_Table, frozen=True):
    """Seconds of an epoch. A second row of the same model, device and batch is a repeat."""

    model: str
    device: str
    batch: int
    seconds: float


class Losses(_Table, frozen=True):
    """A loss over epochs, as printed."""

    model: str
    device: str
    values: tuple[float, ...]


class Report(_Table, frozen=True):
    """What somebody published.

    Attributes:
        examples: of an epoch; None where no time is given. most_examples: where only a range is known.
        repeats: epochs behind each row. warmed_up, synchronised: the first step is left out; the device was
            waited for before the clock was stopped. loader_inside: the epoch includes loading.
        optimizer_bytes: that its optimizer moves for each parameter and step, at least.
        confounders: what else may have made the numbers, a phrase each. checks: commands that would tell.
    """

    name: str
    year: int
    claim: str
    machine: str = ""
    torch: str = ""
    examples: int | None = None
    most_examples: int | None = None
    repeats: int = 1
    warmed_up: bool = False
    synchronised: bool = False
    loader_inside: bool = True
    optimizer_bytes: float | None = None
    devices: dict[str, Device] = {}
    confounders: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    losses: tuple[Losses, ...] = ()
    checks: tuple[str, ...] = ()

    def steps(self, batch: int) -> int:
        """Steps of an epoch; the last one may be of fewer examples."""
        return math.ceil((self.examples or 0) / batch)


class Published(_Table, frozen=True):
    """The contents of a file."""

    schema: int
    reports: tuple[Report, ...]
    models: dict[str, Model] = {}


def read(path: Path | None = None) -> Published:
    """The reports in a file, or those that are shipped.

    Raises:
        NotPublished: it is torn, of another form, too large, or of a later version. OSError: it cannot be read.
    """
    path = SHIPPED if path is None else path
    if path.stat().st_size > MOST_BYTES:
        raise NotPublished(
            f"{path} is larger than {MOST_BYTES >> 20} MB, which no list of published times is"
        )
    try:
        data = msgspec.toml.decode(path.read_bytes())
    except (msgspec.DecodeError, ValueError) as error:
        raise NotPublished(f"{path} is no TOML, or torn: {error}") from None
    schema = data.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise NotPublished(f"{path} is of a later version of accel_micro (schema {schema})")
    try:
        found = msgspec.convert(data, Published)
    except msgspec.ValidationError as error:
        raise NotPublished(f"{path} is no list of published times: {error}") from None
    for report in found.reports:
        for problem in _problems(report):
            raise NotPublished(f"{path}: in {report.name!r} {problem}")
    return found


def _problems(report: Report) -> Iterator[str]:
    """What types do not say."""
    if report.rows and (report.examples is None or report.examples < 1):
        yield "rows have seconds, and `examples` does not say of how many"
    if report.repeats < 1:
        yield f"`repeats` is {report.repeats}"
    if report.most_examples is not None and report.most_examples < (report.examples or 0):
        yield "`most_examples` is less than `examples`"
    for row in report.rows:
        if row.device not in report.devices:
            yield f"a row is of the device {row.device!r}, which `devices` does not have"
        if row.batch < 1 or not (math.isfinite(row.seconds) and row.seconds > 0):
            yield f"{row.model} at batch {row.batch} takes {row.seconds:g} s"
    for name, device in report.devices.items():
        if device.bytes_per_second is not None and not device.bytes_per_second > 0:
            yield f"{name} moves {device.bytes_per_second:g} bytes/s"
