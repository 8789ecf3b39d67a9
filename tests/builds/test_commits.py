import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from accel_micro.builds import identify
from accel_micro.builds.commits import NoClone, commit_url, compare_url, read_clone, same_commit

A, B, MAIN_A, MAIN_B = "a" * 40, "b" * 40, "1" * 40, "2" * 40
FIRST, SECOND = identify("2.14.0.dev20261105", A), identify("2.14.0.dev20261106", B)


def test_what_came_in_between() -> None:
    assert compare_url(FIRST, SECOND) == f"https://github.com/pytorch/pytorch/compare/{A}...{B}"
    mains = replace(FIRST, main_commit=MAIN_A), replace(SECOND, main_commit=MAIN_B)
    assert compare_url(*mains) == f"https://github.com/pytorch/pytorch/compare/{MAIN_A}...{MAIN_B}"
    assert compare_url(mains[0], SECOND) == compare_url(FIRST, SECOND), "a commit of main against none"
    assert compare_url(replace(FIRST, git_version=None), SECOND) is None


def test_the_page_of_a_commit() -> None:
    assert commit_url(FIRST) == f"https://github.com/pytorch/pytorch/commit/{A}"
    assert (
        commit_url(replace(FIRST, main_commit=MAIN_A))
        == f"https://github.com/pytorch/pytorch/commit/{MAIN_A}"
    )
    assert commit_url(identify("2.13.0")) is None


def test_two_nightlies_of_one_commit() -> None:
    assert not same_commit(FIRST, SECOND)
    assert same_commit(replace(FIRST, main_commit=MAIN_A), replace(SECOND, main_commit=MAIN_A))
    assert same_commit(FIRST, replace(SECOND, git_version=A))
    assert not same_commit(identify("2.13.0"), identify("2.12.0"))


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    command = ["git", *names, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def clone(folder: Path, *subjects: str) -> list[str]:
    git(folder.parent, "init", "-q", "-b", "nightly", str(folder))
    commits = []
    for subject in subjects:
        git(folder, "commit", "-q", "--allow-empty", "-m", subject)
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits


def test_a_clone_tells_the_commits_of_main(tmp_path: Path) -> None:
    subjects = [
        f"2026-11-05 nightly release ({MAIN_A})",
        "something else",
        f"2026-11-06 nightly release ({MAIN_B})",
        f"2026-13-45 nightly release ({MAIN_B})",
    ]
    commits = clone(tmp_path / "pytorch", *subjects)
    nightlies = read_clone(tmp_path / "pytorch")
    first, second = identify("2.14.0.dev20261105"), identify("2.14.0.dev20261106", commits[0])
    assert nightlies.complete(first) == replace(first, git_version=commits[0], main_commit=MAIN_A)
    assert nightlies.complete(second).main_commit == MAIN_A, (
        "its own word on its commit counts more than its day"
    )
    assert nightlies.complete(identify("2.14.0.dev20261107")) == identify("2.14.0.dev20261107")
    assert nightlies.complete(identify("2.13.0")) == identify("2.13.0")


def test_folders_that_are_no_clone(tmp_path: Path) -> None:
    with pytest.raises(NoClone, match="is no clone of PyTorch with its branch nightly: fatal"):
        read_clone(tmp_path / "nowhere")
    git(tmp_path, "init", "-q", "-b", "main", str(tmp_path / "empty"))
    with pytest.raises(NoClone, match="is no clone of PyTorch"):
        read_clone(tmp_path / "empty")
