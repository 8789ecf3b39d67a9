"""What else differed between two sides, and what is not known."""

from pathlib import Path
from typing import Any

import pytest

from accel_micro.comparison.differences import Differences, find_differences
from accel_micro.comparison.inventory import look
from accel_micro.comparison.pairing import pair_up
from accel_micro.comparison.sides import find_scope, find_sides
from accel_micro.results import read_results
from tests.comparison.results_folder import NEW, OLD, Results, case


def differences(results: Results) -> Differences:
    inventory = look(results.path, results.ledger)
    sides = find_sides(OLD.version, NEW.version, inventory)
    found = pair_up(read_results(results.path), "build", find_scope(sides, inventory))
    return find_differences(found.pairs, "build", results.path, found.environments)


def between(tmp_path: Path, first: dict[str, Any], second: dict[str, Any]) -> Differences:
    results = Results(tmp_path)
    for build, facts in ((OLD, first), (NEW, second)):
        results.trial(build.version, case(), 1e-5, facts=facts)
    return differences(results)


def host(**groups: Any) -> dict[str, Any]:
    return {"host": groups, "torch": {}}


@pytest.mark.parametrize(
    ("first", "second", "name", "values"),
    [
        (
            host(gpu={"devices": [{"driver": "570"}]}),
            host(gpu={"devices": [{"driver": "580"}]}),
            "gpu.devices.0.driver",
            (("570",), ("580",)),
        ),
        (
            host(cpu={"allowed_cores": 2}),
            host(cpu={"allowed_cores": 4}),
            "cpu.allowed_cores",
            ((2,), (4,)),
        ),
        (
            host(environment={"OMP_NUM_THREADS": "1"}),
            host(environment={}),
            "environment.OMP_NUM_THREADS",
            (("1",), ()),
        ),
        (host(load={"steal": 0.0}), host(load={"steal": 0.2}), "load.steal", ((0.0,), (0.2,))),
        (
            {"host": {}, "torch": {"threads": {"pools": [{"prefix": "libgomp", "num_threads": 1}]}}},
            {"host": {}, "torch": {"threads": {"pools": [{"prefix": "libgomp", "num_threads": 2}]}}},
            "threads.pools.libgomp.num_threads",
            ((1,), (2,)),
        ),
        (
            {"host": {}, "torch": {"build": {"version": "1", "cuda": "12.8"}}},
            {"host": {}, "torch": {"build": {"version": "2", "cuda": "13.0"}}},
            "build.cuda",
            (("12.8",), ("13.0",)),
        ),
    ],
)
def test_facts_that_differ(
    first: dict[str, Any], second: dict[str, Any], name: str, values: tuple[Any, Any], tmp_path: Path
) -> None:
    (found,) = between(tmp_path, first, second).found
    assert found.name == name
    assert (found.baseline, found.contender) == values


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (host(gpu={"devices": [{"clock_hertz": 3e8}]}), host(gpu={"devices": [{"clock_hertz": 2e9}]})),
        (host(load={"average": 0.1, "steal": 0.01}), host(load={"average": 3.0, "steal": 0.02})),
        (host(sources={"a": "b"}, unread={}), host(sources={}, unread={"gpu": "no driver"})),
        (host(memory={"available_bytes": 1}), host(memory={"available_bytes": 2})),
    ],
)
def test_facts_of_the_moment_do_not_count(
    first: dict[str, Any], second: dict[str, Any], tmp_path: Path
) -> None:
    assert between(tmp_path, first, second) == Differences(())


def test_modes_are_counted_by_the_rows_they_concern(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for build, tf32 in ((OLD, False), (NEW, True)):
        results.trial(build.version, case(), 1e-5, precision={"threads": 2, "matmul_tf32": tf32})
        results.trial(build.version, case(shape="m=8"), 1e-5, precision={"threads": [1, 2]})
    (found,) = differences(results).found
    assert (found.group, found.name, found.baseline, found.contender) == (
        "modes",
        "matmul_tf32",
        (False,),
        (True,),
    )
    assert found.pairs == 1


def test_missing_sessions_are_said_and_are_no_difference(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, facts={})
    results.trial(NEW.version, case(), 1e-5)
    found = differences(results)
    assert not found.found
    assert found.unknown == (
        "of 2 sessions only 1 left facts in workshop/sessions.jsonl: what else differed is not fully known",
    )


def test_environments_differ_by_name(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, environment="a")
    results.trial(NEW.version, case(), 1e-5, environment="b")
    (found,) = differences(results).found
    assert (found.group, found.baseline, found.contender) == ("environment", ("a",), ("b",))


def test_torn_lines_are_passed_over(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add_line("workshop", "sessions.jsonl", '{"session": 1, "torn')
    results.add_line("workshop", "sessions.jsonl", "[]")
    for build in (OLD, NEW):
        results.trial(build.version, case(), 1e-5)
    assert differences(results) == Differences(())
