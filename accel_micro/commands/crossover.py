"""`accel-micro crossover`: two devices or two dtypes over sizes, until it is known where one overtakes the other."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from accel_micro.comparison.crossed import NOTHING_TIMED, Crossed, Subject, case_of
from accel_micro.comparison.sweeping import FACTOR, Line, Turn, Which, sweep
from accel_micro.measure.records import Case, Record
from accel_micro.shell import joined
from accel_micro.stats.crossover import ALPHA
from accel_micro.sweep import Sweep

if TYPE_CHECKING:
    import re

    from accel_micro.asv_plugin.interleaving import Measure
    from accel_micro.builds import Build, Ledger
    from accel_micro.comparison.sides import Side

CLOCKS: Final = ("throughput", "dispatch", "device")
DTYPE: Final = "float32"
BUDGET_MINUTES: Final = 10.0
DIRECTIONS: Final = ("forward", "backward")


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        baseline, contender: names of two devices or two dtypes; None: the CPU and the machine's accelerator.
        cards: those of these devices of which a certain one of several is meant, such as `cuda:1`.
        device: of two dtypes; None: the machine's accelerator, else the CPU. dtype: of two devices.
        directions: that are swept.
        bench: expressions that choose ops; without one those whose definition states a sweep.
        budget_seconds: for measuring. alpha, tolerance, factor: as `Crossed`; None: the machine's own.
        config, out: as `quick.Request`.
    """

    baseline: str | None = None
    contender: str | None = None
    cards: tuple[str, ...] = ()
    device: str | None = None
    dtype: str = DTYPE
    directions: tuple[str, ...] = ("forward",)
    bench: "tuple[re.Pattern[str], ...]" = ()
    budget_seconds: float = 60 * BUDGET_MINUTES
    alpha: float = ALPHA
    tolerance: float | None = None
    factor: float = FACTOR
    config: Path | None = None
    out: Path | None = None


def find_sides(request: Request, results: Path, ledger: "Ledger") -> "tuple[Side, Side] | None":
    """What the two names mean, in the words of `accel-micro compare`; None where none are given.

    Raises:
        WrongSides: they are not two devices or two dtypes, or an option contradicts them.
    """
    from accel_micro.comparison.inventory import Inventory
    from accel_micro.comparison.sides import NotMeasured, WrongSides
    from accel_micro.comparison.sides import find_sides as find

    if request.baseline is None or request.contender is None:
        return None

    def head() -> "Build":
        raise NotMeasured

    try:
        sides = find(request.baseline, request.contender, Inventory(results, ledger, {}), head=head)
    except NotMeasured:
        raise WrongSides(
            "two devices or two dtypes are swept; builds are compared by `accel-micro compare`"
        ) from None
    if sides[0].kind not in ("device", "dtype"):
        raise WrongSides(f"two devices or two dtypes are swept, not two {sides[0].kind}s")
    if sides[0].kind == "device" and request.device is not None:
        raise WrongSides("two devices are compared, so --device has no meaning; leave it out")
    return sides


def crossover(
    request: Request,
    sides: "tuple[Side, Side] | None",
    *,
    started: Callable[[Case, int, int], None],
    ended: Callable[[Record], None],
    now: Callable[[], float] = time.monotonic,
) -> Crossed:
    """Measure on the installed torch. Ctrl-C ends it, and what was measured until then is judged.

    Args:
        sides: see `find_sides`. started, ended: told of each process, as `report.progress.Listener` is.

    Raises:
        SessionError: nothing can be run; the message is one sentence.
    """
    from accel_micro.asv_plugin.interleaving import SessionError, interleaved
    from accel_micro.asv_plugin.opening import Where
    from accel_micro.comparison.compared import Tolerance
    from accel_micro.comparison.comparing import calibrated
    from accel_micro.devices.chosen import asked as with_index

    here = Where()
    named = with_index(",".join(request.cards))
    if sides is None:
        asked: tuple[str, ...] = ()
    elif sides[0].kind == "device":
        asked = (sides[0].value, sides[1].value)
    else:
        asked = () if request.device is None else (request.device,)
    with interleaved(
        request.config,
        places=[here],
        devices=tuple(named.get(name, name) for name in asked),
        clocks=CLOCKS,
        profile="quick",
        results=None if request.out is None else request.out / "results",
    ) as measure:
        available = measure.devices(here)
        for name in asked:
            if name not in available:
                raise SessionError(
                    f"{name} is not to be had here; there is {', '.join(available)}", NOTHING_TIMED
                )
        chosen, held = _chosen(sides, request, available)
        lines, absent = _lines(measure, here, request, chosen, held)
        devices = {case_of(chosen, held, Subject("", ""), which, "").device for which in _BOTH}
        if request.tolerance is not None:
            tolerance = Tolerance(request.tolerance)
        else:
            each = [calibrated(measure.results, measure.machine(here), device) for device in devices]
            tolerance = max(each, key=lambda one: (one.value, bool(one.note)))
        began = now()

        def process(subject: Subject, which: Which, size: int) -> Record:
            record = measure(here, case_of(chosen, held, subject, which, shapes[subject].shape(size)))
            ended(record)
            return record

        def tell(turn: Turn[Subject]) -> None:
            done = turn.number - 1
            left = turn.seconds_left * done / max(now() - began, 1e-9) if done else 1
            case = case_of(chosen, held, turn.subject, turn.which, shapes[turn.subject].shape(turn.size))
            started(case, turn.number, done + max(int(left), 1))

        shapes = {line.subject: line.sweep for line in lines}
        rows = sweep(
            lines,
            process,
            budget_seconds=request.budget_seconds,
            alpha=request.alpha,
            tolerance=tolerance.value,
            factor=request.factor,
            now=now,
            tell=tell,
            renew=lambda: measure.renew([here]),
        )
        return Crossed(
            sides=chosen,
            held=held,
            machine=measure.machine(here),
            torch_version=measure.version(here),
            session=measure.session,
            rows=tuple(rows),
            absent=tuple(absent),
            tolerance=tolerance,
            alpha=request.alpha,
            factor=request.factor,
            budget_seconds=request.budget_seconds,
        )


