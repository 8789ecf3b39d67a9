"""Section 1 of `selfcheck`: known work against the clock."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from accel_micro.selfcheck.findings import Column, Row, Table
from accel_micro.selfcheck.truth import KERNELS, Band, Timed, errors, spread_of

if TYPE_CHECKING:
    from accel_micro.selfcheck.peers.reading import Known

SPIN_SECONDS: Final = (10e-6, 100e-6, 1e-3)
_FAST: Final = 0.1
_TIE: Final = 0.002

Told = Callable[[str], None]

SPIN_COLUMNS: Final = (
    Column("error", "error of a block", "share", "low", _TIE),
    Column("worst", "worst block", "signed share"),
    Column("spread", "spread over runs", "share", "low", 0.01),
    Column("full", "error against full speed", "share", "low", 0.01),
    Column("runs", "runs", "count"),
)
KERNEL_COLUMNS: Final = (
    Column("error", "median error", "share", "low", _TIE),
    Column("regime", "in its own state", "share", "low", _TIE),
    Column("worst", "worst", "signed share", "low", 0.01),
    Column("cases", "cases", "count"),
    Column("refused", "refused", "count"),
    Column("unsteady", "unsteady", "count"),
    Column("spent", "a reading", "seconds"),
)


@dataclass
class SpinReadings:
    """A spin of about `seconds`, and what each harness read of it, run by run."""

    seconds: float
    readings: "dict[str, list[Known]]" = field(default_factory=dict)

    @property
    def full_speed(self) -> float:
        """Seconds of a call while the machine ran fast: the fast tenth of what the calls of all blocks noted."""
        known = sorted(known for runs in self.readings.values() for run in runs for _, known in run.blocks)
        return known[int(_FAST * (len(known) - 1))]


def read_spins(budget_seconds: float, tell: Told) -> list[SpinReadings]:
    """Each spin by each harness, in turns, until the budget ends; twice at least."""
    from accel_micro.measure.sampling import opened
    from accel_micro.selfcheck.peers.reading import known_readings
    from accel_micro.selfcheck.peers.witnesses import KnownSpin

    chance, begin, turn, longest = random.Random(1), perf_counter(), 0, 0.0
    found = [SpinReadings(seconds) for seconds in SPIN_SECONDS]
    with opened("cpu") as device:
        spins = [KnownSpin.of(seconds) for seconds in SPIN_SECONDS]
        while turn < 2 or perf_counter() - begin + longest < budget_seconds:
            start = perf_counter()
            for one, spin in zip(found, spins, strict=True):
                readers = list(known_readings(device, spin).items())
                for name, _ in readers:
                    one.readings.setdefault(name, [])
                chance.shuffle(readers)
                for name, read in readers:
                    spin.lengths.clear()
                    one.readings[name].append(read())
            turn += 1
            longest = max(longest, perf_counter() - start)
            tell(f"truth: run {turn}, {perf_counter() - begin:.0f} of {budget_seconds:.0f} s")
    return found


def spin_tables(readings: Sequence[SpinReadings]) -> list[Table]:
    """A table for each length."""
    from accel_micro.selfcheck.peers.reading import OURS

    tables = []
    for one in readings:
        rows = []
        for name, runs in one.readings.items():
            wrong = [error for run in runs for error in run.errors]
            reported = [run.reported for run in runs]
            values = {
                "error": median(abs(error) for error in wrong),
                "worst": max(wrong, key=abs),
                "spread": spread_of(reported),
                "full": median(abs(seconds / one.full_speed - 1) for seconds in reported),
                "runs": len(runs),
            }
            rows.append(Row(name, values, ours=name == OURS))
        tables.append(Table(f"A spin of {_micro(one.seconds)} on the CPU", SPIN_COLUMNS, tuple(rows)))
    return tables


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.0f} ms"


SPIN_NOTES: Final = (
    "A spin notes by the clock how long each of its calls was. Error of a block: what a harness's clock reads of a "
    "block, against what the calls of that very block noted; so it is the harness's alone, whatever the machine did.",
    "Spread over runs: (largest − smallest) ÷ median of what the harness reports for the same work. Error against full "
    "speed: of the same, against the fast tenth of all that the calls noted.",
)


# CUDA


def cuda_calls() -> Iterator[tuple[str, Any]]:
    """Names and calls of work that people time, large and small. Inside the device's session."""
    import torch
    from torch.nn import functional

    def normal(*shape: int, dtype: Any = torch.float32) -> Any:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(shape, generator=generator).to("cuda", dtype)

    for side, dtype in ((64, torch.float32), (1024, torch.bfloat16), (4096, torch.bfloat16)):
        a, b = normal(side, side, dtype=dtype), normal(side, side, dtype=dtype)
        yield f"matmul.mm {side} {str(dtype).removeprefix('torch.')}", lambda a=a, b=b: torch.mm(a, b)
    image, weight = normal(32, 64, 56, 56), normal(64, 64, 3, 3)
    yield "conv2d.conv 32×64×56² float32", lambda: functional.conv2d(image, weight, padding=1)
    for count in (1_000, 1_000_000, 16_000_000):
        x, y = normal(count), normal(count)
        yield f"pointwise.add {count} float32", lambda x=x, y=y: x + y
    q = normal(8, 12, 256, 64, dtype=torch.bfloat16)
    yield "attention.sdpa 8×12×256×64 bfloat16", lambda: functional.scaled_dot_product_attention(q, q, q)
    rows = normal(4096, 1024)
    yield "normalization.layer_norm 4096×1024", lambda: functional.layer_norm(rows, (1024,))


