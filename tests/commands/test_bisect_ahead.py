"""The order of events in a worker: nothing is downloaded or installed while one of its blocks runs."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from accel_micro.bisect import Search, Worker
from accel_micro.commands import bisect_script
from accel_micro.commands.bisect_ahead import Expected
from accel_micro.commands.bisect_measure import _Blocks
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Record
from accel_micro.results.questions import Named, Question, Script
from tests.bisect.test_driving import Memory

CASE = Case("ops.plain", "forward", "cpu", "float32", "n=1")
IDS = [f"b{i:02}" for i in range(20)]
CULPRIT, BROKEN = 13, "b05"


class Installer:
    """An `Ahead` that makes something for ever, and notes what happens."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.running = False
        self.made: set[str] = set()

    def want(self, jobs: Sequence[Any]) -> None:
        self.running = True
        self.events.append("want " + " ".join(job.name for job in jobs))

    def pause(self) -> None:
        self.running = False
        self.events.append("pause")

    def finish(self, name: str) -> None:
        self.events.append(f"finish {name}")

    def taken(self, name: str) -> bool:
        self.events.append(f"taken {name}")
        return False


class Job:
    def __init__(self, name: str) -> None:
        self.name = name


class Measuring:
    """A `Measure` of builds that answer at once."""

    def __init__(self, installer: Installer) -> None:
        self.installer = installer

    def add(self, build: str) -> str | None:
        self.installer.events.append(f"install {build}")
        return "it is broken" if build == BROKEN else None

    def renew(self, builds: Sequence[str], lanes: Sequence[int]) -> None:
        assert not self.installer.running, "servers that are measured from start beside an installation"
        self.installer.events.append("renew")

    def __call__(self, build: str, case: Case, lane: int) -> Record:
        self.installer.events.append(f"run {build}{' beside' if self.installer.running else ''}")
        seconds = (1.3e-3 if IDS.index(build) >= CULPRIT else 1e-3,) * 20
        return Record(
            case, clocks={"throughput": Process("cpu", "throughput", seconds, seconds, (1.0,) * 20, 7)}
        )


def question(**more: Any) -> Question:
    builds = tuple(Named(id_, f"2.15.0.{id_}") for id_ in IDS)
    return Question(builds=builds, starts=(IDS[0],), case=CASE, **more)


def blocks_of(events: Sequence[str]) -> list[list[str]]:
    """Events from where nothing more is installed to the end of each block."""
    parted: list[list[str]] = []
    for event in events:
        if event == "pause":
            parted.append([])
        elif parted and not event.startswith(("install", "want", "finish", "taken")) and len(parted[-1]) < 5:
            parted[-1].append(event)
    return parted


def test_a_block_never_overlaps_with_an_installation() -> None:
    installer = Installer()
    said: list[str] = []
    runner = _Blocks(
        Measuring(installer),  # type: ignore[arg-type]
        question(),
        lambda build, why: said.append(why),
        said.append,
        lambda build: build,  # type: ignore[arg-type,return-value]
        Expected(installer, Job),  # type: ignore[arg-type]
    )
    journal = Memory()
    result = Worker(journal, Search(IDS)).run(runner, ahead=runner.expected)
    assert result.culprit == ("b12", "b13")
    parted = blocks_of(installer.events)
    assert len(parted) == result.runs // 4 >= 10
    for block in parted:
        assert block[0] == "renew", "nothing comes between the pause and the block"
        assert block[1:] and all(event.startswith("run") and "beside" not in event for event in block[1:])
    wanted = [event for event in installer.events if event.startswith("want")]
    assert wanted, "while one build is installed in the foreground, others are in the background"
    for event in wanted:
        place = installer.events.index(event)
        foreground = installer.events[place + 1].removeprefix("finish ")
        assert foreground not in event.split(), "and never the same one"
        assert installer.events[place + 2] == f"install {foreground}"
    assert f"making torch 2.15.0.{IDS[0]} ready" in said


def test_a_worker_that_waits_lets_installations_go_on_and_halts_them_for_its_next_block() -> None:
    installer = Installer()
    expected = Expected(installer, lambda id_: None if id_ == "b03" else Job(id_))  # type: ignore[arg-type,return-value]
    expected.expect(["b02", "b03", "b04"])
    assert installer.events == [], "what is expected is not begun at once"
    expected.idle()
    expected.idle()
    expected.needed([])
    expected.finish("b03")
    expected.pause()
    assert installer.events == ["want b02 b04", "want b02 b04", "pause"]


def test_a_script_is_not_run_beside_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    installer = Installer()

    def run_script(python: Path, script: Script, version: str) -> tuple[float, str]:
        installer.events.append(f"run {python.name}{' beside' if installer.running else ''}")
        return (2.0 if IDS.index(python.name) >= CULPRIT else 1.0), ""

    monkeypatch.setattr(bisect_script, "run_script", run_script)
    monkeypatch.setattr(bisect_script._Scripts, "_made", lambda self, build: Path("/env") / build)
    with contextlib.ExitStack() as stack:
        script = question(script=Script("check.py"), regress="error")
        runner = bisect_script._Scripts(script, None, None, None, lambda *_: None, stack, installer)  # type: ignore[arg-type]
        runner.expected._job = Job  # type: ignore[assignment]
        result = Worker(Memory(), Search(IDS)).run(runner, ahead=runner.expected)
    assert result.culprit == ("b12", "b13")
    for block in blocks_of(installer.events):
        assert block and all("beside" not in event for event in block[:4])
