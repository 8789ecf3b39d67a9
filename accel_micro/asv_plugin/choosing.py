"""Which builds a run is about: what its range means, and which of those can be had here.

asv leaves all that to its repository, and finds out while it runs that a commit cannot be installed.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import asv.util
from asv.console import log
from asv.repo import NoSuchNameError
from asv.results import get_existing_hashes

from accel_micro.asv_plugin.environment import RETRY_VARIABLE, TorchEnvironment
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.repo import HEAD, TorchRepo
from accel_micro.builds import Build
from accel_micro.builds.ranges import missing_days

_SHOWN: Final = 8
_SPECIAL: Final = ("ALL", "EXISTING", "NEW", "TAGS")
_FILE: Final = "HASHFILE:"


def is_installed(conf: Any, repo: TorchRepo, spec: Any) -> bool:
    """Whether a range, as `asv run` takes it, means the installed torch and no other build."""
    if spec is None or spec == HEAD:
        return True
    if isinstance(spec, str) and (spec in _SPECIAL or spec.startswith(_FILE)):
        return False
    try:
        head = repo.head().id
        return set(_ids(conf, repo, spec)) == {head}
    except (asv.util.UserError, NoSuchNameError):
        return False  # unknown until the indexes are asked


def choose(
    conf: Any,
    repo: TorchRepo,
    environments: Sequence[TorchEnvironment],
    spec: Any,
    *,
    date_period: float | None = None,
    all_needed: bool = False,
) -> list[str]:
    """Ids of the builds to run, newest first. What is missing or cannot be had is reported.

    Args:
        spec: as `asv run` takes it: a name, a range, `NEW`, `ALL`, `TAGS`, `EXISTING`, `HASHFILE:…`, a list of ids.
        date_period: seconds; then only one build a period is chosen.
        all_needed: one that cannot be had makes the others useless, as in a comparison.

    Raises:
        WrongUse: a name is unknown, or none is chosen.
        EnvironmentLacks: none of them can be had here.
    """
    ids = list(dict.fromkeys(_ids(conf, repo, spec)))
    if not ids:
        raise WrongUse(f"no build is in {spec}; `accel-micro builds list` shows what is known")
    builds = sorted(map(repo.build, ids), key=lambda build: repo.get_date(build.id), reverse=True)
    reasons = {build: _why_not(repo, environments, build) for build in builds}
    usable = [build for build in builds if reasons[build] is None]
    lacking = {build: why for build, why in reasons.items() if why is not None}
    _report(builds, usable, lacking, isinstance(spec, str) and ".." in spec)
    if not usable or (all_needed and lacking):
        raise EnvironmentLacks(next(iter(lacking.values())))
    chosen = [build.id for build in usable]
    if date_period is not None:
        before = get_existing_hashes(conf.results_dir) if spec == "NEW" else None
        chosen = repo.filter_date_period(chosen, date_period, before)
    return chosen


def _ids(conf: Any, repo: TorchRepo, spec: Any) -> list[str]:
    if isinstance(spec, list):
        return [repo.build(name).id for name in spec]
    if spec in (None, HEAD):
        return [repo.head().id]
    if spec == "EXISTING":
        return list(get_existing_hashes(conf.results_dir))
    if spec == "NEW":
        return list(repo.get_new_branch_commits(conf.branches, get_existing_hashes(conf.results_dir)))
    if spec == "ALL":
        return list(repo.get_new_branch_commits(conf.branches, []))
    if spec == "TAGS":
        return list(repo.get_tags().values())[::-1]
    if spec.startswith(_FILE):
        return _of_file(repo, spec.removeprefix(_FILE))
    return repo.get_hashes_from_range(spec)


def _of_file(repo: TorchRepo, name: str) -> list[str]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{name} cannot be read: {error}") from None
    ids = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            ids.append(repo.get_hash_from_name(line))
        except NoSuchNameError as error:
            log.warning(str(error))
    return ids


def _why_not(repo: TorchRepo, environments: Sequence[TorchEnvironment], build: Build) -> str | None:
    reasons = [environment.why_not(repo.ledger, build) for environment in environments]
    return None if None in reasons else reasons[0]


def _report(
    builds: Sequence[Build], usable: Sequence[Build], lacking: dict[Build, str], is_range: bool
) -> None:
    if usable:
        ends = usable[-1].version if len(usable) == 1 else f"{usable[-1].version} to {usable[0].version}"
        log.info(f"{len(usable)} of {len(builds)} builds of torch can be run here: {ends}")
    days = missing_days(list(builds)) if is_range else []
    if days:
        log.warning(f"No nightly is known of {_listed([_day(day) for day in days])}")
    alike: dict[str, list[Build]] = defaultdict(list)
    for build, why in lacking.items():
        alike[why.replace(build.version, "…")].append(build)
    for pattern, group in alike.items():
        names = _listed([build.version for build in reversed(group)])
        log.warning(f"Left out: {pattern.replace('…', names, 1)}")
    if any("could not be installed" in pattern for pattern in alike):
        log.info(f"{RETRY_VARIABLE}=1 tries again what could not be installed")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d")
