"""A case that never comes back, in a suite with one that does, as `asv run` and `accel-micro quick` run them."""

import tempfile
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.harness.reports.row import Attempt, Finding

_TIMEOUT_SECONDS: Final = 2

_SUITE: Final = f'''
import threading

from accel_micro.suite import op


@op(quick=["n=1"], backward=False)
def a_hangs(t, n):
    """Waits for an event that never comes, as on MPS."""
    threading.Event().wait()


@op(quick=["n=64"], backward=False)
def b_good(t, n):
    """The doubling of some numbers."""
    x = t(n)
    return lambda: x * 2


a_hangs.timeout = {_TIMEOUT_SECONDS}
'''


def a_case_that_hangs() -> Finding:
    """Report 4, the watchdog, on the CPU through the real asv."""
    from accel_micro.asv_plugin import session

    root = Path(__file__).parents[3]
    with tempfile.TemporaryDirectory() as name:
        suite = Path(name)
        (suite / "benchmarks").mkdir()
        for own in ("benchmarks/__init__.py", "asv.conf.json"):
            (suite / own).write_text((root / own).read_text(encoding="utf-8"), encoding="utf-8")
        (suite / "benchmarks" / "family.py").write_text(_SUITE, encoding="utf-8")
        start = perf_counter()
        outcome = session.run(suite, profile="quick", devices=["cpu"])
        seconds = perf_counter() - start
    records = {record.case.op: record for record in outcome.records if record.case.dtype == "float32"}
    hung, good = records["family.a_hangs"].failure, records["family.b_good"]
    ended = hung is not None and hung.kind == "timed out"
    timed = good.failure is None and "throughput" in good.clocks
    return Finding(
        tried=f"a case that waits forever and one that does not, through asv, given {_TIMEOUT_SECONDS} s",
        naive="the run never ends",
        ours=f"the run ended after {seconds:.0f} s; the other case {'has a time' if timed else 'HAS NO TIME'}",
        does=f"rejected: {hung.kind}, {hung.detail}" if hung is not None else "NOT NOTICED",
        good=ended and timed,
        figures={"seconds": seconds, "timeout_seconds": _TIMEOUT_SECONDS},
    )


ATTEMPTS: Final = (Attempt(4, "cpu", "CPU", a_case_that_hangs),)
