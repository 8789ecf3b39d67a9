"""A case's process: started once for all clocks that are wanted, its record kept, its death survived.

asv knows one number list a process. Here a process leaves a record, which is completed with whose it was and
added to a file beside asv's results; the samples of the other clocks in it answer their benchmarks without a
process.
"""

import contextlib
import dataclasses
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import asv.runner
from asv.console import log
from asv.results import Results
from asv.util import UserError

from accel_micro.asv_plugin import failures, headers, launching, patching, saving, selection, state
from accel_micro.asv_plugin.events import CaseFinished, CaseStarted
from accel_micro.asv_plugin.state import OP_KEY, Batch
from accel_micro.asv_plugin.timing import PROCESS_ATTRIBUTE
from accel_micro.measure import CLOCKS
from accel_micro.measure.records import SUFFIX, Case, Failure, Record, append

_NOT_RUN: Final = asv.runner.BenchmarkResult(
    result=[float("nan")], samples=[None], number=[None], errcode=0, stderr="", profile=None
)


def install() -> None:
    """Replace how asv runs a batch of benchmarks and a process, and how it stores and tells an interrupted one."""
    patching.replace(
        asv.runner, "run_benchmarks", _run_batch, takes=("benchmarks", "env", "results", "record_samples")
    )
    patching.replace(
        asv.runner,
        "_run_benchmark_single_param",
        _run_process,
        takes=("benchmark", "spawner", "param_idx", "profile", "extra_params", "cwd"),
    )
    patching.replace(Results, "add_result", _keep_unmeasured, takes=("benchmark", "result", "selected_idx"))
    patching.replace(
        asv.runner, "log_benchmark_result", _log_broken_off, takes=("results", "benchmark", "show_stderr")
    )


def records_path(results: Any) -> Path | None:
    """The file of records beside asv's own file, or None when these results are not saved."""
    path = saving.path_of(results)
    return None if path is None else path.with_name(path.name.removesuffix(".json") + SUFFIX)


def _run_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_benchmarks(benchmarks: Any, env: Any, results: Any = None, **options: Any) -> Any:
        if not any(OP_KEY in benchmark for benchmark in benchmarks.values()):
            return original(benchmarks, env, results=results, **options)
        with state.running() as run:
            return _run_ops(original, run, benchmarks, env, results, options)

    return run_benchmarks


def _run_ops(
    original: Callable[..., Any],
    run: state.Run,
    benchmarks: Any,
    env: Any,
    results: Any,
    options: dict[str, Any],
) -> Any:
    results = Results.unnamed() if results is None else results
    selected = {name: benchmarks.benchmark_selection.get(name) for name in benchmarks}
    show = bool(options.get("show_stderr"))
    run.batch = Batch(benchmarks, selected, env.name, results, selection.report_of(env), show)
    cases = set(_cases(run, run.batch))
    run.locks.acquire(case.device for case in cases)
    headers.write(run, run.batch)
    run.batch.rounds = _rounds(benchmarks, options)
    run.total += len(cases) * run.batch.rounds
    options["record_samples"] = True  # results without samples cannot be tested for significance
    try:
        original(benchmarks, env, results=results, **options)
    finally:
        run.batch = None
    if run.stopped:
        raise UserError("interrupted")
    return results