_BOTH: Final[tuple[Which, Which]] = ("baseline", "contender")


def _chosen(
    sides: "tuple[Side, Side] | None", request: Request, available: Sequence[str]
) -> "tuple[tuple[Side, Side], str]":
    """The sides, and the dtype or device that both have."""
    from accel_micro.asv_plugin.interleaving import SessionError
    from accel_micro.comparison.sides import Side

    accelerator = next((name for name in available if name != "cpu"), None)
    if sides is not None:
        is_device = sides[0].kind == "device"
        return sides, request.dtype if is_device else request.device or accelerator or "cpu"
    if accelerator is None:
        raise SessionError(
            "there is no accelerator here to compare the CPU with; two dtypes can be swept too: "
            "accel-micro crossover float32 bfloat16",
            NOTHING_TIMED,
        )
    return (Side("device", "cpu", "cpu"), Side("device", accelerator, accelerator)), request.dtype


def _lines(
    measure: "Measure", here: Any, request: Request, sides: "tuple[Side, Side]", held: str
) -> tuple[list[Line[Subject]], list[tuple[Subject, str]]]:
    """What is swept, in the suite's order, and the ops that one of the sides does not have.

    Raises:
        SessionError: nothing is left.
    """
    from accel_micro.asv_plugin.interleaving import SessionError

    lines: list[Line[Subject]] = []
    absent: list[tuple[Subject, str]] = []
    for subject, swept, dtypes in _sweeps(measure.facts, request, sides, held):
        cases = [case_of(sides, held, subject, which, swept.shape(swept.low)) for which in _BOTH]
        lacking = [case.dtype for case in cases if case.dtype not in dtypes]
        reasons = [f"it does not exist in {dtype}" for dtype in lacking]
        why = next(filter(None, (*reasons, *(measure.why_not(here, case) for case in cases))), None)
        if why is None:
            lines.append(Line(subject, swept))
        else:
            absent.append((subject, why))
    if not lines:
        if absent:
            raise SessionError(f"nothing can be swept: {absent[0][0].op}: {absent[0][1]}", NOTHING_TIMED)
        wanted = " or ".join(pattern.pattern for pattern in request.bench)
        raise SessionError(f"no op with a sweep matches {wanted or 'the direction'}", 2)
    return lines, absent


def _sweeps(
    facts: Sequence[Mapping[str, Any]], request: Request, sides: "tuple[Side, Side]", held: str
) -> Iterator[tuple[Subject, Sweep, Sequence[str]]]:
    from accel_micro.comparison.pairing import name_of

    known = {
        Subject(each["op"], each["direction"]): each
        for each in facts
        if each["sweep"] and each["direction"] in request.directions
    }
    for subject in sorted(known, key=lambda one: (one.op, DIRECTIONS.index(one.direction))):
        each, swept = known[subject], Sweep.parse(known[subject]["sweep"])
        cases = [case_of(sides, held, subject, which, swept.text) for which in _BOTH]
        names = [name for case in cases for name in (name_of(case), str(case))]
        if request.bench:
            wanted = any(pattern.search(name) for pattern in request.bench for name in names)
        else:
            wanted = each["sweep_stated"]
        if wanted:
            yield subject, swept, each["dtypes"]


def next_command(request: Request, crossed: Crossed) -> str:
    """The command that gives what is not finished twice the time; empty where nothing is left."""
    from accel_micro.devices.chosen import asked as with_index

    if not any(row.stopped == "budget" for row in crossed.rows):
        return ""
    named = with_index(",".join(request.cards))
    words = ["accel-micro", "crossover", *(named.get(side.value, side.value) for side in crossed.sides)]
    if crossed.kind == "dtype":
        words += ["--device", named.get(crossed.held, crossed.held)]
    elif crossed.held != DTYPE:
        words += ["--dtype", crossed.held]
    if request.directions != Request.directions:
        both = len(request.directions) > 1
        words += ["--direction", "both" if both else request.directions[0]]
    for pattern in request.bench:
        words += ["--bench", pattern.pattern]
    for option in ("alpha", "tolerance", "factor"):
        if (value := getattr(request, option)) != getattr(Request, option):
            words += [f"--{option}", f"{value:g}"]
    for option in ("config", "out"):
        if value := getattr(request, option):
            words += [f"--{option}", str(value)]
    return joined([*words, "--budget", f"{2 * request.budget_seconds / 60:g}"])
