"""Builds made ready to be measured by turns: each with its environment, its results and servers of its own."""

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import asv.environment
import asv.repo
import asv.runner
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.repo import NoSuchNameError
from asv.results import Results
from asv.util import UserError

from accel_micro.asv_plugin import saving, selection, state, switching
from accel_micro.asv_plugin.environment import TorchEnvironment
from accel_micro.asv_plugin.errors import BuildBroken, EnvironmentLacks, NoEnvironment, WrongUse
from accel_micro.asv_plugin.state import TOOL
from accel_micro.asv_plugin.syncing import sync
from accel_micro.builds import Build
from accel_micro.builds.ahead import Job

EXISTING: Final = "existing"
"""asv's name of environments that have their torch already."""

_SHARE_OF_SAVING: Final = 0.02
"""Of the time that may go into saving asv's results: a file of years takes as long to write as a process to measure."""


@dataclass(frozen=True)
class Where:
    """A build and what it is run in.

    Attributes:
        build: a name, version, date or id, as on the command line; `HEAD` for the installed torch.
        environment: name of asv's environment, as in the records. Without one the installed torch is run where it
            is, and any other build in an environment of its own; so is one that was installed and is no more.
    """

    build: str = "HEAD"
    environment: str | None = None


@dataclass
class Station:
    """A build, ready.

    Attributes:
        servers: by lane, what starts processes; see `server`. used: lanes that have started one.
    """

    build: Build
    environment: Any
    results: Any
    report: Mapping[str, Any] = field(default_factory=dict)
    benchmark_dir: str = ""
    launch_method: str = "auto"
    servers: dict[int, Any] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    save_seconds: float = 0.0
    saved_at: float = 0.0

    def server(self, lane: int = 0) -> Any:
        """What starts the processes of a lane: asv's spawner, with the suite imported where it forks.

        Raises:
            EnvironmentLacks: the suite cannot be imported.
        """
        if lane not in self.servers:
            server = asv.runner.get_spawner(self.environment, self.benchmark_dir, self.launch_method)
            self.servers[lane] = server
            success, output = server.preimport()
            if not success:
                last = [line.strip() for line in str(output).splitlines() if line.strip()]
                why = last[-1] if last else "its process ended"
                raise EnvironmentLacks(f"the suite cannot be imported with torch {self.build.version}: {why}")
        return self.servers[lane]

    def end(self, *, only_used: bool = False, interrupted: bool = False) -> None:
        """End its servers, or those that have started a process."""
        for lane in [lane for lane in self.servers if lane in self.used or not only_used]:
            server = self.servers.pop(lane)
            server.interrupted = server.interrupted or interrupted
            server.close()
        self.used.clear()

    def save(self, *, at_once: bool = False) -> None:
        """Write asv's results, unless that was done so lately that it would hold up the measuring."""
        began = time.perf_counter()
        if at_once or began - self.saved_at >= self.save_seconds / _SHARE_OF_SAVING:
            saving.save(self.results)
            self.saved_at = time.perf_counter()
            self.save_seconds = self.saved_at - began


