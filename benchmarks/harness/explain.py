"""Does an explanation close, does it predict, and does it keep silent where there is nothing to explain?

python -m benchmarks.harness explain same --repeats 20       # the same setting against itself
python -m benchmarks.harness explain closure                 # parts ÷ step, of each network and batch
python -m benchmarks.harness explain onednn --models resnet18,mobilenet_v2     # measured and predicted speedup
"""

import argparse
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_micro.explain.capture import Capture
    from accel_micro.explain.explanation import Explanation

SMALL = "mnist,vae,lstm,encoder,resnet18,mobilenet_v2,squeezenet1_0,alexnet"


def add_options(command: argparse.ArgumentParser) -> None:
    """Options of the command."""
    command.add_argument("what", choices=("same", "closure", "onednn"))
    command.add_argument("--models", default="")
    command.add_argument("--batches", default="4")
    command.add_argument("--device", default="cpu")
    command.add_argument("--switches", default="", help="such as threads=1, on both sides")
    command.add_argument("--processes", type=int, default=3, help="of each side")
    command.add_argument("--repeats", type=int, default=20, help="of the same against itself")
    command.add_argument("--budget", type=float, default=3.0, help="seconds of blocks in a process")
    command.add_argument("--replay", type=float, default=8.0, help="seconds of replays, once a side")
    command.set_defaults(run=explain)


def explain(options: argparse.Namespace) -> None:
    """One of the three."""
    models = [name for name in options.models.split(",") if name]
    batches = [int(batch) for batch in options.batches.split(",")]
    if options.what == "same":
        _same(options, models or ["mnist"], batches)
    elif options.what == "closure":
        _closure(options, models or SMALL.split(","), batches)
    else:
        _onednn(options, models or ["resnet18", "mobilenet_v2"], batches)


def _captures(
    options: argparse.Namespace, model: str, batch: int, switches: Sequence[str]
) -> "list[Capture]":
    """One of each of these switches, by turns."""
    from accel_micro.commands.explain import capture
    from accel_micro.explain.capturing.taking import Request
    from accel_micro.explain.setting import Setting

    settings = [
        Setting.parse(f"{options.device} batch={batch} {options.switches} {each}") for each in switches
    ]
    request = Request(
        model, processes=options.processes, budget_seconds=options.budget, replay_seconds=options.replay
    )
    return capture(request, settings, lambda text: None)


def _explained(pair: "Sequence[Capture]") -> "Explanation":
    from accel_micro.explain.attribution import explain as attribute

    return attribute(pair[0], pair[1])


def _same(options: argparse.Namespace, models: Sequence[str], batches: Sequence[int]) -> None:
    """False alarms: speedups and contributions that are called significant."""
    silent = total = 0
    for repeat in range(options.repeats):
        model, batch = models[repeat % len(models)], batches[repeat % len(batches)]
        found = _explained(_captures(options, model, batch, ("", "")))
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
            (one,) = _captures(options, model, batch, ("",))
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
    print(f"off the step: median {100 * median(errors):.1f} %, worst {100 * max(errors):.1f} %")


def _decimals(value: float | None) -> str:
    """Two decimals, or a dash for what was not read."""
    return "–" if value is None else f"{value:.2f}"


def _onednn(options: argparse.Namespace, models: Sequence[str], batches: Sequence[int]) -> None:
    """How much faster oneDNN makes a step: measured, and by replays of single ops."""
    for model in models:
        for batch in batches:
            found = _explained(_captures(options, model, batch, ("onednn=off", "onednn=on")))
            hot, cold = found.predicted or (None, None)
            left = "–" if found.unexplained is None else f"{100 * found.unexplained:.0f} %"
            print(
                f"{model} {batch}: measured {found.speedup.value:.3f} ({found.speedup.low:.3f} to "
                f"{found.speedup.high:.3f}), predicted hot {_decimals(hot)} and cold {_decimals(cold)}, "
                f"closures {_closures(found)}, unexplained {left}",
                flush=True,
            )
