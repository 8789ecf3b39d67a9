"""Which processes of two sides are compared, and what is said of the others."""

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from accel_micro.comparison.inventory import look
from accel_micro.comparison.pairing import DEFAULT_CLOCKS, Pair, Paired, pair_up
from accel_micro.comparison.sides import find_scope, find_sides
from accel_micro.measure.records import Failure
from accel_micro.results import Key, Measured, Stored, Trial, read_results
from tests.comparison.results_folder import NEW, OLD, Results, case, two_builds, two_devices


def paired(
    results: Results,
    names: tuple[str, str] = (OLD.version, NEW.version),
    clocks: Sequence[str] = DEFAULT_CLOCKS,
    bench: Sequence[str] = (),
) -> Paired:
    inventory = look(results.path, results.ledger)
    sides = find_sides(*names, inventory)
    scope = find_scope(sides, inventory, bench=bench)
    return pair_up(read_results(results.path), sides[0].kind, scope, clocks)


def groups(found: Paired) -> dict[tuple[str, str, str], int]:
    return {(g.reason, g.side, g.clock): len(g.cases) for g in found.uncompared}


def test_every_reason_is_counted_and_blamed_on_a_side(tmp_path: Path) -> None:
    found = paired(two_builds(tmp_path))
    assert len(found.pairs) == 19
    assert groups(found) == {
        ("crashed", "contender", ""): 2,
        ("wrong result", "contender", ""): 1,
        ("skipped", "both", ""): 1,
        ("not measured", "baseline", ""): 1,
    }
    assert [g.detail for g in found.uncompared if g.reason == "skipped"] == ["no kernel"]


def test_a_wrong_result_withholds_the_times_of_all_processes(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for build in (OLD, NEW):
        results.trial(build.version, case(), 1e-5)
    results.without_time(OLD.version, case(), Failure("implausible", "3 PFLOP/s"))
    results.trial(OLD.version, case(), 1e-5, at=30)
    found = paired(results)
    assert not found.pairs
    assert groups(found) == {("implausible", "baseline", ""): 1}


def test_other_failures_leave_the_times_and_are_told(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for build in (OLD, NEW):
        results.trial(build.version, case(), 1e-5)
    results.without_time(NEW.version, case(), Failure("crashed"))
    found = paired(results)
    assert len(found.pairs) == 1
    assert found.failed_once == 1


def test_times_that_are_none_are_withheld(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5)
    results.trial(NEW.version, case(), 0.0)
    assert groups(paired(results)) == {("implausible", "contender", ""): 1}


def test_clocks_that_one_side_lacks_are_told_once(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(device="cuda"), {"throughput": 2e-5, "device": 1e-5, "latency": 3e-5})
    results.trial(NEW.version, case(device="cuda"), {"throughput": 2e-5, "latency": 3e-5})
    found = paired(results)
    assert [pair.clock for pair in found.pairs] == ["throughput"], "latency only when it is asked for"
    assert groups(found) == {("clock not read", "contender", "device"): 1}
    assert [pair.clock for pair in paired(results, clocks=("latency",)).pairs] == ["latency"]
    assert groups(paired(results, clocks=("device",))) == {("not measured", "contender", ""): 1}


def test_devices_are_paired_by_op_and_dtype(tmp_path: Path) -> None:
    found = paired(two_devices(tmp_path), ("cpu", "cuda"))
    assert [(p.baseline.key.case.device, p.case.device, p.clock) for p in found.pairs] == [
        ("cpu", "cuda", "throughput")
    ] * 2
    assert groups(found) == {("not measured", "baseline", ""): 2}, "clocks of the GPU alone are no lack"
    assert {p.case.dtype for p in paired(two_devices(tmp_path / "b"), ("float32", "bf16")).pairs} == {
        "bfloat16"
    }


def test_expressions_choose_cases_by_asvs_name(tmp_path: Path) -> None:
    results = two_builds(tmp_path)
    assert len(paired(results, bench=[r"mm.time_forward\('cpu', 'float32', 'm=1024"]).pairs) == 1
    assert len(paired(results, bench=["^matmul", "^pooling"]).pairs) == 2


def test_one_environment_that_both_have_is_compared(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, environment="torch-py3.11", processes=3)
    results.trial(OLD.version, case(), 1e-5, environment="existing-py3.12", processes=7)
    results.trial(NEW.version, case(), 1e-5, environment="torch-py3.11", processes=3)
    found = paired(results)
    assert found.environments == ("torch-py3.11", "torch-py3.11")
    assert found.others == ({"existing-py3.12": 7}, {})
    assert len(found.pairs[0].baseline.processes) == 3


def test_without_a_common_environment_the_one_with_most_processes_counts(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, environment="a", processes=3)
    results.trial(OLD.version, case(), 1e-5, environment="b", processes=4)
    results.trial(NEW.version, case(), 1e-5, environment="c", processes=3)
    assert paired(results).environments == ("b", "c")


def test_sessions_of_both_sides_are_preferred(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, session="alone", at=100)
    for at, build in enumerate((OLD, NEW)):
        results.trial(build.version, case(), 1e-5, session="both", processes=3, at=at)
    (pair,) = paired(results).pairs
    assert pair.baseline.sessions == ("both",)
    assert pair.conditions == "interleaved"


def test_too_few_in_common_sessions_are_pooled_with_the_others(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5, session="alone", at=100)
    for at, build in enumerate((OLD, NEW)):
        results.trial(build.version, case(), 1e-5, session="both", processes=2, at=at)
    (pair,) = paired(results).pairs
    assert len(pair.baseline.processes) == 7
    assert pair.conditions == "apart"


def test_one_side_after_the_other_is_not_interleaved(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial(OLD.version, case(), 1e-5)
    results.trial(NEW.version, case(), 1e-5, at=60)
    assert paired(results).pairs[0].conditions == "in turn"


process = st.builds(
    Measured,
    samples=st.just((1e-5,)),
    session=st.sampled_from("abc"),
    started=st.sampled_from([f"2026-11-27T1{i}:00:00+00:00" for i in range(9)]),
)
side = st.lists(process, min_size=1, max_size=8)


@given(side, side)
def test_processes_are_all_or_those_of_common_sessions(first: list[Measured], second: list[Measured]) -> None:
    trials = {}
    for build, processes in (("a" * 40, first), ("b" * 40, second)):
        key = Key("m", build, "e", case(), "throughput")
        trials[key] = Trial(key, tuple(sorted(processes, key=lambda p: p.started)))
    from accel_micro.comparison.sides import Scope

    found = pair_up(Stored(trials=trials), "build", Scope(("m", "m"), ("a" * 40, "b" * 40)))
    (pair,) = found.pairs
    assert isinstance(pair, Pair)
    common = {p.session for p in first} & {p.session for p in second}
    kept = [(pair.baseline, first), (pair.contender, second)]
    if pair.conditions == "apart":
        assert all(len(trial.processes) == len(given) for trial, given in kept)
        assert not common or any(p.session not in common for p in (*first, *second))
    else:
        for trial, given_ in kept:
            assert len(trial.processes) == sum(p.session in common for p in given_) > 0