class Stations(dict[Where, Station]):
    """The places that are ready, and those that cannot be.

    Attributes:
        benchmarks: asv's list. lacking: place → why it cannot be run; `None` when that is an error.
    """

    def __init__(
        self,
        conf: Any,
        *,
        machine: str | None,
        launch_method: str | None,
        save: bool,
        lacking: dict[Where, str] | None,
    ) -> None:
        super().__init__()
        self.conf, self.save, self.lacking = conf, save, lacking
        self.launch_method = launch_method or conf.launch_method or "auto"
        self.machine = Machine.load(machine_name=machine, interactive=True)
        if save:
            self.machine.save(conf.results_dir)
        self.repo = asv.repo.get_repo(conf)
        self.benchmarks: Any = None

    def add(self, places: Iterable[Where]) -> list[Station]:
        """Have more places ready, all but their servers, and return their stations.

        Raises:
            EnvironmentLacks, WrongUse: as for `opened`. BuildBroken: it never can be run.
        """
        run = state.current()
        lacking = self.lacking
        known = {id(station) for station in self.values()}
        stations = _stations(self.conf, self.repo, dict.fromkeys(places), self.machine, lacking, self)
        for station in _each(stations):
            if id(station) in known:
                continue
            with _may_lack(stations, station, lacking):
                _install(self.conf, self.repo, station, self.save)
                run.asking[state.report_key(station.environment)] = selection.ask(station.environment)
        self.update(stations)
        ready = [station for station in _each(stations) if id(station) not in known]
        if self.benchmarks is None and ready:
            self.benchmarks = self._discover(ready[0])
        for station in ready:
            station.report = selection.report_of(station.environment)
            switching.write_installs(run, station.results)
            station.benchmark_dir = self.benchmarks.benchmark_dir
            station.launch_method = self.launch_method
        return ready

    def job(self, place: Where) -> Job | None:
        """What there is to make before a place can be added; None where there is nothing, or it cannot be."""
        try:
            build, environment = _place(self.conf, self.repo, place)
        except (NoSuchNameError, UserError):
            return None
        return environment.job(self.repo.ledger, build) if isinstance(environment, TorchEnvironment) else None

    def _discover(self, first: Station) -> Any:
        """Not what a profile selects, but all: the cases are chosen by whoever measures."""
        try:
            found = Benchmarks._disc_benchmarks(
                self.conf, self.repo, [first.environment], [first.build.id], False
            )
        except UserError as error:
            if selection.was_ctrl_c(error):
                raise KeyboardInterrupt from None
            raise
        benchmarks = Benchmarks(self.conf, found)
        for benchmark in benchmarks.values():
            if benchmark.get("timeout") is None:
                benchmark["timeout"] = first.environment._default_benchmark_timeout
        if self.save:
            benchmarks.save()
        return benchmarks

    def close(self) -> None:
        """Save results and end servers, whatever goes wrong with one of them."""
        with contextlib.ExitStack() as stack:
            for station in _each(self):
                stack.callback(_close, state.current(), station)


@contextlib.contextmanager
def opened(
    conf: Any,
    places: Iterable[Where],
    *,
    machine: str | None,
    launch_method: str | None,
    save: bool,
    lacking: dict[Where, str] | None = None,
) -> Iterator[Stations]:
    """Every place ready, all at the same time, and asv's list of benchmarks.

    Places that are the same build in the same environment share a station. On leaving, results are saved and servers
    are ended, whatever happened.

    Args:
        lacking: where it is given, a place that cannot be run is left out, and this tells why, unless all are.

    Raises:
        EnvironmentLacks, WrongUse: a build is unknown or cannot be run here, or the suite cannot be imported.
    """
    stations = Stations(conf, machine=machine, launch_method=launch_method, save=save, lacking=lacking)
    try:
        stations.add(places)
        for station, why in start(_each(stations)):
            with _may_lack(stations, station, lacking):
                raise why
        yield stations
    finally:
        stations.close()


def _each(stations: Mapping[Where, Station]) -> list[Station]:
    return list({id(station): station for station in stations.values()}.values())


@contextlib.contextmanager
def _may_lack(
    stations: dict[Where, Station], station: Station, lacking: dict[Where, str] | None
) -> Iterator[None]:
    """What cannot be run is left out, unless nobody wants to know why, or nothing else is left."""
    try:
        yield
    except EnvironmentLacks as error:
        places = [place for place, one in stations.items() if one is station]
        if lacking is None or len(places) == len(stations):
            raise
        for place in places:
            lacking[place] = str(error)
            del stations[place]


