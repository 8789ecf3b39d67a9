"""Builds of torch as asv's commits. All it knows is in the ledger; what fills that is not its concern.

Branches are the channels, tags are the releases, HEAD is the torch of the interpreter that runs asv.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import asv.repo
from asv.repo import NoSuchNameError, Repo
from asv.results import iter_results
from asv.util import UserError

from accel_micro.asv_plugin import patching
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.syncing import sync
from accel_micro.builds import CHANNELS, AmbiguousBuild, Build, Ledger, UnknownBuild, installed_torch, ranges
from accel_micro.builds.identity import from_id
from accel_micro.builds.installed import TorchNotInstalled

HEAD = "HEAD"


class TorchRepo(Repo):  # type: ignore[misc]
    """asv's view of the ledger beside a folder of results."""

    dvcs = "torch"
    _default_branch = HEAD

    def __init__(self, url: str, mirror_path: str) -> None:
        self.results: Path | None = None
        self._conf: Any = None
        self._ledger: Ledger | None = None

    def open(self, conf: Any) -> None:
        """Use the ledger beside the results of this configuration, which asv gives a repository no part of."""
        self._conf = conf
        self.results = Path(conf.results_dir)
        self._ledger = Ledger.beside(self.results)

    @property
    def ledger(self) -> Ledger:
        """What is known.

        Raises:
            RuntimeError: `open` was not called.
        """
        if self._ledger is None:
            raise RuntimeError("a repository of builds is used before its results are known")
        return self._ledger

    @classmethod
    def url_match(cls, url: str) -> bool:
        """Never: the configuration says `"dvcs": "torch"`."""
        return False

    def head(self) -> Build:
        """The installed build.

        Raises:
            EnvironmentLacks: there is none.
        """
        try:
            build = installed_torch().build
        except TorchNotInstalled as error:
            raise EnvironmentLacks(str(error)) from None
        # Until it is remembered, the first time it is seen is now.
        now = int(time.time() * 1000)
        return self.ledger.add(replace(build, date_milliseconds=build.date_milliseconds or now))

    def remember(self, build_id: str) -> None:
        """Write a build into the ledger, with its date."""
        self.ledger.remember(self.build(build_id))

    def build(self, name: str | None) -> Build:
        """The build of that name, date, channel or id.

        Raises:
            NoSuchNameError: asv's error for an unknown commit.
            WrongUse: several builds go by that name.
        """
        if name is None or name == HEAD:
            return self.head()
        for attempt in (self._know_head, self._know_results, None):
            try:
                return self.ledger.resolve(name)
            except AmbiguousBuild as error:
                raise WrongUse(str(error)) from None
            except UnknownBuild as error:
                if attempt is None or name in CHANNELS:
                    raise NoSuchNameError(str(error)) from None
            attempt()
        raise NoSuchNameError(name)

    def pull(self) -> None:
        """Ask the indexes for new builds; see `syncing.sync`."""
        sync(self._conf, self.ledger)

    def checkout(self, path: str, commit_hash: str) -> None:
        """A build is installed, not checked out.

        Raises:
            WrongUse: always.
        """
        raise WrongUse("a torch build has no source to check out; use an environment that installs wheels")

    def get_date(self, hash: str) -> int:
        """When a build appeared, milliseconds since 1970."""
        return self.ledger.date_milliseconds(self.build(hash).id)

    def get_date_from_name(self, name: str) -> int:
        """The same, of any name."""
        return self.get_date(name)

    def get_hash_from_name(self, name: str | None) -> str:
        """Id of the build of that name; see `build` for what is raised."""
        return self.build(name).id

    def get_hash_from_parent(self, name: str) -> str:
        """Id of the build before it in its channel."""
        build = self.build(name)
        channel = self.ledger.ordered(build.channel)
        position = channel.index(build)
        if position == 0:
            raise NoSuchNameError(f"no {build.channel} build before {build.version} is known")
        return channel[position - 1].id

    def get_name_from_hash(self, commit: str) -> str | None:
        """Version of a build, or None when it is unknown."""
        try:
            return self.build(commit).version
        except (NoSuchNameError, UserError):
            return None

    def get_decorated_hash(self, commit: str, hash_length: int = 8) -> str:
        """Start of the id with the version, also for a name."""
        try:
            build = self.build(commit)
        except (NoSuchNameError, UserError):
            return commit[:hash_length]
        return f"{build.id[:hash_length]} <{build.version}>"

    def get_tags(self) -> dict[str, str]:
        """Version → id of every known release."""
        return {build.version: build.id for build in self.ledger.ordered("release")}

    def get_branch_name(self, branch: str | None = None) -> str:
        """The channel itself."""
        return branch or self._default_branch

    def get_branch_commits(self, branch: str | None) -> list[str]:
        """Ids of a channel, newest first; of the installed build's channel by default."""
        self._know_results()
        channel = branch if branch in CHANNELS else self.head().channel
        return [build.id for build in reversed(self.ledger.ordered(channel))]

    def get_revisions(self, commits: Iterable[str]) -> dict[str, int]:
        """Id → position among all known builds, from old to new, for the ids given."""
        wanted = set(commits)
        for unknown in [commit for commit in wanted if commit not in self.ledger]:
            self.ledger.add(from_id(unknown))
        return {build.id: i for i, build in enumerate(self.ledger.ordered()) if build.id in wanted}

    def get_range_spec(self, commit_a: str, commit_b: str) -> str:
        """Builds after `commit_a` up to `commit_b`."""
        return f"{commit_a}..{commit_b}"

    def get_new_range_spec(self, latest_result: str, branch: str | None = None) -> str:
        """Builds of a channel after `latest_result`."""
        return f"{latest_result}..{self.get_branch_name(branch)}"

    def get_hashes_from_range(self, range: str) -> list[str]:
        """Ids, newest first; see `builds.ranges.select` for what a range may be.

        Raises:
            WrongUse: a name in the range is unknown.
        """
        if range in CHANNELS:
            return self.get_branch_commits(range)
        for learn in (self._know_head, self._know_results, None):
            try:
                return [build.id for build in reversed(ranges.select(self.ledger, range, self.head))]
            except AmbiguousBuild as error:
                raise WrongUse(str(error)) from None
            except UnknownBuild as error:
                if learn is None:
                    raise WrongUse(str(error)) from None
            learn()
        raise AssertionError

    def _know_head(self) -> None:
        with contextlib.suppress(UserError):
            self.head()

    def _know_results(self) -> None:
        # Results that came without their ledger still say what they are: in their id and their date.
        if self.results is None or not self.results.is_dir():
            return
        for result in iter_results(str(self.results)):
            if result.commit_hash not in self.ledger:
                build = from_id(result.commit_hash)
                date = build.date_milliseconds or result.date
                self.ledger.add(Build(build.id, build.channel, build.version, date, build.git_version))


def install() -> None:
    """Tell the repository where the results are: asv makes it from `repo` and `project` alone."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_repo(conf: Any) -> Any:
            repo = original(conf)
            if isinstance(repo, TorchRepo):
                repo.open(conf)
            return repo

        return get_repo

    patching.replace(asv.repo, "get_repo", make, takes=("conf",))
