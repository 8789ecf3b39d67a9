"""What adds up, what reverses, what is named, and what is not."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.explain.aligning import Group
from accel_micro.explain.attribution import CannotExplain, explain
from accel_micro.explain.capture import Capture, Fed, Reading
from accel_micro.explain.contributing import contribution
from accel_micro.explain.explanation import CONFIDENCE
from tests.explain.worlds import GAP, LAYERS, capture, row

settings.register_profile("any time", deadline=None)
settings.load_profile("any time")

LAYER = st.integers(0, len(LAYERS) - 1)
FACTORS = st.dictionaries(LAYER, st.floats(0.1, 10.0), max_size=4)
GAPS = st.dictionaries(LAYER, st.floats(0.0, 5e-3), max_size=4)
WORLDS = st.builds(
    lambda slower, gaps, rest, batch, seed: capture(
        slower=slower, gaps=gaps, unexplained=rest, batch=batch, noise=0.02, seed=seed
    ),
    FACTORS,
    GAPS,
    st.floats(0.0, 3e-3),
    st.sampled_from([1, 4, 64]),
    st.integers(0, 99),
)


@given(WORLDS, WORLDS)
def test_contributions_add_up_to_the_difference_and_factors_to_the_speedup(
    one: object, other: object
) -> None:
    e = explain(one, other)  # type: ignore[arg-type]
    seconds = [each.seconds.value for each in e.contributions]
    scale = max(map(abs, seconds))
    assert math.fsum(seconds) == pytest.approx(e.difference, abs=1e-9 * scale + 1e-15)
    assert math.prod(each.factor for each in e.contributions) == pytest.approx(e.speedup.value, rel=1e-9)
    for each in e.contributions:
        assert each.seconds.low <= each.seconds.value <= each.seconds.high


@given(WORLDS, WORLDS)
def test_swapping_the_sides_reverses_every_sign(one: object, other: object) -> None:
    there, back = explain(one, other), explain(other, one)  # type: ignore[arg-type]

    def by_group(e: object) -> dict[tuple[str, str, str], float]:
        return {(c.group.kind, c.group.phase, c.group.label): c.seconds.value for c in e.contributions}  # type: ignore[attr-defined]

    forward, backward = by_group(there), by_group(back)
    for kind in ("op", "unexplained"):
        for key, value in forward.items():
            if key[0] == kind:
                assert backward[key] == pytest.approx(-value, abs=1e-12)
    assert sum(v for k, v in forward.items() if k[0] == "framework") == pytest.approx(
        -sum(v for k, v in backward.items() if k[0] == "framework"), abs=1e-12
    )
    assert there.speedup.value == pytest.approx(1 / back.speedup.value)


@given(WORLDS)
def test_a_capture_against_itself_says_nothing(world: object) -> None:
    e = explain(world, world)  # type: ignore[arg-type]
    assert not e.significant and not e.differs and e.difference == 0 and e.speedup.value == 1
    assert e.unexplained is None


@pytest.mark.parametrize("seed", range(40))
def test_noise_alone_is_not_significant(seed: int) -> None:
    e = explain(capture(noise=0.03, seed=seed), capture(noise=0.03, seed=1000 + seed), interleaved=True)
    assert not e.significant and not e.differs


@given(LAYER, st.floats(2.5, 8.0), st.integers(0, 50))
def test_a_planted_slow_op_is_named_first(layer: int, factor: float, seed: int) -> None:
    e = explain(capture(noise=0.01, seed=seed), capture(slower={layer: factor}, noise=0.01, seed=seed + 100))
    expected = LAYERS[layer][4] * (1 - factor) / 4
    first = e.significant[0]
    assert first.group.label == LAYERS[layer][0].split(".")[1] and first.group.phase == LAYERS[layer][1]
    assert first.seconds.value == pytest.approx(expected, rel=0.2) and first.seconds.value < 0
    assert e.speedup.value < 1


def at_speeds(side: Capture, factors: Sequence[float]) -> Capture:
    """A capture of whose processes each ran on a machine that is slower by one of these."""
    readings = tuple(
        replace(
            reading,
            steps=tuple(factor * s for s in reading.steps),
            ops=tuple(factor * s for s in reading.ops),
            gaps=tuple(factor * s for s in reading.gaps),
        )
        for reading, factor in zip(side.readings, factors, strict=True)
    )
    return replace(side, readings=readings)


SPEEDS = [1.0, 1.8, 1.8, 1.0]


@pytest.mark.parametrize("seed", range(10))
def test_an_op_many_times_slower_is_significant_on_a_machine_of_two_speeds(seed: int) -> None:
    one = at_speeds(capture(noise=0.03, processes=4, seed=seed, slower={3: 8.0}), SPEEDS)
    e = explain(one, at_speeds(capture(noise=0.03, processes=4, seed=seed + 100), SPEEDS), interleaved=True)
    assert [each.group.label for each in e.significant] == ["mm"]


@pytest.mark.parametrize("seed", range(40))
def test_a_machine_of_two_speeds_alone_makes_nothing_significant(seed: int) -> None:
    drawn = random.Random(seed)
    one, other = (
        at_speeds(capture(noise=0.03, processes=4, seed=n), drawn.sample(SPEEDS, k=4))
        for n in (seed, seed + 100)
    )
    assert not explain(one, other, interleaved=True).significant


@given(
    st.lists(st.floats(1e-6, 1e-2), min_size=4, max_size=4),
    st.lists(st.floats(1e-6, 1e-2), min_size=4, max_size=4),
)
def test_no_p_value_says_more_than_its_interval(ones: list[float], others: list[float]) -> None:
    found = contribution(Group("op", "mm"), [ones, others], [0.0, 0.0], least=1e-4)
    holds_zero = found.seconds.low < 0 < found.seconds.high
    assert found.q_value is not None
    assert not holds_zero or found.q_value >= 1 - CONFIDENCE


def test_a_group_that_one_side_lacks_is_significant_however_the_other_s_processes_scatter() -> None:
    """As read of a module with 5 ms of Python in two thirds of its processes' usual time, on a busy machine."""
    read = [1135.6e-6, 677.4e-6, 963.4e-6, 1124.2e-6]
    for lacking in ([0.0] * 4, [0.3e-6, 0.0, 2.9e-6, 0.01e-6]):
        found = contribution(
            Group("framework", "Python in Sleepy 3"), [read, lacking], [0.0, 0.0], least=30e-6
        )
        assert found.q_value is not None and found.q_value < 5e-4
        assert found.seconds.low > 0


