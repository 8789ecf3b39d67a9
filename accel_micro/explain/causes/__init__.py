"""Why a group costs what it does: rules with their evidence, and the ablation that would confirm each.

Only a rule whose evidence passes is told. A cause stays a suspicion until its ablation has moved the step.
"""

from collections.abc import Callable, Iterator
from typing import Final

from accel_micro.explain.causes.around import loader_bound, recompiling, slow_transform, warm_up
from accel_micro.explain.causes.cause import Ablation, Cause
from accel_micro.explain.causes.harness import itself, not_finite, not_waited
from accel_micro.explain.causes.host import framework_bound, launch_bound, optimizer_one_by_one, synchronising
from accel_micro.explain.causes.kernels import memory_bound, regime_switch, slow_kernel
from accel_micro.explain.causes.machine import fallback, threads, throttling
from accel_micro.explain.causes.numbers import denormals, precision, wrong_results
from accel_micro.explain.explanation import Explanation

__all__ = ["RULES", "Ablation", "Cause", "causes"]

RULES: Final[tuple[Callable[[Explanation], Iterator[Cause]], ...]] = (
    wrong_results,
    not_finite,
    itself,
    threads,
    throttling,
    fallback,
    recompiling,
    denormals,
    regime_switch,
    precision,
    launch_bound,
    synchronising,
    optimizer_one_by_one,
    framework_bound,
    slow_transform,
    loader_bound,
    slow_kernel,
    memory_bound,
    warm_up,
    not_waited,
)
"""The catalogue."""


def causes(explanation: Explanation) -> list[Cause]:
    """All causes whose evidence passes, the catalogue's order."""
    return [cause for rule in RULES for cause in rule(explanation)]