def _run_process(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_single(
        benchmark: Any, spawner: Any, param_idx: int, profile: bool, extra_params: Any, cwd: str | None
    ) -> Any:
        run = state.active()
        if OP_KEY not in benchmark or run is None or run.batch is None:
            return original(benchmark, spawner, param_idx, profile, extra_params, cwd)
        batch, name = run.batch, benchmark["name"]
        if run.stopped:
            if name != batch.in_flight:
                raise UserError("interrupted")
            return _NOT_RUN
        if name != batch.in_flight or param_idx in batch.measured:
            batch.in_flight, batch.measured = name, set()
        result = batch.pending.pop((name, param_idx), None)
        result = result or run.failed.get(run.failure_key(batch, name, param_idx))
        if result is None:
            if selection.why_skipped(benchmark, param_idx, batch.report) is not None:
                result = _NOT_RUN  # another environment of this run has the device, this one does not
            else:
                process = _Process(run, batch, benchmark, param_idx)
                try:
                    result = process.run(original, spawner, profile, extra_params, cwd)
                except KeyboardInterrupt:
                    run.stopped = spawner.interrupted = True
                    return _NOT_RUN
        batch.measured.add(param_idx)
        return result

    return run_single


class _Process:
    """One process of one case, which may answer several benchmarks: one for each clock."""

    def __init__(self, run: state.Run, batch: Batch, benchmark: Mapping[str, Any], index: int) -> None:
        self.run_, self.batch, self.benchmark, self.index = run, batch, benchmark, index
        self.case = state.case_of(benchmark, index)
        if batch.shape is not None:
            self.case = dataclasses.replace(self.case, shape=batch.shape)
        self.own_clock: str = benchmark[OP_KEY]["clock"]
        self.names = {self.own_clock: str(benchmark["name"]), **dict(self._other_clocks())}
        self.clocks = tuple(clock for clock in CLOCKS if clock in self.names)
        self.started = state.now()

    def _other_clocks(self) -> Iterable[tuple[str, str]]:
        # Of the same case, and later in asv's order, which is by name.
        own = self.benchmark[OP_KEY]
        for name, other in self.batch.benchmarks.items():
            facts = other.get(OP_KEY, {})
            same = (facts.get("op"), facts.get("direction")) == (own["op"], own["direction"])
            if same and name > self.benchmark["name"] and other["params"] == self.benchmark["params"]:
                waiting = self.index in (self.batch.selected[name] or ())
                if waiting and selection.why_skipped(other, self.index, self.batch.report) is None:
                    yield facts["clock"], name

    def run(self, start: Callable[..., Any], spawner: Any, profile: bool, extra: Any, cwd: str | None) -> Any:
        """Run it, keep its record, and answer this benchmark; the others' answers wait in the batch."""
        key = (str(self.batch.results.commit_hash), self.batch.environment, self.case)
        self.run_.rounds[key] += 1
        self.run_.index += 1
        position = (self.run_.index, max(self.run_.total, self.run_.index))
        self.run_.tell(CaseStarted(*position, self.case, self.clocks, self.run_.rounds[key]))
        began = time.perf_counter()
        spool = self.run_.spool / f"{self.run_.index}.json"
        benchmark = {**self.benchmark, "timeout": self._timeout()}
        told = {"clocks": self.clocks, "spool": str(spool), "shape": self.batch.shape}
        extra = {**extra, PROCESS_ATTRIBUTE: told}
        kills = failures.kernel_kills()
        spawner_here = launching.spawner_for(spawner, self.case.device)
        result = _survive(start, benchmark, spawner_here, self.index, profile, extra, cwd)
        record = _read(spool) or Record(
            self.case,
            failure=failures.of_exit(
                result.errcode, result.stderr, benchmark["timeout"], failures.kernel_kills() - kills
            ),
        )
        record = self._completed(_on_the_locked_card(record, self.run_.cards), self.run_.rounds[key])
        self._keep(record)
        spool.unlink(missing_ok=True)
        answers = {name: self._answer(record, clock, result) for clock, name in self.names.items()}
        if record.failure is not None:
            for name, answer in answers.items():
                self.run_.failed[self.run_.failure_key(self.batch, name, self.index)] = answer
            self.run_.total -= self.batch.rounds - min(self.run_.rounds[key], self.batch.rounds)
        own = answers.pop(self.benchmark["name"])
        self.batch.pending.update({(name, self.index): answer for name, answer in answers.items()})
        self.run_.tell(CaseFinished(*position, record, time.perf_counter() - began))
        return own

    def _timeout(self) -> float | None:
        timeout = self.benchmark["timeout"]
        return None if timeout is None else timeout * len(self.clocks)

    def _completed(self, record: Record, round_number: int) -> Record:
        return dataclasses.replace(
            record,
            machine=str(self.batch.results.params.get("machine", "")),
            build=self.batch.results.commit_hash or "",
            environment=self.batch.environment,
            session=self.run_.session,
            round=round_number,
            started=self.started,
        )

    def _keep(self, record: Record) -> None:
        self.run_.records.append(record)
        path = records_path(self.batch.results)
        if path is not None:
            append(path, record)
            self.run_.saved += 1

    def _answer(self, record: Record, clock: str, result: Any) -> Any:
        if record.failure is not None:
            text = f"{self.case}: {record.failure.kind}: {record.failure.detail}"
            if self.batch.show_stderr:
                text = f"{text}\n{result.stderr}".rstrip()
            return result._replace(
                result=[None], samples=[None], number=[None], errcode=result.errcode or 1, stderr=text
            )
        if record.skipped is not None or clock not in record.clocks:
            return _NOT_RUN
        process = record.clocks[clock]
        return result._replace(
            result=[True],
            samples=[list(process.samples)],
            number=[process.calls_per_block],
            errcode=0,
            stderr=result.stderr if clock == self.own_clock else "",
            profile=result.profile if clock == self.own_clock else None,
        )


def _survive(
    start: Callable[..., Any],
    benchmark: Mapping[str, Any],
    spawner: Any,
    index: int,
    profile: bool,
    extra: Mapping[str, Any],
    cwd: str | None,
) -> Any:
    # A case that takes the fork server down with it ends asv's whole run; here it costs that case.
    try:
        return start(benchmark, spawner, index, profile, extra, cwd)
    except (UserError, OSError, RuntimeError, ValueError) as error:
        if spawner.interrupted:  # asv's translation of Ctrl-C
            raise KeyboardInterrupt from None
        if not isinstance(spawner, asv.runner.ForkServer):
            raise
        spawner.interrupted = True  # do not print what it said: it is in the record
        with contextlib.suppress(OSError):
            os.killpg(spawner.server_proc.pid, signal.SIGKILL)  # an orphaned case would disturb the next one
        spawner.close()
        code = spawner.server_proc.returncode or 1
        output = f"{spawner._server_output or ''}\n{error}\nthe fork server died with it"
        chosen = getattr(spawner, "chosen", False)
        spawner.__init__(spawner.env, spawner.benchmark_dir)
        spawner.chosen = chosen
        spawner.preimport()
        return _NOT_RUN._replace(result=[None], errcode=code, stderr=output)


def _on_the_locked_card(record: Record, cards: Mapping[str, str]) -> Record:
    """The record, or a failure where the process found itself on another card than the run holds."""
    locked, used = cards.get(record.case.device), record.hardware.get("card")
    if not locked or not used or not re.fullmatch("[0-9a-f]{8}", str(used)) or locked == used:
        return record
    return Record(
        record.case,
        failure=Failure(
            "failed", f"torch measured card {used}, and the run holds card {locked}; its order is another"
        ),
    )


def _read(spool: Path) -> Record | None:
    try:
        return Record.from_json(json.loads(spool.read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _cases(run: state.Run, batch: Batch) -> Iterable[Case]:
    for name, benchmark in batch.benchmarks.items():
        if OP_KEY in benchmark:
            for index in batch.selected[name] or ():
                known = run.failure_key(batch, name, index) in run.failed
                if not known and selection.why_skipped(benchmark, index, batch.report) is None:
                    yield state.case_of(benchmark, index)


def _rounds(benchmarks: Any, options: Mapping[str, Any]) -> int:
    chosen = options.get("run_rounds")
    if chosen is not None:
        return len(chosen)
    if options.get("quick"):
        return 1
    extra = options.get("extra_params") or {}
    return int(extra.get("rounds", max(benchmark.get("rounds", 1) for benchmark in benchmarks.values())))


def _keep_unmeasured(original: Callable[..., Any]) -> Callable[..., Any]:
    # asv stores "not run" over old results of selected cases; after Ctrl-C only what was measured is stored.
    def add_result(self: Any, benchmark: Any, result: Any, **options: Any) -> None:
        run = state.active()
        if (
            run is not None
            and run.stopped
            and run.batch is not None
            and benchmark["name"] == run.batch.in_flight
        ):
            options["selected_idx"] = sorted(run.batch.measured)
        original(self, benchmark, result, **options)

    return add_result


def _log_broken_off(original: Callable[..., Any]) -> Callable[..., Any]:
    # asv would call the benchmark ok and announce the next one, though Ctrl-C has ended the run.
    def log_benchmark_result(results: Any, benchmark: Any, show_stderr: bool = False) -> None:
        run = state.active()
        if run is None or not run.stopped or run.batch is None or benchmark["name"] != run.batch.in_flight:
            original(results, benchmark, show_stderr)
            return
        _, details = asv.runner.format_benchmark_result(results, benchmark)
        log.add_padded("interrupted")
        if details:
            log.info(details, color="default")
        raise UserError("interrupted")

    return log_benchmark_result
