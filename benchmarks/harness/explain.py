"""Does an explanation close, does it predict, and does it keep silent where there is nothing to explain?

python -m benchmarks.harness explain same --repeats 20       # the same setting against itself
python -m benchmarks.harness explain closure                 # parts ÷ step, of each network and batch
python -m benchmarks.harness explain onednn --models resnet18,mobilenet_v2     # measured and predicted speedup
python -m benchmarks.harness explain pairs --folder captures   # the same of an accelerator and its host, from captures
"""

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_micro.explain.capture import Capture
    from accel_micro.explain.explanation import Explanation

SMALL = "mnist,vae,lstm,encoder,resnet18,mobilenet_v2,squeezenet1_0,alexnet"


def add_options(command: argparse.ArgumentParser) -> None:
    """Options of the command."""
    command.add_argument("what", choices=("same", "closure", "onednn", "pairs"))
    command.add_argument("--models", default="")
    command.add_argument("--batches", default="4")
    command.add_argument("--device", default="cpu")
    command.add_argument("--switches", default="", help="such as threads=1, on both sides")
    command.add_argument("--processes", type=int, default=3, help="of each side")
    command.add_argument("--repeats", type=int, default=20, help="of the same against itself")
    command.add_argument("--budget", type=float, default=3.0, help="seconds of blocks in a process")
    command.add_argument("--replay", type=float, default=8.0, help="seconds of replays, once a side")
    command.add_argument("--folder", type=Path, default=Path(), help="of captures, for pairs")
    command.set_defaults(run=explain)


def explain(options: argparse.Namespace) -> None:
    """One of the four."""
    models = [name for name in options.models.split(",") if name]
    batches = [int(batch) for batch in options.batches.split(",")]
    if options.what == "same":
        _same(options, models or ["mnist"], batches)
    elif options.what == "closure":
        _closure(options, models or SMALL.split(","), batches)
    elif options.what == "pairs":
        _pairs(options.folder)
    else:
        _onednn(options, models or ["resnet18", "mobilenet_v2"], batches)


def _captures(
    options: argparse.Namespace, model: str, batch: int, switches: Sequence[str]
) -> "list[Capture]":
    """One of each of these switches, by turns; none where that cannot be done, which is told and costs itself alone."""
    from accel_micro.commands.explain import capture
    from accel_micro.explain.capturing.taking import CannotCapture, Request
    from accel_micro.explain.setting import Setting

    settings = [
        Setting.parse(f"{options.device} batch={batch} {options.switches} {each}") for each in switches
    ]
    request = Request(
        model, processes=options.processes, budget_seconds=options.budget, replay_seconds=options.replay
    )
    try:
        return capture(request, settings, lambda text: None)
    except CannotCapture as error:
        print(f"{model} {batch}: {error}", flush=True)
        return []


def _explained(pair: "Sequence[Capture]") -> "Explanation":
    from accel_micro.explain.attribution import explain as attribute

    return attribute(pair[0], pair[1])


def _same(options: argparse.Namespace, models: Sequence[str], batches: Sequence[int]) -> None:
    """False alarms: speedups and contributions that are called significant."""
    silent = total = 0
    for repeat in range(options.repeats):
        model, batch = models[repeat % len(models)], batches[repeat % len(batches)]
        pair = _captures(options, model, batch, ("", ""))
        if not pair:
            continue
        found = _explained(pair)
        alarms = [f"{each.group.phase} {each.group.label}" for each in found.significant]
        total += 1
        silent += not alarms and not found.differs
        print(
            f"{repeat + 1:3d} {model} {batch}: {found.speedup.value:.3f} ({found.speedup.low:.3f} to "
            f"{found.speedup.high:.3f}), {found.verdict.kind}; significant: {', '.join(alarms) or 'nothing'}; "
            f"closures {_closures(found)}",
            flush=True,
        )
    print(f"nothing significant: {silent} of {total}")


def _closures(found: "Explanation") -> str:
    return ", ".join("none" if each is None else f"{each.in_place.value:.2f}" for each in found.closures)


