"""An explanation as people and programs see it."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accel_micro.explain.attribution import explain
from accel_micro.explain.batches import Fit, Switch
from accel_micro.explain.causes import Ablation, causes
from accel_micro.report import explain as report
from accel_micro.report import explain_words as words
from tests.explain.worlds import LAYERS, capture, row

DENORMAL = [row(n, subnormal=0.93 if n == 2 else 0.0) for n in range(len(LAYERS))]


def found() -> tuple[Any, Any, Any]:
    slow = capture(slower={2: 9.0, 0: 1.1}, rows=DENORMAL, noise=0.01, model="tests.paper:net")
    e = explain(
        slow,
        capture(setting="cpu batch=4 flush_denormal=on", noise=0.01, seed=3, model="tests.paper:net"),
        interleaved=True,
    )
    suspected = causes(e)
    done = Ablation(suspected[0], 1.49, 1.46, 1.53, True, "confirmed: with cpu batch=4 flush_denormal=on the baseline "
                    "is 1.49 times as fast [1.46, 1.53]")  # fmt: skip
    return e, suspected, [done]


def text(*parts: Any, width: int) -> str:
    stream = io.StringIO()
    report.render(*parts, stream=stream, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_golden_terminal(golden: Callable[[str], Any], width: int) -> None:
    shown = text(*found(), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert len(shown.splitlines()) <= 45  # one screen
    assert golden("txt") == shown


def test_golden_batches_where_nothing_is_decided(golden: Callable[[str], Any]) -> None:
    line = Fit((4, 8, 16, 32), (8e-3, 16e-3, 64e-3, 128e-3), 4.6e-3, -9e-3, (1e-4, 1e-3), 2e-7, (8, 16),
               (Switch(15, 16, "Slow2d", "NnpackSpatial", 42),))  # fmt: skip
    e = explain(capture(noise=0.05, processes=3), capture(noise=0.05, processes=3, seed=4))
    assert golden("txt") == text(e, [], [], line, width=100)


def test_an_interval_without_one_that_decides_nothing_says_why() -> None:
    sides = capture(noise=0.05, processes=3), capture(noise=0.05, processes=3, seed=100, slower={0: 1.5})
    e = explain(*sides)
    assert e.speedup.high < 1 and not e.differs and 0.01 < e.verdict.p_value < 0.05
    said = words.summary(e)
    assert re.fullmatch(
        r"Not decided: speedup 0\.92× \[0\.85×, 0\.99×\]; .* in the contender\. Equal sides would look so different "
        r"in 1 of 24 comparisons, and 1 of 100 is asked for\. About 3 more processes a side would decide it\.",
        said,
    )
    uneven = replace(
        e, verdict=replace(e.verdict, p_value=0.001, reason="one side ran in another speed mode")
    )
    assert ". One side ran in another speed mode. About 3 more" in words.summary(uneven)


def test_the_smallest_terminal_loses_no_number() -> None:
    shown = text(*found(), width=50)
    assert "unexplained" in shown and max(map(len, shown.splitlines())) <= 80


def test_text_out_of_files_moves_no_cursor() -> None:
    evil = capture(model="\x1b[2Jnet", setting="cpu batch=4", problems=("a\x1b[31m",))
    assert "\x1b" not in text(explain(evil, evil), width=80)


def test_json_has_all_of_it() -> None:
    e, suspected, done = found()
    data = json.loads(report.to_json(e, suspected, done))
    assert data["schema"] == 1 and data["verdict"] == "improvement" and data["closed"] is True
    total = sum(each["seconds"] for each in data["contributions"])
    assert total == pytest.approx(data["difference_seconds"])
    first = data["contributions"][0]
    assert first["ops"] == ["aten.addmm.default"] and first["significant"] and first["q_value"] < 0.01
    assert data["causes"][0]["name"] == "denormal numbers" and data["causes"][0]["confirmed"] is True
    assert data["baseline"]["processes"] == 5 and data["batches"] is None


def test_json_of_unknown_intervals_is_json() -> None:
    e = explain(capture(processes=1), capture(processes=1, slower={0: 2.0}))
    first = json.loads(report.to_json(e))["contributions"][0]
    assert first["low"] is None and first["high"] is None and first["q_value"] is None


def test_a_single_process_has_no_interval_and_is_not_called_the_same() -> None:
    shown = text(explain(capture(processes=1, slower={0: 9.0}), capture(processes=1)), width=200)
    assert (
        "Speedup 2.86×, read by too few processes for an interval, so no difference is shown yet; " in shown
    )
    assert re.search(r"About \d more process(es)? a side would decide it\.", shown) and "∞" not in shown
    assert "unexplained: no difference is shown that could be explained" in shown


def test_of_two_builds_it_says_how_to_find_the_one_that_did_it() -> None:
    old, new = (f"2.15.0.dev2026110{day}+cpu" for day in (1, 6))
    interpreter = "python=/env/bin/python"
    fast = capture(noise=0.01, torch=old, setting=f"cpu batch=4 build=20261101 {interpreter}")
    slow = capture(
        slower={0: 2.0}, noise=0.01, seed=3, torch=new, setting=f"cpu batch=4 build=20261106 {interpreter}"
    )
    said = text(explain(fast, slow), width=200)
    assert "`accel-micro bisect --from-explain FILE` times forward convolution in the builds between" in said
    assert "build=20261101 (baseline)" in said and interpreter not in said
    assert "bisect --regress faster --from-explain FILE" in text(explain(slow, fast), width=200)
    for same in ((fast, fast), (fast, capture(slower={0: 2.0}, noise=0.01, seed=3, torch=old))):
        assert "bisect" not in text(explain(*same), width=200), "no difference, or one that no build brought"


def test_it_says_so_of_an_op_that_both_builds_call_as_the_bisection_takes_it() -> None:
    old, new = (f"2.15.0.dev2026110{day}+cpu" for day in (1, 6))
    e = explain(
        capture(noise=0.01, torch=old), capture(slower={0: 3.0, 4: 2.0}, noise=0.01, seed=3, torch=new)
    )
    first, second = (each for each in e.contributions if each.significant)
    assert f"times {first.group.phase} {first.group.label} in" in words.which_build(e)
    alone = tuple(replace(each, baseline=0.0) if each is first else each for each in e.contributions)
    said = words.which_build(replace(e, contributions=alone), "that one")
    assert f"times {second.group.phase} {second.group.label} in" in said and said.endswith(
        "FILE is that one."
    )


def test_an_op_that_differs_in_steps_that_were_not_shown_to_is_told_too() -> None:
    old, new = (f"2.15.0.dev2026110{day}+cpu" for day in (1, 6))
    e = explain(capture(noise=0.01, torch=old), capture(slower={0: 3.0}, noise=0.01, seed=3, torch=new))
    first = e.contributions[0]
    open_ = replace(e, verdict=replace(e.verdict, kind="inconclusive"))
    assert not open_.differs and first.significant
    assert (
        f"bisect --from-explain FILE` times {first.group.phase} {first.group.label} in"
        in words.which_build(open_)
    )
    nothing = tuple(replace(each, significant=False) for each in e.contributions)
    assert words.which_build(replace(open_, contributions=nothing)) == ""


def test_what_is_left_over_says_which_side_does_not_add_up() -> None:
    slow, fast = capture(slower={4: 10.0}), capture()
    assert words.left(explain(slow, fast)) == "unexplained 0 % of the difference"
    shares = dict(zip((0.88, 1.0, 1.12), fast.readings, strict=False))
    unsteady = tuple(replace(each, steps=(k * each.steps[0],) * 3) for k, each in shares.items())
    one = words.left(explain(slow, replace(fast, readings=unsteady)))
    assert one.endswith(
        "take the parts of the contender as hints: it is not certain that they add up to its step"
    )
    much = words.left(explain(capture(slower={4: 3.0}, unexplained=20e-3), fast))
    assert "which is much" in much
