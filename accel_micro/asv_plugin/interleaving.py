"""One process of one case on one of several builds at a time, in whatever order somebody wants.

asv measures a build to its end and then the next; a machine that changes meanwhile looks like a difference between
them. Here all builds are ready at once, and each call runs the next process where it is asked for. Records are kept
and asv's results grow as in any other run.
"""

import contextlib
import dataclasses
import time
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_micro import profiles
from accel_micro.asv_plugin import setup
from accel_micro.asv_plugin.embedding import SessionError, configured, quiet, told, variables
from accel_micro.measure import CLOCKS
from accel_micro.measure.records import Case, Record
from accel_micro.sweep import Sweep

if TYPE_CHECKING:
    from accel_micro.asv_plugin.events import Listener
    from accel_micro.asv_plugin.opening import Station, Stations, Where
    from accel_micro.asv_plugin.state import Run
    from accel_micro.builds.ahead import Ahead, Job

__all__ = ["Measure", "SessionError", "interleaved"]


class Measure:
    """What `interleaved` hands over: called with a place and a case, it runs one process and returns its record.

    Attributes:
        session: id of all its records. results: folder of asv's results and the records. log: what asv said.
    """

    def __init__(
        self,
        run: "Run",
        stations: "Stations",
        clocks: Sequence[str],
        results: Path,
        log: Path,
        lacking: "dict[Where, str]",
    ) -> None:
        self._lacking = lacking
        self._run, self._stations, self._clocks = run, stations, tuple(clocks)
        self._benchmarks = stations.benchmarks
        self._names = _names(self._benchmarks)
        self.session, self.results, self.log = run.session, results, log

    def add(self, place: "Where") -> str | None:
        """Have another place ready. Why it can never be, or None.

        Raises:
            EnvironmentLacks: it cannot be now: the network, or room on a disk.
        """
        from accel_micro.asv_plugin.errors import BuildBroken
        from accel_micro.asv_plugin.opening import start

        if place not in self._stations and place not in self._lacking:
            try:
                for _, why in start(self._stations.add([place])):
                    self._lacking[place] = str(why)
            except BuildBroken as error:
                self._lacking[place] = str(error)
        return self._lacking.get(place)

    def job(self, place: "Where") -> "Job | None":
        """What there is to make before a place can be added; None where there is nothing, or it cannot be."""
        return self._stations.job(place)

    def __call__(self, place: "Where", case: Case, lane: int = 0) -> Record:
        """Run one process of a case. What it left is returned, a failure too; so is why the case does not exist here.

        A size of an op's sweep, which is not among asv's parameters, leaves a record as any other and no result of asv.

        Args:
            lane: processes of one lane are forked from the same server until `renew` is called.

        Raises:
            KeyboardInterrupt: somebody pressed Ctrl-C, now or before.
            DeviceBusy: another run measures on the device.
            EnvironmentLacks: the suite cannot be imported.
        """
        import asv.runner

        from accel_micro.asv_plugin import headers
        from accel_micro.asv_plugin.state import Batch

        run = self._run
        if run.stopped:
            raise KeyboardInterrupt
        if place in self._lacking:
            return Record(case, skipped=self._lacking[place], session=run.session)
        station = self._stations[place]
        wanted = self._wanted(station, case)
        if isinstance(wanted, str):
            return Record(case, skipped=wanted, build=station.build.id, session=run.session)
        run.locks.acquire([case.device])
        server = station.server(lane)
        station.used.add(lane)
        chosen = {name: self._benchmarks[name] for name in sorted(wanted)}
        selected = {name: [wanted[name]] for name in chosen}
        run.batch = Batch(chosen, selected, station.environment.name, station.results, station.report)
        known = _index(chosen[min(chosen)], case) is not None
        run.batch.shape = None if known else case.shape
        before = len(run.records)
        try:
            headers.write(run, run.batch)
            for name, benchmark in chosen.items():  # the first runs the process, and it answers the others
                started, began = datetime.now(timezone.utc), time.perf_counter()
                answer = asv.runner.run_benchmark(
                    benchmark, server, profile=False, selected_idx=selected[name], extra_params={}
                )
                if run.stopped:
                    raise KeyboardInterrupt
                if known and _may_store(station.results, benchmark, selected[name][0], answer):
                    station.results.add_result(
                        benchmark,
                        answer,
                        started_at=started,
                        duration=time.perf_counter() - began,
                        record_samples=True,
                        append_samples=True,
                        selected_idx=selected[name],
                    )
        finally:
            run.batch = None
            run.failed.clear()  # who asks again shall have it run again
        station.save()
        return run.records[before]

    def renew(self, places: "Sequence[Where]", lanes: Sequence[int] = (0,)) -> None:
        """Let the next processes of these places come from servers that none was forked from yet.

        Whatever is forked from one server shares where its code, its heap and its hash tables lie, and with that
        a speed of its own: processes of one server agree with each other better than with those of another.

        Raises:
            EnvironmentLacks: the suite cannot be imported.
        """
        from accel_micro.asv_plugin.opening import start

        stations = [self._stations[place] for place in places if place not in self._lacking]
        for station in self._stations.values():
            station.end(only_used=True)
        for _, why in start(stations, lanes):
            raise why

    def why_not(self, place: "Where", case: Case) -> str | None:
        """Why a case does not exist in a place, a sentence; None when it does."""
        if place in self._lacking:
            return self._lacking[place]
        wanted = self._wanted(self._stations[place], case)
        return wanted if isinstance(wanted, str) else None

    def cases(self, place: "Where", profile: str = "standard") -> tuple[Case, ...]:
        """The cases that a profile runs in a place, in the suite's order."""
        from accel_micro.asv_plugin import state

        chosen, report = profiles.get(profile), self._stations[place].report
        found: dict[Case, None] = {}
        for _, benchmark in sorted(self._benchmarks.items()):
            if state.OP_KEY in benchmark:
                for index in range(len(state.combinations(benchmark))):
                    case = state.case_of(benchmark, index)
                    facts = benchmark[state.OP_KEY]
                    known = self._run.devices(report)
                    if not profiles.why_skipped(chosen, facts, case.device, case.dtype, case.shape, known):
                        found[case] = None
        return tuple(found)

    def version(self, place: "Where") -> str:
        """Version of the build of a place."""
        return self._stations[place].build.version

    def machine(self, place: "Where") -> str:
        """Name of this machine in the results."""
        return str(self._stations[place].results.params["machine"])

    def devices(self, place: "Where") -> tuple[str, ...]:
        """The devices that a place has, of those asked for.

        Raises:
            EnvironmentLacks: it has none of them; the message says why.
        """
        from accel_micro.asv_plugin.errors import EnvironmentLacks

        asked = self._run.devices(self._stations[place].report)
        found = tuple(name for name, facts in asked.items() if facts["unavailable"] is None)
        if not found:
            raise EnvironmentLacks(next((str(facts["unavailable"]) for facts in asked.values()), "no device"))
        return found

    @property
    def facts(self) -> list[Mapping[str, Any]]:
        """What the suite attaches to its benchmarks, see `suite`: one for each op, direction and clock."""
        from accel_micro.asv_plugin.state import OP_KEY

        return [benchmark[OP_KEY] for benchmark in self._benchmarks.values() if OP_KEY in benchmark]

    def _wanted(self, station: "Station", case: Case) -> dict[str, int] | str:
        """Benchmark → index of the parameters that are this case, for each clock; or why there is none."""
        from accel_micro.asv_plugin import selection

        why = "the suite has no such case"
        wanted: dict[str, int] = {}
        for clock, name in self._names.get((case.op, case.direction), {}).items():
            index = _index(self._benchmarks[name], case)
            if index is None and _is_swept(self._benchmarks[name], case.shape):
                index = _index(self._benchmarks[name], case, any_shape=True)
            if index is None or clock not in self._clocks:
                continue
            reason = selection.why_skipped(self._benchmarks[name], index, station.report)
            if reason is None:
                wanted[name] = index
            else:
                why = reason
        return wanted or why


