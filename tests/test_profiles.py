"""Profiles: each contains the smaller one, and what one leaves out it explains."""

from typing import Any

import pytest

from accel_micro import profiles
from accel_micro.profiles import ENVIRONMENT_VARIABLE, PROFILES, why_skipped

OP = {
    "clock": "throughput",
    "dtypes": ["float32", "float64"],
    "shapes": {"quick": ["n=1"], "standard": ["n=2"], "full": ["n=3"]},
}
DEVICES: dict[str, dict[str, Any]] = {
    "cpu": {"unavailable": None, "clocks": ["throughput", "latency"]},
    "cuda": {"unavailable": None, "clocks": ["throughput", "latency", "dispatch", "device"]},
    "mps": {"unavailable": "no Apple GPU here", "clocks": []},
}


def skipped(
    profile: str, device: str = "cpu", dtype: str = "float32", shape: str = "n=1", **op: Any
) -> str | None:
    return why_skipped(PROFILES[profile], OP | op, device, dtype, shape, DEVICES)


def test_the_profile_is_that_of_the_environment_and_standard_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert profiles.get().name == "standard"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "quick")
    assert profiles.get().name == "quick"
    assert profiles.get("full").name == "full"


def test_an_unknown_profile_is_answered_with_those_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "fast")
    with pytest.raises(ValueError, match=r"unknown profile 'fast'; known: quick, standard, full"):
        profiles.get()


def test_each_profile_contains_the_smaller_one() -> None:
    for small, large in (("quick", "standard"), ("standard", "full")):
        a, b = PROFILES[small], PROFILES[large]
        assert set(a.shapes) < set(b.shapes)
        for device in ("cpu", "cuda"):
            assert all(set(dtypes) <= set(b.on(device)[name]) for name, dtypes in a.on(device).items())
        assert set(a.clocks) <= set(b.clocks)
        assert a.rounds < b.rounds
        assert a.rounds * a.budget_seconds < b.rounds * b.budget_seconds


@pytest.mark.parametrize(("dtype", "runs"), [("float32", 4), ("bfloat16", 1), ("int8", 0)])
def test_standard_runs_the_other_dtypes_of_quick_shapes_only(dtype: str, runs: int) -> None:
    op = {**OP["shapes"], "quick": ["n=1"], "standard": ["n=2", "n=2.5", "n=1", "n=4"]}  # type: ignore[dict-item]
    pairs = PROFILES["standard"].runs("cpu", op, ("float32", "bfloat16"))
    assert sum(1 for each, _ in pairs if each == dtype) == runs
    assert len(set(pairs)) == len(pairs)
    reason = skipped("standard", dtype="bfloat16", shape="n=2")
    assert reason == "profile standard does not run this shape in bfloat16 on cpu"


@pytest.mark.parametrize(
    ("shape", "runs"), [("n=1", (1, 1, 1)), ("n=2", (0, 1, 1)), ("n=3", (0, 0, 1)), ("n=4", (0, 0, 0))]
)
def test_a_profile_runs_its_own_shapes(shape: str, runs: tuple[int, ...]) -> None:
    for profile, expected in zip(PROFILES, runs, strict=True):
        reason = skipped(profile, shape=shape)
        assert (reason is None) == bool(expected)
        assert reason is None or reason == f"profile {profile} does not run this shape"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"device": "xpu"}, "xpu was not asked for"),
        ({"device": "mps"}, "no Apple GPU here"),
        ({"clock": "device"}, "cpu has no device clock"),
        ({"clock": "latency"}, "profile quick does not read the latency clock"),
        ({"dtype": "float64"}, "profile quick does not run float64 on cpu"),
        ({"device": "cuda", "dtype": "float64"}, "profile quick does not run float64 on cuda"),
        ({"device": "cuda", "clock": "dispatch"}, None),
        ({"device": "cuda", "dtype": "bfloat16"}, None),
    ],
)
def test_what_a_profile_leaves_out_it_explains(arguments: dict[str, str], reason: str | None) -> None:
    assert skipped("quick", **arguments) == reason


def test_standard_leaves_too_much_work_out_on_a_cpu_and_says_so() -> None:
    shapes = {"quick": ["n=1"], "standard": ["n=2"], "heavy": ["n=3"], "full": ["n=4"]}
    for device, reason in (
        ("cpu", "profile standard does not run this shape on cpu: too much work for it"),
        ("cuda", None),
    ):
        assert skipped("standard", device, shape="n=3", shapes=shapes) == reason
        assert skipped("full", device, shape="n=3", shapes=shapes) is None
    assert skipped("quick", shape="n=3", shapes=shapes) == "profile quick does not run this shape"