def test_a_group_that_takes_no_time_worth_naming_has_no_difference() -> None:
    found = contribution(Group("op", "mm"), [[1e-6] * 4, [9e-6] * 4], [0.0, 0.0], least=30e-6)
    assert found.q_value == 1.0


def test_python_in_a_module_is_a_group_of_its_own() -> None:
    e = explain(capture(noise=0.01), capture(gaps={1: 5e-3}, noise=0.01, seed=3))
    first = e.significant[0]
    assert (first.group.kind, first.group.label) == ("framework", "Python in ReLU act")
    assert first.seconds.value == pytest.approx((GAP - 5e-3) / 4, rel=0.1)


def test_batches_of_two_sizes_are_compared_by_example() -> None:
    small, large = capture(batch=4), capture(slower=dict.fromkeys(range(6), 16.0), batch=64)
    e = explain(small, large)
    assert e.difference == pytest.approx(sum(GAP for _ in LAYERS) * (1 / 4 - 1 / 64))
    assert all(abs(c.seconds.value) < 1e-12 for c in e.contributions if c.group.kind == "op")


def test_a_foreach_optimizer_is_held_against_the_one_by_one() -> None:
    one_by_one = capture()
    rows = [*one_by_one.rows[:-1], row(5, op="aten._foreach_addcdiv_.Scalar")]
    e = explain(one_by_one, capture(rows=rows, slower={5: 0.25}))
    assert e.significant[0].group.label == "the optimizer's step"
    assert e.significant[0].seconds.value == pytest.approx(0.75 * LAYERS[5][4] / 4)


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        (("addcdiv_",), {"addcdiv_", "sqrt"}),  # an op of the other side, once more
        (("addcdiv_", "square"), {"other calls of the optimizer", "sqrt"}),
        (("addcdiv_", "sqrt"), {"the optimizer's step"}),
        (("square",), {"the optimizer's step"}),  # what only one side calls is held against nothing less
    ],
)
def test_calls_that_one_side_makes_more_often_are_apart(more: tuple[str, ...], labels: set[str]) -> None:
    """A build that calls something more often in the optimizer's step had the whole step named in its place."""

    def with_rows(side: Capture, names: tuple[str, ...]) -> Capture:
        added = [replace(row(5, op=f"aten.{name}.default"), scalars="another") for name in names]
        readings = tuple(
            replace(
                each,
                ops=(*each.ops, *(2e-3 for _ in names)),
                gaps=(*each.gaps, *(GAP for _ in names)),
                ops_errors=(*each.ops_errors, *(0.0 for _ in names)),
            )
            for each in side.readings
        )
        return replace(side, rows=(*side.rows, *added), readings=readings)

    one = with_rows(capture(), ("sqrt",))
    e = explain(one, with_rows(one, more))
    assert {
        c.group.label for c in e.contributions if c.group.kind == "op" and c.group.phase == "optimizer"
    } == labels
    assert sum(c.seconds.value for c in e.contributions) == pytest.approx(e.difference)


