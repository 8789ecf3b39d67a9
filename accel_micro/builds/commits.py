"""From builds to PyTorch's commits: what came in between two, and which commit of main a nightly was made from.

A nightly's own commit is on the branch `nightly`: one a day, with all of that day in one piece, and the commit
of main in its subject, `2026-11-05 nightly release (<commit>)` (PyTorch's `trigger-nightly` action).
"""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from accel_micro.builds.identity import Build, day_milliseconds

REPOSITORY: Final = "https://github.com/pytorch/pytorch"

_SUBJECT: Final = re.compile(
    r"^([0-9a-f]{40})\t(\d{4})-(\d\d)-(\d\d) nightly release \(([0-9a-f]{40})\)", re.MULTILINE
)
_LOG_SECONDS: Final = 120


class NoClone(RuntimeError):
    """A folder is no clone of PyTorch that has the branch of nightlies; the message says what git said."""


def commit_url(build: Build) -> str | None:
    """Page of the commit that a build was made from, that of main where known; None when neither is."""
    commit = build.main_commit or build.git_version
    return f"{REPOSITORY}/commit/{commit}" if commit else None


def compare_url(before: Build, after: Build) -> str | None:
    """Page of what came in between two builds, None where their commits are not known.

    Commits of main are compared where both are known: they show each change by itself.
    """
    pair = (before.main_commit, after.main_commit)
    if None in pair:
        pair = (before.git_version, after.git_version)
    if None in pair:
        return None
    return f"{REPOSITORY}/compare/{pair[0]}...{pair[1]}"


def same_commit(before: Build, after: Build) -> bool:
    """Whether two builds are known to be made from one commit: comparing them shows noise alone."""
    if before.main_commit and after.main_commit:
        return before.main_commit == after.main_commit
    return before.git_version is not None and before.git_version == after.git_version


@dataclass(frozen=True)
class Nightlies:
    """What a clone knows of the branch of nightlies.

    Attributes:
        main_of: commit of that branch → commit of main.
        commit_on: day (midnight UTC, milliseconds since 1970) → commit of that branch.
    """

    main_of: dict[str, str]
    commit_on: dict[int, str]

    def complete(self, build: Build) -> Build:
        """A nightly with its commits, as far as they are known here. Its own word on its commit counts more."""
        if build.channel != "nightly":
            return build
        commit = build.git_version or self.commit_on.get(build.date_milliseconds or -1)
        return replace(
            build, git_version=commit, main_commit=build.main_commit or self.main_of.get(commit or "")
        )


def read_clone(folder: Path) -> Nightlies:
    """What a clone of PyTorch knows of the branch `nightly`.

    No file needs to be checked out: `git clone --bare --filter=tree:0 --single-branch --branch nightly` will do.

    Raises:
        NoClone: git is missing, or does not know the branch there.
    """
    said = ""
    for name in ("origin/nightly", "nightly"):
        command = ["git", "-C", str(folder), "log", "--format=%H%x09%s", "--end-of-options", name, "--"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LOG_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoClone(f"git cannot be run ({error})") from error
        if done.returncode == 0:
            return _parsed(done.stdout)
        said = said or " ".join(done.stderr.split())
    raise NoClone(f"{folder} is no clone of PyTorch with its branch nightly: {said}")


def _parsed(log: str) -> Nightlies:
    found = Nightlies({}, {})
    for commit, year, month, day, main in _SUBJECT.findall(log):
        found.main_of[commit] = main
        date = day_milliseconds(year + month + day)
        if date is not None:
            found.commit_on.setdefault(date, commit)  # newest first: of a day released twice, the last
    return found
