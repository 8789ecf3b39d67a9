"""Facts in, findings out."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from accel_micro.doctor import cores, gpu, pace, software
from accel_micro.doctor.finding import SEVERITIES, Finding, Rule, View

RULES: Final[tuple[Rule, ...]] = (*cores.RULES, *pace.RULES, *software.RULES, *gpu.RULES)
"""Every rule, in the order in which findings of one severity are shown."""

CANNOT_MEASURE: Final = 3
"""Exit code of an environment that cannot do what was asked."""


def diagnose(facts: Mapping[str, Any], torch_facts: Mapping[str, Any] | None = None) -> list[Finding]:
    """What is wrong, worst first, from what `host.facts` and `host.torch_facts` return."""
    host, torch = View(facts), View(torch_facts)
    found = [finding for rule in RULES for finding in rule(host, torch)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def exit_code(findings: Sequence[Finding]) -> int:
    """0, or 3 when a problem makes the timings of this machine meaningless."""
    return CANNOT_MEASURE if any(finding.severity == "problem" for finding in findings) else 0


def examine(interval_seconds: float = 1.0) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts of this machine and of its torch, read now; imports torch.

    Where MKL meets an AMD processor, torch's product is compared with NumPy's (`product_flops_per_second`).
    """
    from accel_micro import host

    # Before torch is loaded: its own threads and contexts are not what the machine is busy with.
    facts = host.facts(interval_seconds)
    torch_facts = host.torch_facts()
    if View(facts).text("cpu.vendor") == "AMD" and View(torch_facts).text("libraries.blas") == "MKL":
        from accel_micro.host.torch_build import compare_blas

        with contextlib.suppress(ImportError, RuntimeError):
            torch_facts["product_flops_per_second"] = compare_blas()
    return facts, torch_facts
