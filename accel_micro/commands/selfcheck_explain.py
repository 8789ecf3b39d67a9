"""Section 5 of `selfcheck`: do the ops of a model's step and the time between them add up to the step?"""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

from accel_micro.selfcheck.findings import Column, Row, Table

if TYPE_CHECKING:
    from accel_micro.explain.capture import Capture
    from accel_micro.explain.explanation import Closure

MODELS: Final = ("mnist", "lstm", "squeezenet1_0")
"""In this order, as many as fit: from a step of thousands of small calls to one of large ones."""

_BATCH: Final = 4
_PROCESSES: Final = 2
_CAPTURE_SECONDS: Final = 3.0
_REPLAY_SECONDS: Final = 8.0

Told = Callable[[str], None]
COLUMNS: Final = (
    Column("off", "off the step", "signed share", "low", 0.02),
    Column("closure", "sum ÷ step", "number"),
)
NOTE: Final = (
    "Sum of the ops and of the time between them ÷ the measured step; one thread. In place: each op's own call inside "
    "the real step. Replays: each kind of call alone, over and over, or after the cache was written; what a harness "
    "reads that times ops by themselves."
)


def capture_models(
    device: str, budget_seconds: float, tell: Told
) -> "tuple[list[tuple[str, Capture, Closure]], list[str]]":
    """Models that fit the budget, one at least, with their closures; and sentences about what failed."""
    from accel_micro.commands.explain import capture
    from accel_micro.explain.capturing.taking import CannotCapture, Request
    from accel_micro.explain.closing import closure
    from accel_micro.explain.setting import Setting

    begin, longest = perf_counter(), 0.0
    found: list[tuple[str, Capture, Closure]] = []
    failed: list[str] = []
    for model in MODELS:
        if found and perf_counter() - begin + longest > budget_seconds:
            break
        start = perf_counter()
        tell(f"explain: {model}, {start - begin:.0f} of {budget_seconds:.0f} s")
        request = Request(
            model, processes=_PROCESSES, budget_seconds=_CAPTURE_SECONDS, replay_seconds=_REPLAY_SECONDS
        )
        switches = {"threads": "1"} if device == "cpu" else {}
        try:
            (one,) = capture(request, [Setting(device, _BATCH, switches)], lambda text: None)
        except CannotCapture as problem:
            failed.append(f"{model} could not be captured: {problem}")
            continue
        found.append((model, one, closure(one)))
        longest = max(longest, perf_counter() - start)
    return found, failed


def tables(found: "list[tuple[str, Capture, Closure]]") -> list[Table]:
    """A table for each model: in place against replays."""
    made = []
    for model, one, closed in found:
        ways = (
            ("ours, ops in place", closed.in_place.value, True),
            ("replays, hot cache", closed.hot, False),
            ("replays, cold cache", closed.cold, False),
        )
        rows = tuple(
            Row(name, {"off": value - 1, "closure": value}, ours)
            for name, value, ours in ways
            if value is not None
        )
        title = f"{model}, training, batch {one.batch}: a step of {1e3 * one.step_seconds:.1f} ms"
        made.append(Table(title, COLUMNS, rows, first="way"))
    return made