@contextlib.contextmanager
def interleaved(
    config: Path | None = None,
    *,
    places: "Sequence[Where]",
    devices: Sequence[str] = (),
    clocks: Sequence[str] = (),
    profile: str = "standard",
    results: Path | None = None,
    listener: "Listener | None" = None,
    machine: str | None = None,
    launch_method: str | None = None,
    save: bool = True,
    log: Path | None = None,
    partial: bool = False,
    ahead: "Ahead | None" = None,
) -> Iterator[Measure]:
    """Have builds ready to be measured in any order, process by process; see `Measure`.

    Any case of the suite may be asked for, those too that the profile does not run: of the profile is the budget of a
    process alone.

    Args:
        config, results, listener, machine, launch_method, save, log: as for `session.run`.
        places: the builds; the same one may stand there once for both sides of a comparison.
        devices: those that will be asked for, else all; they are locked now, and others when they are measured. Of
            several cards `cuda:1` is the second; without an index it is the one that the machine's results are of.
        clocks: that every process reads, where the device has them; else those of the profile.
        partial: a build that cannot be run here costs itself only, unless none can: its records say why.
        ahead: what makes environments before they are asked for; to be closed by whoever hands it in.

    Raises:
        SessionError: a build is unknown or cannot be run here, a device is in use, or the suite cannot be imported.
            Raised inside the block too, when a device turns out to be in use.
    """
    setup()
    from asv.util import UserError

    from accel_micro.asv_plugin import state
    from accel_micro.asv_plugin.machine import devices_of
    from accel_micro.asv_plugin.opening import opened

    conf = configured(config, results, None)
    conf.branches = []
    lacking: dict[Where, str] = {}
    with contextlib.ExitStack() as stack:
        log_path = stack.enter_context(quiet(log))
        try:
            names = ",".join(devices_of(machine, devices))
            values = {profiles.ENVIRONMENT_VARIABLE: profile, state.DEVICES_VARIABLE: names or None}
            stack.enter_context(variables(values))
            run = stack.enter_context(state.running(*([listener] if listener else [])))
            run.embedded = run.interleaved = True
            run.ahead = ahead
            read = clocks or run.profile.clocks
            run.profile = _unrestricted(run.profile)
            run.locks.acquire(devices)
            stations = stack.enter_context(
                opened(
                    conf,
                    places,
                    machine=machine,
                    launch_method=launch_method,
                    save=save,
                    lacking=lacking if partial else None,
                )
            )
            yield Measure(run, stations, read, Path(conf.results_dir), log_path, lacking)
        except UserError as error:
            raise told(error, log_path) from None