def _stations(
    conf: Any,
    repo: Any,
    places: Iterable[Where],
    machine: Any,
    lacking: dict[Where, str] | None,
    known: Mapping[Where, Station],
) -> dict[Where, Station]:
    synced = False
    failure: Exception | None = None
    stations: dict[Where, Station] = {}
    shared = {(station.build.id, station.environment.name): station for station in known.values()}
    for place in places:
        while True:
            try:
                build, environment = _place(conf, repo, place)
                break
            except (NoSuchNameError, UserError) as error:
                if not synced and not isinstance(error, WrongUse):
                    sync(conf, repo.ledger)  # it may be newer than what is known
                    synced = True
                    continue
                failure = _told(error)
                if lacking is None:
                    raise failure from None
                lacking[place] = str(failure)
                break
        if lacking and place in lacking:
            continue
        key = (build.id, environment.name)
        if key not in shared:
            shared[key] = Station(build, environment, _results(repo, build, environment, machine))
        stations[place] = shared[key]
    if not stations and failure is not None:
        raise failure
    return stations


def _told(error: Exception) -> Exception:
    return WrongUse(str(error)) if isinstance(error, NoSuchNameError) else error


def _place(conf: Any, repo: Any, place: Where) -> tuple[Build, Any]:
    build: Build = repo.build(place.build)
    installed = None
    with contextlib.suppress(UserError):
        installed = repo.head()
    here = installed is not None and installed.id == build.id
    name = place.environment or (EXISTING if here else TOOL)
    if name.startswith(EXISTING) and not here:
        name = TOOL  # it was installed when it was measured, and no more
    if name.startswith(EXISTING):
        return build, _environments(conf, EXISTING)[0]
    python = re.match(rf"{TOOL}-py([\d.]+t?)", name)
    found = _environments(conf, TOOL)
    chosen = [environment for environment in found if name in (TOOL, environment.name)]
    if not chosen:
        if not python:
            raise EnvironmentLacks(f"there is no environment {name} here")
        chosen = _environments(conf, f"{TOOL}:{python[1]}", name)
    why = chosen[0].why_not(repo.ledger, build)
    if why is not None:
        raise BuildBroken(why)
    return build, chosen[0]


def _environments(conf: Any, spec: str, name: str = "") -> list[Any]:
    found = list(asv.environment.get_environments(conf, [spec], verbose=False))
    if not found:
        raise EnvironmentLacks(f"there is no environment {name or spec} here")
    return found


def _results(repo: Any, build: Build, environment: Any, machine: Any) -> Any:
    params = {**machine.__dict__, "python": environment.python, **environment.requirements}
    return Results(
        params,
        environment.requirements,
        build.id,
        repo.get_date(build.id),
        environment.python,
        environment.name,
        environment.env_vars,
    )


def _install(conf: Any, repo: Any, station: Station, save: bool) -> None:
    if isinstance(station.environment, TorchEnvironment):
        try:
            station.environment.install_project(conf, repo, station.build.id)
        except NoEnvironment as error:
            kind = BuildBroken if error.for_good else EnvironmentLacks
            raise kind(str(error)) from None
    if save:
        repo.remember(station.build.id)
        station.results.load_data(conf.results_dir)
        saving.hold(station.results)


def start(stations: Iterable[Station], lanes: Iterable[int] = (0,)) -> list[tuple[Station, EnvironmentLacks]]:
    """Have servers up, all at the same time. Returns the stations in which the suite cannot be imported."""
    wanted = [(station, lane) for station in {id(s): s for s in stations}.values() for lane in lanes]

    def one(station: Station, lane: int) -> EnvironmentLacks | None:
        try:
            station.server(lane)
        except EnvironmentLacks as error:
            return error
        return None

    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        answers = pool.map(lambda each: one(*each), wanted)
        return [(station, why) for (station, _), why in zip(wanted, answers, strict=True) if why]


def _close(run: state.Run, station: Station) -> None:
    try:
        station.save(at_once=True)
    finally:
        station.end(interrupted=run.stopped)
