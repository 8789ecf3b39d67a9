"""Faults planted in real models, by the real commands: each is found and named, and where it is absent it is not.

Those of single ops (denormals), of Python in a module and of an optimizer are in `test_explain.py`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel_micro.devices import store
from tests.commands.test_explain import run

pytestmark = pytest.mark.slow

LOOKED_AT = ["--processes", "1", "--budget", "0.1", "--replay", "4"]
"""For what a step does, whatever time it takes."""
TIMED = ["--processes", "5", "--budget", "0.1", "--replay", "1"]
"""For what takes many times as long. Few processes, so that one that was disturbed is one of five."""


class Captures:
    """Captures of planted models, each made once for all tests of this file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, model: str, loader: str = "", how: list[str] = TIMED) -> Path:
        """The file with that capture."""
        path = self.folder / f"{model} {loader} {how[1]}.json"
        if not path.exists():
            fed = ["--loader", f"tests.explain.planted:{loader}"] if loader else []
            name = f"tests.explain.planted:{model}"
            done = run("capture", name, "--set", "threads=1", "-o", path, *how, *fed)
            assert done.exit_code == 0, done.output
        return path

    def explained(self, baseline: Path, contender: Path) -> dict[str, Any]:
        """What `explain --json` says of the two."""
        return dict(json.loads(run("explain", baseline, contender, "--json").stdout))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What these tests remember of the machine: its speed and peaks are measured once."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@pytest.fixture
def captures(
    folder: Path, machine: Path, _own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Captures]:
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(machine))
    yield Captures(folder)


def named(data: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Name and side of each cause → its text."""
    return {(cause["name"], cause["side"]): cause["text"] for cause in data["causes"]}


def test_a_wrong_op_is_named_and_not_those_after_it(captures: Captures) -> None:
    data = captures.explained(captures.of("wrong", how=LOOKED_AT), captures.of("sound", how=LOOKED_AT))
    found = named(data)
    # Each op is checked with the numbers that it was given: the layers after the wrong one are right.
    assert "forward planted.doubled of 1 is wrong (relative error 0.01" in found["wrong result", "baseline"]
    assert "more after it" not in found["wrong result", "baseline"]
    assert ("wrong result", "contender") not in found


def test_a_number_that_is_read_back_each_step_is_named_with_what_it_costs(captures: Captures) -> None:
    found = named(
        captures.explained(captures.of("sound", how=LOOKED_AT), captures.of("asking", how=LOOKED_AT))
    )
    assert "a step asks for a number once (.item() and the like): on a CPU nobody waits" in found[
        "synchronisation", "contender"
    ]  # fmt: skip
    assert ("synchronisation", "baseline") not in found


def test_a_first_step_that_compiles_is_named(captures: Captures) -> None:
    found = named(
        captures.explained(captures.of("compiled", how=LOOKED_AT), captures.of("sound", how=LOOKED_AT))
    )
    assert "the first step takes" in found["first step", "baseline"]
    assert ("first step", "contender") not in found
    assert not {("recompilation", "baseline"), ("recompilation", "contender")} & found.keys()


def test_an_op_that_was_made_slower_is_named(captures: Captures) -> None:
    data = captures.explained(captures.of("slower"), captures.of("sound"))
    first = data["contributions"][0]
    assert (first["kind"], first["ops"]) == ("op", ["planted.doubled.default"])
    assert first["significant"] and first["seconds"] > 0.5 * data["difference_seconds"] > 0
    found = named(data)
    assert "forward planted.doubled: " in found["slow kernel", "baseline"]
    assert ("slow kernel", "contender") not in found and ("wrong result", "baseline") not in found


@pytest.mark.parametrize("fault", ["slow_reading", "slow_transform"])
def test_a_slow_loader_is_named_and_what_of_it_is_slow(captures: Captures, fault: str) -> None:
    data = captures.explained(captures.of("sleepy", fault), captures.of("sleepy", "quick_loader"))
    first = data["contributions"][0]
    assert (first["kind"], first["label"]) == ("loader", "waiting for the loader")
    # A sleep ends late where the machine is busy, by as much as it lasts, and never early: no interval is asked for.
    assert first["seconds"] > 0.8 * 16e-3 / 4
    found = named(data)
    assert "a faster device changes nothing" in found["loader-bound", "baseline"]
    assert (("slow transform", "baseline") in found) == (fault == "slow_transform")
    assert not {("loader-bound", "contender"), ("slow transform", "contender")} & found.keys()


def test_more_threads_than_cores_are_named_with_what_to_try(captures: Captures) -> None:
    cores = len(os.sched_getaffinity(0))
    done = run(
        "explain", "--model", "tests.explain.planted:threaded", "--baseline", f"threads={8 * cores}",
        "--contender", "threads=1", "--no-confirm", "--json", *TIMED,
    )  # fmt: skip
    data = json.loads(done.stdout)
    found = named(data)
    assert f"{8 * cores} threads share {cores} core" in found["too many threads", "baseline"]
    assert ("too many threads", "contender") not in found
    cause = next(each for each in data["causes"] if each["name"] == "too many threads")
    assert cause["setting"] == f"cpu batch=4 threads={cores}"