def _unrestricted(profile: profiles.Profile) -> profiles.Profile:
    """With every case and clock of the suite, and its budget."""
    full = profiles.get("full")
    return dataclasses.replace(profile, cpu=full.cpu, accelerator=full.accelerator, clocks=tuple(CLOCKS))


def _names(benchmarks: Any) -> dict[tuple[str, str], dict[str, str]]:
    """(op, direction) → clock → benchmark."""
    from accel_micro.asv_plugin.state import OP_KEY

    names: dict[tuple[str, str], dict[str, str]] = {}
    for name, benchmark in benchmarks.items():
        facts = benchmark.get(OP_KEY)
        if facts is not None:
            names.setdefault((facts["op"], facts["direction"]), {})[facts["clock"]] = name
    return names


def _index(benchmark: Mapping[str, Any], case: Case, *, any_shape: bool = False) -> int | None:
    """Of the parameters that are this case, or of those that differ from it in the shape only."""
    index = 0
    shape = literal_eval(benchmark["params"][2][0]) if any_shape else case.shape
    for axis, value in zip(benchmark["params"], (case.device, case.dtype, shape), strict=True):
        text = repr(value)  # as asv keeps parameters
        if text not in axis:
            return None
        index = index * len(axis) + axis.index(text)
    return index


def _is_swept(benchmark: Mapping[str, Any], shape: str) -> bool:
    """Whether the op's sweep has this shape."""
    from accel_micro.asv_plugin.state import OP_KEY

    text = benchmark[OP_KEY].get("sweep")
    return text is not None and Sweep.parse(text).covers(shape)


def _may_store(results: Any, benchmark: Mapping[str, Any], index: int, answer: Any) -> bool:
    """A failure is stored where there is nothing yet: asv would forget all samples of the processes before it."""
    if answer.result[index] is not None:
        return True
    if benchmark["name"] not in results.get_result_keys({benchmark["name"]: benchmark}):
        return True
    old = results.get_result_value(benchmark["name"], benchmark["params"])
    return old is None or old[index] is None or old[index] != old[index]