def _closure(options: argparse.Namespace, models: Sequence[str], batches: Sequence[int]) -> None:
    from accel_micro.explain.closing import closure

    errors = []
    for model in models:
        for batch in batches:
            for one in _captures(options, model, batch, ("",)):
                found = closure(one)
                errors.append(abs(found.in_place.value - 1))
                waited = median(reading.waiting for reading in one.readings)
                hot, cold = (_decimals(value) for value in (found.hot, found.cold))
                print(
                    f"{model} {batch}: step {1e3 * one.step_seconds:.4g} ms, in place {found.in_place.value:.3f} "
                    f"({found.in_place.low:.3f} to {found.in_place.high:.3f}), hot {hot}, cold {cold}, "
                    f"waited {waited:.2f} s a second",
                    flush=True,
                )
    if errors:
        print(f"off the step: median {100 * median(errors):.1f} %, worst {100 * max(errors):.1f} %")


def _decimals(value: float | None) -> str:
    """Two decimals, or a dash for what was not read."""
    return "–" if value is None else f"{value:.2f}"


def _onednn(options: argparse.Namespace, models: Sequence[str], batches: Sequence[int]) -> None:
    """How much faster oneDNN makes a step: measured, and by replays of single ops."""
    for model in models:
        for batch in batches:
            pair = _captures(options, model, batch, ("onednn=off", "onednn=on"))
            if not pair:
                continue
            found = _explained(pair)
            hot, cold = found.predicted or (None, None)
            left = "–" if found.unexplained is None else f"{100 * found.unexplained:.0f} %"
            print(
                f"{model} {batch}: measured {found.speedup.value:.3f} ({found.speedup.low:.3f} to "
                f"{found.speedup.high:.3f}), predicted hot {_decimals(hot)} and cold {_decimals(cold)}, "
                f"closures {_closures(found)}, unexplained {left}",
                flush=True,
            )


def _pairs(folder: Path) -> None:
    """Of each network and batch the accelerator against the CPU, then its batches against the smallest.

    Predicted ÷ measured, where the prediction is by the parts of both sides; the accelerator's device seconds, by its
    ops together and by its profiler of whole steps; and whether `launch-bound` is named.
    """
    from accel_micro.explain.file import read

    captures = sorted((read(path) for path in folder.glob("*.json")), key=lambda one: (one.model, one.batch))
    errors: dict[str, list[float]] = {"accelerator against CPU": [], "batches on the accelerator": []}
    for model, group in groupby(captures, key=lambda one: one.model):
        each = list(group)
        on_cpu = [one for one in each if one.device == "cpu"]
        on_device = [one for one in each if one.device != "cpu"]
        for one in on_device:
            errors["accelerator against CPU"] += [_pair(cpu, one) for cpu in on_cpu if cpu.batch == one.batch]
        for one in on_device[1:]:
            ratio = _predicted(on_device[0], one)
            errors["batches on the accelerator"].append(ratio)
            print(f"{model} {on_device[0].batch} against {one.batch}: predicted ÷ measured {ratio:.3f}")
    for name, ratios in errors.items():
        if ratios:
            off = [100 * abs(ratio - 1) for ratio in ratios]
            print(f"{name}: {len(off)}, {median(off):.1f} % off at the median, {max(off):.0f} % at worst")


def _pair(cpu: "Capture", one: "Capture") -> float:
    """Printed in a line; returns predicted ÷ measured."""
    from accel_micro.explain import clocks
    from accel_micro.explain.causes import causes

    found, ratio = _explained((cpu, one)), _predicted(cpu, one)
    speedup, closure = found.speedup, found.closures[1]
    busy = 100 * (closure.device or 0.0) if closure else 0.0
    enqueued = fmean(reading.host_seconds or 0.0 for reading in one.readings)
    by_ops = clocks.of_reading(one, one.readings[0]).device_seconds()
    by_profiler = one.readings[0].device_seconds or float("nan")
    named = ", ".join(dict.fromkeys(cause.name for cause in causes(found)))
    print(
        f"{one.model} {one.batch}: step {1e3 * one.step_seconds:.4g} ms, enqueued {1e3 * enqueued:.4g}, device "
        f"{1e3 * by_ops:.4g} ({by_ops / by_profiler:.3f} of the profiler's), busy for {busy:.0f} %; speedup "
        f"{speedup.value:.4g} ({speedup.low:.4g} to {speedup.high:.4g}), predicted ÷ measured {ratio:.3f}, "
        f"{len(cpu.readings)} and {len(one.readings)} processes; {named or 'no cause'}",
        flush=True,
    )
    return ratio


def _predicted(one: "Capture", other: "Capture") -> float:
    """Of the ratio of their steps: predicted by the parts in place ÷ measured."""
    from accel_micro.explain.closing import closure

    return closure(one).in_place.value / closure(other).in_place.value
