from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.util import UserError

from accel_micro.asv_plugin import prepare, selection, state
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse

HERE = {"unavailable": None, "clocks": ["throughput", "latency"]}
GPU = {"unavailable": None, "clocks": ["throughput", "latency", "dispatch", "device"]}
ABSENT = {"unavailable": "there is no GPU", "clocks": ["throughput"]}


def benchmark(clock: str) -> dict[str, Any]:
    return {
        "name": "f.op.time_forward" + ("" if clock == "throughput" else f"_{clock}"),
        "params": [["'cpu'", "'cuda'"], ["'float32'", "'float64'"], ["'n=1'", "'n=2'"]],
        "accel_micro": {
            "op": "f.op",
            "direction": "forward",
            "clock": clock,
            "shapes": {"quick": ["n=1"], "standard": [], "full": ["n=2"]},
            "dtypes": ["float32", "float64"],
        },
    }


def benchmarks(*clocks: str, regex: str | None = None) -> Any:
    listed = [benchmark(clock) for clock in clocks]
    return Benchmarks(SimpleNamespace(benchmark_dir="benchmarks"), listed, regex=regex)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[state.Run]:
    monkeypatch.setenv("ACCEL_MICRO_PROFILE", "quick")
    monkeypatch.delenv(state.DEVICES_VARIABLE, raising=False)
    with state.running() as made:
        yield made


def chosen(found: Any) -> dict[str, list[str]]:
    return {
        name: [str(state.case_of(entry, index)) for index in found.benchmark_selection[name]]
        for name, entry in found.items()
    }


def test_only_what_profile_and_devices_allow_is_left(run: state.Run) -> None:
    left = selection.select(
        benchmarks("throughput", "device", "latency"), [{"devices": {"cpu": HERE, "cuda": GPU}}]
    )
    assert chosen(left) == {
        "f.op.time_forward": ["f.op forward float32 n=1 on cpu", "f.op forward float32 n=1 on cuda"],
        "f.op.time_forward_device": ["f.op forward float32 n=1 on cuda"],
    }


def test_a_case_that_one_environment_runs_is_kept(run: state.Run) -> None:
    reports = [{"devices": {"cpu": HERE, "cuda": ABSENT}}, {"devices": {"cpu": ABSENT, "cuda": GPU}}]
    assert len(chosen(selection.select(benchmarks("throughput"), reports))["f.op.time_forward"]) == 2


def test_a_regular_expression_narrows_it_further(run: state.Run) -> None:
    found = benchmarks("throughput", regex="cuda")
    assert chosen(selection.select(found, [{"devices": {"cpu": HERE, "cuda": GPU}}])) == {
        "f.op.time_forward": ["f.op forward float32 n=1 on cuda"]
    }


def test_when_nothing_is_left_the_reasons_are_counted(run: state.Run) -> None:
    with pytest.raises(WrongUse, match=r"profile quick does not run float64 on cpu \(2 cases\)"):
        selection.select(benchmarks("throughput", regex="cpu.*float64"), [{"devices": {"cpu": HERE}}])
    with pytest.raises(EnvironmentLacks, match=r"^no case to run: there is no GPU \(4 cases\)$"):
        selection.select(benchmarks("throughput", regex="cuda"), [{"devices": {"cuda": ABSENT}}])


def test_devices_that_are_not_here_are_not_blamed_where_another_is(run: state.Run) -> None:
    report = {"devices": {"cpu": HERE, "cuda": ABSENT}}
    with pytest.raises(
        WrongUse, match=r"^no case to run: profile quick does not run float64 on cpu \(2 cases\)\."
    ):
        selection.select(benchmarks("throughput", regex="float64"), [report])


def test_devices_that_were_not_asked_for_are_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(state.DEVICES_VARIABLE, "cuda")
    with (
        state.running(),
        pytest.raises(EnvironmentLacks, match=r"^no case to run: there is no GPU \(4 cases\)$"),
    ):
        selection.select(benchmarks("throughput"), [{"devices": {"cpu": HERE, "cuda": ABSENT}}])


def test_unknown_devices_and_profiles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(state.DEVICES_VARIABLE, "cpu, gpu")
    with pytest.raises(WrongUse, match="unknown device 'gpu'; known: cpu, cuda"), state.running():
        pass
    monkeypatch.delenv(state.DEVICES_VARIABLE)
    monkeypatch.setenv("ACCEL_MICRO_PROFILE", "fast")
    with pytest.raises(WrongUse, match="unknown profile 'fast'; known: quick"), state.running():
        pass
    assert state._current is None


def test_indices_are_asv_s(run: state.Run) -> None:
    entry = benchmark("throughput")
    for index, values in enumerate(state.combinations(entry)):
        case = state.case_of(entry, index)
        assert (case.device, case.dtype, case.shape) == values


def test_the_answer_is_found_among_other_output() -> None:
    answer = prepare.MARK + '{"devices": {"cpu": {}}, "torch": {}}'
    assert prepare.read(f"a warning\n{answer}\nanother") == {"devices": {"cpu": {}}, "torch": {}}
    for output in ("", "a warning", prepare.MARK + "{torn", prepare.MARK + "[]"):
        assert prepare.read(output) is None


@pytest.mark.parametrize("wanted", ["atention", "attention.spda", "spda forward float32"])
def test_names_that_are_near_are_told(wanted: str) -> None:
    names = ["attention.sdpa.time_forward", "attention.decode.time_forward", "matmul.mm.time_forward"]
    said = str(selection._unmatched([wanted], names))
    assert said.startswith(f"no benchmark matches {wanted}; the nearest names are attention")
    assert "matmul.mm;" not in said


def test_clocks_are_no_reason_where_there_is_another() -> None:
    told = str(
        selection._nothing_left(
            Counter({"cpu has no device clock": 4, "profile quick does not run this shape": 1})
        )
    )
    assert told.startswith("no case to run: profile quick does not run this shape (1 cases). Profiles: quick")
    assert "--profile" in told
    assert "has no device clock (4 cases)" in str(
        selection._nothing_left(Counter({"cpu has no device clock": 4}))
    )


def test_ctrl_c_while_asv_lists_benchmarks_ends_the_run_as_any_other(run: state.Run) -> None:
    """asv makes a `UserError` of it, which would end the command as wrong use does."""

    def interrupted(*_: object, **options: object) -> object:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise UserError("Interrupted.")  # noqa: B904 - as asv does

    discover = selection._select_after(interrupted)
    with pytest.raises(UserError):
        discover(Benchmarks, None, None, [], [], regex=None)
    assert run.stopped
