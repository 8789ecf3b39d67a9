"""Which builds of a range are searched, and why others are not."""

from pathlib import Path

import pytest

from accel_micro.builds import Ledger, Target, UnknownBuild, Wheel, identify
from accel_micro.builds.candidates import NoRange, find_candidates, starts
from tests.builds.fake_torch import HERE


def version(day: int) -> str:
    return f"2.15.0.dev202611{day:02}"


def ledger(tmp_path: Path, days: list[int], **wheels: dict[int, str]) -> Ledger:
    """A ledger of nightlies, each made from a commit of its own unless `commits` says otherwise."""
    made = Ledger(tmp_path / "builds.jsonl")
    commits = wheels.get("commits", {})
    for day in days:
        build = identify(version(day), commits.get(day, f"{day:040x}"))
        made.add(build)
        variant = wheels.get("variants", {}).get(day, "cpu")
        if variant:
            name = f"torch-{version(day)}+{variant}-{HERE.tag}-{HERE.tag}-manylinux_2_28_x86_64.whl"
            broken = wheels.get("broken", {}).get(day)
            made.remember_all([Wheel(build.id, f"{version(day)}+{variant}", name, variant)])
            if broken:
                made.mark_broken(name, broken)
    return made


@pytest.fixture
def target() -> Target:
    return Target.here(("cu126", "cpu"), HERE.python)


def days(builds: object) -> list[int]:
    return [int(build.version[-2:]) for build in builds]  # type: ignore[attr-defined]


def test_a_range_has_both_its_ends(tmp_path: Path, target: Target) -> None:
    found = find_candidates(ledger(tmp_path, [1, 2, 3, 5, 6]), "20261102", "20261105", target)
    assert days(found.builds) == [2, 3, 5]
    assert found.variant == "cpu" and not found.left_out


def test_builds_that_cannot_run_are_left_out_with_the_reason(tmp_path: Path, target: Target) -> None:
    known = ledger(tmp_path, [1, 2, 3, 4], variants={2: ""}, broken={3: "half a file"})
    found = find_candidates(known, "20261101", "20261104", target)
    assert days(found.builds) == [1, 4]
    assert sorted(found.left_out.values()) == [
        "broken: half a file",
        "no wheel for this Python, platform and variant",
    ]


def test_two_builds_of_one_commit_are_one_candidate_and_the_ends_stay(tmp_path: Path, target: Target) -> None:
    commits = {2: "e" * 40, 3: "e" * 40, 5: "f" * 40, 6: "f" * 40}
    found = find_candidates(
        ledger(tmp_path, [1, 2, 3, 4, 5, 6], commits=commits), "20261101", "20261106", target
    )
    assert days(found.builds) == [1, 2, 4, 6]
    assert set(found.left_out.values()) == {
        f"made from the same commit as torch {version(2)}",
        f"made from the same commit as torch {version(6)}",
    }


def test_of_many_builds_of_one_commit_one_is_left(tmp_path: Path, target: Target) -> None:
    commits = {1: "e" * 40, 2: "e" * 40, 3: "e" * 40, 5: "f" * 40, 6: "f" * 40, 7: "f" * 40}
    found = find_candidates(
        ledger(tmp_path, [1, 2, 3, 4, 5, 6, 7], commits=commits), "20261101", "20261107", target
    )
    assert days(found.builds) == [1, 4, 7]
    assert list(found.left_out.values()).count(f"made from the same commit as torch {version(7)}") == 2


@pytest.mark.parametrize("good", ["20261101", "20261102", None])
def test_a_range_of_one_commit_is_none(tmp_path: Path, target: Target, good: str | None) -> None:
    known = ledger(tmp_path, [1, 2, 3], commits=dict.fromkeys((1, 2, 3), "e" * 40))
    with pytest.raises(NoRange, match=rf"to {version(3)} are all made from one commit"):
        find_candidates(known, good, "20261103", target)


def test_the_variant_is_that_of_both_ends(tmp_path: Path, target: Target) -> None:
    known = ledger(tmp_path, [1, 2, 3, 4], variants={2: "cu126", 3: "cu126"})
    assert find_candidates(known, "20261101", "20261104", target).variant == "cpu"
    assert days(find_candidates(known, "20261101", "20261104", target).builds) == [1, 4]
    assert find_candidates(known, "20261102", "20261103", target).variant == "cu126"


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("20261104", "20261101", "is newer than the bad one"),
        ("20261101", "20261101", "both ends are"),
        ("20261101", "20261102", "cannot be an end: no wheel"),
    ],
)
def test_ends_that_make_no_range(tmp_path: Path, target: Target, good: str, bad: str, said: str) -> None:
    known = ledger(tmp_path, [1, 2, 3, 4], variants={2: ""})
    with pytest.raises(NoRange, match=said):
        find_candidates(known, good, bad, target)


def test_a_day_without_a_nightly_is_no_end(tmp_path: Path, target: Target) -> None:
    with pytest.raises(UnknownBuild, match=r"no nightly is known of 20261103; the nearest are .*02 and .*04"):
        find_candidates(ledger(tmp_path, [1, 2, 4, 5]), "20261103", "20261105", target)


def test_without_a_good_end_the_search_begins_two_seven_and_more_days_back(
    tmp_path: Path, target: Target
) -> None:
    known = ledger(tmp_path, list(range(1, 31)))
    found = find_candidates(known, None, "nightly", target)
    assert days(found.builds) == list(range(1, 31))
    names = {build.id: int(build.version[-2:]) for build in found.builds}
    assert [names[one] for one in starts(found.builds, known)] == [28, 23, 16, 2, 1]