def test_an_op_that_one_side_calls_more_often_keeps_its_name_beside_calls_that_take_no_time() -> None:
    """A softmax comes with a `detach` of its result, which a mode sees and a plain step does not call."""

    def called(times: int) -> Capture:
        side = capture()
        added = [
            replace(row(0, op=f"aten.{name}.default"), count=calls, scalars=str(calls))
            for name, calls in (("_softmax", times), ("detach", times), ("detach", 1))
        ]
        readings = tuple(
            replace(
                each,
                ops=(*each.ops, 2e-3 * times, 0.0, 1e-6),
                gaps=(*each.gaps, GAP, 0.0, 0.0),
                ops_errors=(*each.ops_errors, 0.0, 0.0, 0.0),
            )
            for each in side.readings
        )
        return replace(side, rows=(*side.rows, *added), readings=readings)

    groups = [c.group for c in explain(called(1), called(2)).contributions if c.group.kind == "op"]
    labels = {group.label for group in groups}
    assert {"_softmax", "detach"} < labels
    assert not any(label.startswith("other ops of") for label in labels)


def test_ops_of_other_names_are_compared_by_the_class_of_their_module() -> None:
    rows = [row(0, op="aten.cudnn_convolution.default"), *capture().rows[1:]]
    e = explain(capture(), capture(rows=rows))
    labels = {c.group.label for c in e.contributions}
    assert "other ops of Conv2d" in labels and "convolution" not in labels


def test_what_no_part_has_is_unexplained() -> None:
    e = explain(capture(noise=0.002), capture(noise=0.002, unexplained=9e-3, seed=5))
    assert not e.significant and e.differs and not e.is_closed
    assert e.unexplained == pytest.approx(1.0, abs=0.1)
    assert e.contributions[-1].group.kind == "unexplained"


def test_hot_and_cold_replays_bracket_the_prediction() -> None:
    e = explain(capture(slower={4: 3.0}), capture())
    assert e.closures[1] is not None and e.closures[1].hot is not None and e.closures[1].cold is not None
    assert e.closures[1].hot < e.closures[1].in_place.value < e.closures[1].cold
    assert e.predicted == pytest.approx((1.0, 1.0))  # the rows on paper were replayed alike on both sides


