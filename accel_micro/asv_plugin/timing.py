"""The benchmark type that measures with accel_micro. Imported in benchmark processes, where only asv_runner
is there.

Why a type of our own: asv_runner from 0.3 on times one call a sample as soon as a benchmark has a `setup`, so
on an accelerator each sample would be one launch and one sync.
"""

import atexit
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from asv_runner import benchmarks, discovery
from asv_runner.benchmarks._base import _get_first_attr
from asv_runner.benchmarks.mark import SkipNotImplemented
from asv_runner.benchmarks.time import TimeBenchmark

from accel_micro.asv_plugin import prepare
from accel_micro.measure.records import Case, Failure, Record
from accel_micro.suite import OpBenchmark

PRELOADED: Final = (
    "accel_micro.measure.case",
    "filelock",
    "platformdirs",
    "psutil",
    "pynvml",
    "torch._dynamo",
    "torch.profiler",
    "torch.utils.flop_counter",
)

DISCOVERED: Final = "DISCOVERED"
"""A package below the benchmarks that says `DISCOVERED = False` is not searched for any."""

PROCESS_ATTRIBUTE: Final = "accel_micro_process"
"""Extra attribute that asv's side passes to a process: {"clocks": to read, "spool": file for the record, "shape": one
that is not among the parameters, of a sweep}."""


RUN_VARIABLE: Final = "ACCEL_MICRO_RUN"
"""Process id of the run, for the servers that it starts."""

SECONDS_BETWEEN_LOOKS: Final = 5.0
"""Whether the run still lives."""


class MeasurementFailed(RuntimeError):
    """The case has no time; the message is the kind of failure and its detail."""


class OpTimeBenchmark(TimeBenchmark):  # type: ignore[misc]
    """`time_*` methods of an op are measured by accel_micro, all others as asv_runner does."""

    _current_params: tuple[Any, ...]

    def do_setup(self) -> bool:
        """Run the setups. True when the case does not exist here; the reason is left in the record.

        Raises:
            Exception: whatever a setup raises besides `NotImplementedError`.
        """
        if self._op_benchmark() is None:
            return bool(super().do_setup())
        _be_killed_first()
        shape = self._process().get("shape")
        if shape is not None:
            self._current_params = (*self._current_params[:2], shape)
        try:
            for setup in self._setups:
                setup(*self._current_params)
        except NotImplementedError as reason:
            self._leave(Record(self._case(), skipped=str(reason)))
            print(f"asv: skipped: {reason}")
            return True
        return False

    def run(self, *parameters: Any) -> dict[str, Any]:
        """Samples of this benchmark's own clock, as asv_runner expects them; the rest is in the record.

        Raises:
            MeasurementFailed: the case has no time; asv then marks it failed.
            SkipNotImplemented: the case does not exist here.
        """
        instance = self._op_benchmark()
        if instance is None:
            return dict(super().run(*parameters))
        clock = self.func.accel_micro["clock"]
        record = self._measure(instance, self._process().get("clocks") or [clock], parameters)
        self._leave(record)
        if record.failure is not None:
            raise MeasurementFailed(f"{record.failure.kind}: {record.failure.detail}")
        if record.skipped is not None:
            raise SkipNotImplemented(record.skipped)
        if clock not in record.clocks:
            raise SkipNotImplemented(f"{record.case.device} has no {clock} clock")
        process = record.clocks[clock]
        return {"samples": list(process.samples), "number": process.calls_per_block}

    def _measure(self, instance: OpBenchmark, clocks: Sequence[str], parameters: tuple[Any, ...]) -> Record:
        direction = self.func.accel_micro["direction"]
        samples = 1 if self.repeat == 1 else None  # asv's --quick
        try:
            return instance.run(direction, *parameters, clocks=clocks, samples=samples)
        except MemoryError as error:
            return Record(self._case(), failure=Failure("out of memory", str(error)))
        except Exception as error:
            return Record(self._case(), failure=Failure("failed", f"{type(error).__name__}: {error}"))

    def _op_benchmark(self) -> OpBenchmark | None:
        instance = getattr(self.func, "__self__", None)
        known = isinstance(instance, OpBenchmark) and hasattr(self.func, "accel_micro")
        return instance if known else None

    def _case(self) -> Case:
        instance = self._op_benchmark()
        assert instance is not None
        return instance.case(self.func.accel_micro["direction"], *self._current_params)

    def _process(self) -> dict[str, Any]:
        return dict(_get_first_attr(self._attr_sources, PROCESS_ATTRIBUTE, {}))

    def _leave(self, record: Record) -> None:
        # Renamed into place: whoever reads the spool after a crash finds a whole record or none.
        spool = self._process().get("spool")
        if spool is None:
            return
        partial = Path(spool).with_suffix(".part")
        partial.write_text(json.dumps(record.to_json()), encoding="utf-8")
        partial.replace(spool)


def install() -> None:
    """Make asv_runner take `OpTimeBenchmark` for `time_*` benchmarks, and leave out packages that hold none.

    Doing so twice is harmless.
    """
    types = benchmarks.benchmark_types
    if not any(issubclass(kind, OpTimeBenchmark) for kind in types):
        types.insert(0, OpTimeBenchmark)
        discovery.disc_modules = _sparing(discovery.disc_modules)
    if sys.argv[1:2] == ["run_server"]:
        leave_with(int(os.environ.get(RUN_VARIABLE) or os.getppid()))
        preload()
        answer_requests()


def answer_requests() -> None:
    """Let a process of this fork server say what `prepare` does, when that is asked for in place of a benchmark."""
    from asv_runner import server

    run = server._run

    def answer(args: Any) -> None:
        if args[1] == prepare.REQUEST:
            prepare.answer()
        else:
            run(args)

    server._run = answer


def _sparing(modules_below: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """asv_runner imports every module below the benchmarks, also those that need what builds' environments lack."""

    def disc_modules(module_name: str, ignore_import_errors: bool = False) -> Iterator[Any]:
        modules = modules_below(module_name, ignore_import_errors)  # comes back here for each module below
        for package in modules:
            yield package
            if not getattr(package, DISCOVERED, True):
                return
            break
        yield from modules

    return disc_modules


def leave_with(run: int) -> None:
    """End this fork server, and the case that it may be running, soon after the run that started it is gone.

    A run that is killed ends nothing, and a server waits for its next case for ever. A timer asks, not a thread: a
    process with threads must not be forked. Nor does the kernel tell, since what it watches is the thread that started
    the server, and that one is done. Processes that are forked from the server inherit no timer.

    Args:
        run: process id of the run.
    """

    def look(*_: object) -> None:
        if os.getppid() != run:
            if os.getpgrp() == os.getpid():
                os.killpg(os.getpid(), signal.SIGKILL)
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    # A Python that ends forgets its handlers first, and the timer would then end it with a signal.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0.0)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_LOOKS)


def preload() -> None:
    """Import in the fork server what every case imports, so that its processes inherit it.

    The first use of a dispatch mode, such as torch's FLOP counter, imports torch._dynamo and 800 modules behind
    it: two to five seconds in every process of a case otherwise (measured on torch 2.11 and 2.13).
    """
    for name in PRELOADED:
        with contextlib.suppress(
            Exception
        ):  # whatever cannot be loaded here is loaded, or missed, by the case
            importlib.import_module(name)


def _be_killed_first() -> None:
    # When memory runs out, the kernel shall end the case and not the run.
    with contextlib.suppress(OSError):
        Path(f"/proc/{os.getpid()}/oom_score_adj").write_text("1000")