def read_kernels(device_name: str, budget_seconds: float, tell: Told) -> list[Timed]:
    """A spin of known cycles, then work whose kernels CUPTI times, by each harness, until the budget ends."""
    import torch

    from accel_micro.measure.sampling import opened
    from accel_micro.selfcheck.peers.reading import first_line, read_case
    from accel_micro.selfcheck.peers.stopwatches import Ours, stopwatches
    from accel_micro.selfcheck.peers.witnesses import Cupti

    begin, rows = perf_counter(), []
    with opened(device_name) as device, torch.inference_mode():
        watches = [*Ours(device).stopwatches, *stopwatches("cuda")]
        spin = device.spin()
        if spin is not None:
            call, known = spin
            row = Timed("spin.sleep of known cycles")
            read_case(row, watches, call, known, {})
            row.unit_seconds = known()
            rows.append(row)
        for name, call in cuda_calls():
            if perf_counter() - begin > budget_seconds:
                break
            tell(f"truth: {name}, {perf_counter() - begin:.0f} of {budget_seconds:.0f} s")
            row = Timed(name)
            try:
                for _ in range(20):
                    call()
                cupti = Cupti(device, call)
                regimes = {"queued": cupti.queued, "cold": cupti.cold}
                read_case(row, watches, call, cupti.plain, regimes)
            except RuntimeError as error:  # one case must not end the rest
                tell(f"truth: {name}: {first_line(error)}")
                continue
            row.unit_seconds = cupti.plain() / max(1.0, cupti.kernels)
            rows.append(row)
    return rows


def kernel_tables(rows: Sequence[Timed], bands: Sequence[Band] = KERNELS) -> list[Table]:
    """A table for each length of kernels."""
    harnesses = list(dict.fromkeys(name for row in rows for name in (*row.readings, *row.refused)))
    found = errors(rows, bands, harnesses)
    tables = []
    for band in bands:
        lines = []
        for one in found:
            if one.band == band.name:
                refusal = next((row.refused[one.harness] for row in rows if one.harness in row.refused), "")
                values = {
                    "error": one.middle,
                    "regime": one.middle_in_regime,
                    "worst": one.worst,
                    "cases": one.cases,
                    "refused": one.refused,
                    "unsteady": one.unsteady,
                    "spent": one.spent,
                }
                absent = "" if one.cases else refusal or "the work itself became faster or slower meanwhile"
                lines.append(Row(one.harness, values, one.harness.startswith("ours"), absent))
        if lines:
            tables.append(Table(f"CUDA, {band.name}", KERNEL_COLUMNS, tuple(lines)))
    return tables


KERNEL_NOTES: Final = (
    "Against CUPTI's kernel time, read before and after each harness. In its own state: against CUPTI with calls "
    "queued behind each other, or with the cache flushed before each, where the harness does so. Unsteady: CUPTI after "
    "it read something else than before, so that the reading tells nothing, and is not among the cases.",
)