def test_a_slow_loader_is_a_contribution() -> None:
    step = sum(layer[4] for layer in LAYERS) + 6 * GAP
    slow = Fed(loader_seconds=3 * step, transfer_seconds=0.0, step_seconds=3 * step, prefetches=True)
    fast = Fed(loader_seconds=0.1 * step, transfer_seconds=0.0, step_seconds=step, prefetches=True)
    e = explain(capture(reading={"fed": slow}), capture(reading={"fed": fast}))
    assert e.significant[0].group.kind == "loader"
    assert e.significant[0].seconds.value == pytest.approx(2 * step / 4)
    assert e.unexplained == pytest.approx(0.0, abs=1e-9)


def test_what_a_fed_step_takes_beside_its_parts_is_unexplained_on_its_own_side() -> None:
    step = sum(layer[4] for layer in LAYERS) + 6 * GAP
    fed = Fed(loader_seconds=step, transfer_seconds=0.1 * step, step_seconds=3 * step, prefetches=False)
    rows = [row(n, device_seconds=1e-6) for n in range(len(LAYERS))]
    e = explain(capture(reading={"fed": fed}, rows=rows), capture(rows=rows))
    *_, rest = e.contributions
    assert rest.seconds.value == pytest.approx(0.9 * step / 4, rel=1e-3)
    assert rest.baseline == pytest.approx(0.9 * step / 4, rel=1e-3)
    assert rest.contender == pytest.approx(0.0, abs=1e-6)


def on_a_device(seed: int, processes: int = 5) -> Capture:
    """A step that the device is busy with, a percent faster or slower from process to process."""
    drawn = random.Random(seed)
    busy = [1 + 0.01 * drawn.gauss(0, 1) for _ in range(processes)]
    rows = [row(n, device_seconds=layer[4] * busy[0]) for n, layer in enumerate(LAYERS)]
    readings: list[Reading] = []
    for share in busy:
        step = sum(layer[4] for layer in LAYERS) * share
        facts = {"steps": (step,), "ops": (2e-5,) * len(rows), "gaps": (1e-5,) * len(rows)}
        facts |= {"host_seconds": 3e-5 * len(rows), "device_seconds": step}
        readings += capture(processes=1, reading=facts).readings
    return capture(rows=rows, readings=tuple(readings), device="cuda")


def test_how_processes_differ_on_a_device_is_in_its_ops_intervals() -> None:
    """Their device seconds are read in the first process alone."""
    pairs = [explain(on_a_device(2 * n), on_a_device(2 * n + 1), interleaved=True) for n in range(12)]
    assert not any(each.significant for each in pairs)
    largest = [max(e.contributions, key=lambda each: abs(each.seconds.value)) for e in pairs]
    assert sum(each.seconds.low <= 0 <= each.seconds.high for each in largest) >= 10
    assert all(math.isfinite(each.seconds.high) for each in largest)


def launch_bound(seed: int, processes: int = 3, slower: int | None = None) -> Capture:
    """A step that the host is busy with; its calls scatter by 8 % from process to process, and one may be slower."""
    drawn = random.Random(seed)
    rows = [row(n, device_seconds=5e-5, dispatch_seconds=8e-4) for n in range(len(LAYERS))]
    readings: list[Reading] = []
    for _ in range(processes):
        host = 1 + 0.08 * drawn.gauss(0, 1)
        ops = tuple(
            8e-4 * host * (1 + 0.08 * drawn.gauss(0, 1)) * (2 if n == slower else 1) for n in range(len(rows))
        )
        gaps = tuple(4e-4 * host * (1 + 0.08 * drawn.gauss(0, 1)) for _ in rows)
        step = sum(ops) + sum(gaps)
        facts = {"steps": (step,) * 3, "ops": ops, "gaps": gaps, "host_seconds": step, "device_seconds": 3e-4}
        readings += capture(processes=1, reading=facts).readings
    return capture(rows=rows, readings=tuple(readings), device="cuda")


def test_few_processes_of_a_busy_host_raise_hardly_an_alarm() -> None:
    """Two families are tested at 1 % each: groups of ops, and Python by modules."""
    alike = [explain(launch_bound(2 * n), launch_bound(2 * n + 1), interleaved=True) for n in range(60)]
    assert sum(bool(each.significant) for each in alike) <= 2


