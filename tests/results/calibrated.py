"""Calibrations of machines that do not exist."""

from dataclasses import replace

from accel_micro.results.calibrations import CalibratedCase, Calibration

_CASES = tuple(
    CalibratedCase(
        case=case,
        processes=40,
        seconds=seconds,
        seconds_a_process=took,
        spread=spread,
        others=others,
        slowdown=slowdown,
        difference=difference,
        p_value=p_value,
    )
    for case, seconds, took, spread, others, slowdown, difference, p_value in (
        (
            "attention.sdpa forward float32 b=1 h=4 q=64 kv=64 d=32 on cpu",
            4.1e-5,
            0.9,
            0.011,
            0,
            1.0,
            0.009,
            0.61,
        ),
        (
            "conv2d.conv3x3 backward float32 n=1 c=16 hw=16 out=16 on cpu",
            6.6e-5,
            1.0,
            0.016,
            5,
            1.78,
            0.014,
            0.04,
        ),
        (
            "matmul.mm forward float32 m=1024 k=1024 n=1024 on cpu",
            1.92e-2,
            1.4,
            0.034,
            0,
            1.0,
            0.029,
            0.33,
        ),
    )
)

BLESSED = Calibration(
    machine="vm",
    device="cpu",
    torch_version="2.13.0+cpu",
    started="2026-11-05T10:00:00+00:00",
    seconds=301.0,
    processes=120,
    cases=_CASES,
    tolerance=0.021,
    blessed=True,
    why_not="",
    alpha=0.01,
    comparisons=24,
    side=4,
    alarms=0,
    false_positive_rate=0.008,
    false_positive_low=0.0004,
    false_positive_high=0.041,
    findable_rate=0.09,
    difference=0.021,
    worst_difference=0.029,
    spread=0.016,
    worst_spread=0.034,
    drift=0.012,
    drift_low=-0.004,
    drift_high=0.029,
    halves=1,
    modes=5 / 120,
    slowdown=1.78,
    below_full_speed=0.12,
    flags={"speed-corrected": 21, "waited for a core": 3},
    detectable={1: 0.05, 5: 0.031, 30: 0.024},
    build="2a13a0f4" + "0" * 32,
    session="0123abcd",
)

REFUSED = replace(
    BLESSED,
    blessed=False,
    why_not="4 of 24 comparisons of a build with itself found a difference, where 1 % is promised",
    alarms=4,
    false_positive_rate=0.11,
    false_positive_low=0.05,
    false_positive_high=0.2,
    session="4567cdef",
)

SHORT = replace(
    BLESSED,
    blessed=False,
    why_not=(
        "3 comparisons of a build with itself are too few to tell how often they find a difference; 16 are needed"
    ),
    comparisons=3,
    drift=None,
    drift_low=None,
    drift_high=None,
    below_full_speed=None,
    flags={},
    modes=0.0,
    slowdown=1.0,
    detectable={1: None, 5: 0.031, 30: 0.024},
)