@pytest.mark.parametrize("processes", [3, 5])
def test_an_op_that_keeps_a_device_busy_a_tenth_longer_is_shown(processes: int) -> None:
    def slower(seed: int) -> Capture:
        one, more = on_a_device(seed, processes), 0.1 * LAYERS[4][4]
        rows = [
            replace(r, device_seconds=1.1 * r.device_seconds) if n == 4 else r for n, r in enumerate(one.rows)
        ]
        readings = [
            replace(r, steps=tuple(s + more for s in r.steps), device_seconds=r.device_seconds + more)
            for r in one.readings
        ]
        return replace(one, rows=tuple(rows), readings=tuple(readings))

    for n in range(10):
        found = explain(slower(2 * n), on_a_device(2 * n + 1, processes), interleaved=True)
        assert [each.group.label for each in found.significant] == ["convolution_backward"]


def test_what_is_slow_on_a_busy_host_is_shown_by_five_processes() -> None:
    pairs = [(launch_bound(2 * n, 5, slower=4), launch_bound(2 * n + 1, 5)) for n in range(20)]
    named = [[each.group.label for each in explain(*pair, interleaved=True).significant] for pair in pairs]
    assert sum("convolution_backward" in labels for labels in named) >= 15
    assert sum(len(labels) > 1 for labels in named) <= 1


def test_without_ops_the_whole_step_is_still_compared() -> None:
    bare = {"ops": (), "ops_errors": (), "gaps": ()}
    e = explain(capture(reading=bare, problems=("its ops change from step to step",)), capture())
    assert e.closures == (None, None) and len(e.contributions) == 1
    assert any("change from step to step" in note for note in e.notes)


def test_training_and_inference_are_not_compared() -> None:
    with pytest.raises(CannotExplain, match="inference"):
        explain(capture(), replace(capture(), training=False))


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("gain", "kind"), [(1.08, "improvement"), (1.0, "invariant")])
def test_a_process_on_a_slower_machine_turns_no_difference_round(
    gain: float, kind: str, interleaved: bool
) -> None:
    """The mean of all said of a contender that is 1.08 times as fast that it is slower."""
    one = capture(noise=0.002, processes=8, slower=dict.fromkeys(range(len(LAYERS)), gain))
    other = capture(noise=0.002, processes=8, seed=1)
    other = at_speeds(other, [1.0, 1.8, *[1.0] * 6])
    e = explain(one, other, interleaved=interleaved)
    assert e.verdict.kind == kind
    assert e.speedup.value == pytest.approx(1 + (gain - 1) * 0.965, abs=0.005)
    assert len(e.contender.readings) == 7 and len(e.baseline.readings) == 8
    assert any("contender: 7 of 8 processes are explained" in note for note in e.notes)
    assert sum(each.seconds.value for each in e.contributions) == pytest.approx(e.difference)


def test_processes_of_one_speed_are_all_explained() -> None:
    e = explain(capture(noise=0.01, processes=8), capture(noise=0.01, processes=8, seed=2))
    assert len(e.baseline.readings) == len(e.contender.readings) == 8
    assert not any("are explained" in note for note in e.notes)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_parts_of_fewer_than_three_processes_have_no_verdict_as_the_whole_has_none(
    processes: int, device: str
) -> None:
    device_seconds = 1e-3 if device == "cuda" else None
    made = [row(n, device_seconds=device_seconds) for n in range(len(LAYERS))]
    sides = [
        capture(processes=processes, noise=0.01, seed=seed, slower=slower, rows=made, device=device)
        for seed, slower in ((1, {}), (2, {0: 30.0}))
    ]
    e = explain(*sides)
    assert not e.significant and any("fewer than three" in note for note in e.notes)
    assert all(math.isinf(each.seconds.high) for each in e.contributions)
    assert not e.differs
    assert explain(*(replace(side, readings=3 * side.readings) for side in sides)).significant
