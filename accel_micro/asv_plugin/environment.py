"""asv's environment of whichever build is asked for.

asv keeps one environment for a Python and installs each commit over the last. Here each build has an environment of
its own (`builds.environments`), and installing one is choosing which interpreter is run.
"""

import contextlib
import hashlib
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import asv.environment
import asv.repo
import asv.util
from asv.console import log
from asv.environment import EnvironmentUnavailable

import accel_micro
from accel_micro.asv_plugin import state
from accel_micro.asv_plugin.errors import NoEnvironment, WrongUse
from accel_micro.asv_plugin.sources import find_sources
from accel_micro.asv_plugin.state import TOOL
from accel_micro.builds import Build, Ledger, Target, Wheel, choose_wheel, installed_torch
from accel_micro.builds.ahead import Job
from accel_micro.builds.disk import human_bytes
from accel_micro.builds.environments import Environments, Lease, installed_words
from accel_micro.builds.index import BadIndex
from accel_micro.builds.installed import TorchNotInstalled
from accel_micro.builds.installing import (
    BESIDE,
    MODULES,
    Broken,
    DefectiveWheel,
    Facts,
    NotInstalled,
    nowhere,
)
from accel_micro.builds.interpreters import NoInterpreter, find_interpreter
from accel_micro.builds.pruning import limit_bytes, prune
from accel_micro.builds.uv import UvError
from accel_micro.builds.wheels import PROJECT, ChangedFile
from accel_micro.host import nvidia
from accel_micro.results.installs import install_line

NVML: Final = "nvidia-ml-py"
"""With which benchmark processes ask NVIDIA's driver about clocks; the extra `nvidia` of accel_micro."""

RETRY_VARIABLE: Final = "ACCEL_MICRO_RETRY"
"""Set to try again what is remembered as broken."""

IMPORT_VARIABLE: Final = "ASV_PYTHONPATH"
"""Folders that asv's processes import from, as `PYTHONPATH` has them."""

_MISSING: Final = (
    "import importlib.util, sys\n"
    "print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])"
)
_PACKAGE: Final = ".accel_micro"
_AHEAD: Final = 2
"""Builds that are made ahead of the one that is asked for."""


class TorchEnvironment(asv.environment.Environment):  # type: ignore[misc]
    """The builds of torch for one Python; `-E torch` for the running one, `-E torch:3.12` for another."""

    tool_name = TOOL
    matches_python_fallback = False

    def __init__(
        self,
        conf: Any,
        python: str,
        requirements: dict[str, str],
        tagged_env_vars: dict[tuple[str, str], str],
    ) -> None:
        if PROJECT in {_project(name) for name in requirements}:
            raise EnvironmentUnavailable("torch is what is measured: it cannot be in asv's matrix")
        try:
            self._interpreter = find_interpreter(python)
            self._target: Target = find_sources(conf, pythons=[python]).targets[0]
        except (BadIndex, NoInterpreter) as error:
            raise EnvironmentUnavailable(str(error)) from None
        # Before asv's own initialisation, which asks for the name.
        self._python = self._interpreter.python
        self._requirements = requirements
        self._build: str | None = None
        self._version = ""
        self._conf: Any = conf
        self._repo: Any = None
        self.discovered = False
        """Whether asv knows the benchmarks by now."""
        super().__init__(conf, self._python, requirements, tagged_env_vars)
        extra = [
            _project(name) + (f"=={version}" if version else "") for name, version in requirements.items()
        ]
        if nvidia.watched():  # whoever watches clocks with the installed torch does so with all builds
            extra.append(NVML)
        self._store = Environments.below(Path(conf.env_dir), beside=(*BESIDE, *extra), say=say)
        self._leases: dict[str, Lease] = {}
        self._executable: Path | None = None
        self._known: dict[Path, tuple[str, str] | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        # asv hands environments to processes of its own; those take leases themselves.
        return {**vars(self), "_leases": {}, "_build": None, "_executable": None, "_repo": None}

    @property
    def described(self) -> str:
        """Name of this environment and version of the build that is run now."""
        return f"{self.name} with torch {self._version}" if self._build else self.name

    @property
    def interpreter(self) -> str:
        """Path of the Python that environments are made of."""
        return str(self._interpreter.path)

    @property
    def installed_commit_hash(self) -> str | None:
        """Id of the build that is run now."""
        return self._build

    def check_presence(self) -> bool:
        """True: an environment is made when its build is asked for."""
        return True

    def create(self) -> None:
        """Nothing to do yet."""

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        """Run this build from now on.

        Raises:
            NoEnvironment: it cannot be had; the message says why. Only while asv looks for a build that imports the
                suite: later it finds out when it measures.
        """
        self._repo = repo
        try:
            self.switch_to(commit_hash)
        except NoEnvironment:
            if not self.discovered:
                raise

    def switch_to(self, build_id: str) -> None:
        """The same, of the repository that was used last.

        Raises:
            NoEnvironment: always when it cannot be had.
        """
        if build_id == self._build:
            return
        run = state.active()
        if run is not None and build_id in run.unmeasured:
            raise NoEnvironment(run.unmeasured[build_id])
        if self._repo is None:
            self._repo = asv.repo.get_repo(self._conf)
        try:
            self._switch(self._repo.ledger, self._repo.build(build_id))
        except NoEnvironment as error:
            if run is not None:
                run.unmeasured[build_id] = str(error)
                say(str(error), log.error)
            raise

    def _switch(self, ledger: Ledger, build: Build) -> None:
        source = self.source_of(ledger, build)
        if isinstance(source, Path):
            self._check_imports(build, source)
            self.release()
            self._run_from(build, source.parent.parent, source)
            return
        run = state.active()
        if run is not None:
            self._make_ahead(run, ledger, build, source)
        try:
            lease = self._store.acquire(source, self._interpreter, retry=_retry())
        except NotInstalled as error:
            _note_defect(ledger, source, error)
            if run is not None:
                run.installs.append(install_line(build.id, self.name, source, str(error)))
            message = f"torch {build.version} could not be installed: {error}"
            raise NoEnvironment(message, for_good=isinstance(error, Broken)) from None
        made = lease.environment
        if run is None or not run.interleaved:
            self.release()
        if run is not None and not self._leases:
            run.at_end.callback(self.release)
        self._leases[build.id] = lease
        self._run_from(build, made.folder, made.python)
        _note_facts(ledger, source, made.facts)
        ahead = run is not None and run.ahead is not None and run.ahead.taken(made.name)
        if ahead:
            say(installed_words(made.facts))
        if made.made_now or ahead:
            if run is not None:
                run.installs.append(install_line(build.id, self.name, source, made.facts))
            self._keep_below_limit(run)

    def _make_ahead(self, run: state.Run, ledger: Ledger, build: Build, source: Wheel) -> None:
        """Have environments of builds beside it in a range made together with this one's, until it is measured.

        What is new costs a download, a core that unpacks, and one that imports torch for the first time: two builds
        made at once take hardly longer than one.
        """
        if run.ahead is None or build.id not in run.expected:
            return
        run.ahead.finish(self._store.name(source, self._interpreter))
        place = run.expected.index(build.id)
        # asv goes through the range in either direction; what it has behind it was made, and may have been removed.
        near = sorted(range(len(run.expected)), key=lambda other: abs(other - place))[1 : 1 + 2 * _AHEAD]
        jobs = [self.job(ledger, self._repo.build(run.expected[other])) for other in near]
        run.expected = tuple(other for other in run.expected if other != build.id)
        run.ahead.want([job for job in jobs if job is not None and job.is_open][:_AHEAD])

    def source_of(self, ledger: Ledger, build: Build) -> Wheel | Path:
        """The wheel to install for a build, or the interpreter that has it already.

        Raises:
            NoEnvironment: there is neither.
        """
        wheels = ledger.wheels(build.id)
        wheel = choose_wheel(wheels, self._target)
        if wheel is not None and (wheel.broken is None or _retry()):
            return wheel
        interpreter = self._interpreter_with(ledger, build)
        if interpreter is not None:
            return interpreter
        if wheel is not None:
            raise NoEnvironment(f"the wheel of torch {build.version} is broken: {wheel.broken}")
        if wheels:
            others = ", ".join(sorted({_tags(w.file_name) for w in wheels})[:3])
            raise NoEnvironment(
                f"torch {build.version} has no wheel for Python {self._python} on this platform"
                f" and {self._target.variants[0]}; there are: {others}"
            )
        raise NoEnvironment(f"no wheel of torch {build.version} is known for Python {self._python} here")

    def job(self, ledger: Ledger, build: Build) -> Job | None:
        """What there is to make for a build before it can be run; None where there is nothing, or it cannot be."""
        try:
            source = self.source_of(ledger, build)
        except NoEnvironment:
            return None
        return None if isinstance(source, Path) else Job(self._store, source, self._interpreter)

    def why_not(self, ledger: Ledger, build: Build) -> str | None:
        """Why a build cannot be run, as far as that is known without trying; None when nothing speaks against it."""
        try:
            source = self.source_of(ledger, build)
        except NoEnvironment as error:
            return str(error)
        if isinstance(source, Path) or _retry():
            return None
        reason = self._store.why_broken(source, self._interpreter)
        if reason is None and not source.urls and self._store.find(source, self._interpreter) is None:
            reason = nowhere(source)
        return reason and f"torch {build.version} could not be installed: {reason}"

    def release(self) -> None:
        """Let go of all environments: others may remove them."""
        for lease in self._leases.values():
            lease.release()
        self._leases.clear()
        self._build = self._executable = None

    def run(self, args: Sequence[str], **options: Any) -> Any:
        """Start the build's interpreter with this very accel_micro, and nothing else of what is around it.

        Raises:
            NoEnvironment: no build was installed.
        """
        if self._executable is None:
            raise NoEnvironment(f"{self.name} has no build to run")
        variables = {**(options.pop("env", None) or os.environ), **self._global_env_vars}
        paths = [self._package_path(), *variables.get(IMPORT_VARIABLE, "").split(os.pathsep)]
        # Both: asv makes the one of the other, and then its own script drops what came by the other alone.
        variables[IMPORT_VARIABLE] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
        variables["PYTHONPATH"] = variables[IMPORT_VARIABLE]
        variables["PATH"] = os.pathsep.join([str(self._executable.parent), variables.get("PATH", "")])
        variables.pop("VIRTUAL_ENV", None)
        log.debug(f"Running '{' '.join(args)}' in {self.name}")
        return asv.util.check_output([str(self._executable), *args], env=variables, **options)

    def _run_from(self, build: Build, folder: Path, python: Path) -> None:
        self._path = str(folder)
        self._executable = python
        self._build, self._version = build.id, build.version
        self._global_env_vars["ASV_ENV_DIR"] = self._path
        self._set_commit_hash(build.id)

    def _interpreter_with(self, ledger: Ledger, build: Build) -> Path | None:
        """An interpreter of the same version that has a build already: this one, or one noted for it."""
        noted = [Path(found.python) for found in ledger.installations(build.id)]
        for python in (self._interpreter.path, *noted):
            if self._has(python) == (build.id, self._python):
                return python
        return None

    def _has(self, python: Path) -> tuple[str, str] | None:
        """(id of its build, version) of an interpreter with a torch; asked once."""
        if python not in self._known:
            self._known[python] = None
            with contextlib.suppress(TorchNotInstalled, NoInterpreter):
                build_id = installed_torch(python).build.id
                same = python == self._interpreter.path
                version = self._python if same else find_interpreter(str(python)).python
                self._known[python] = (build_id, version)
        return self._known[python]

    def _check_imports(self, build: Build, python: Path) -> None:
        # An environment that is somebody's own has what they put there.
        done = subprocess.run(
            [python, "-c", _MISSING, *MODULES], capture_output=True, text=True, cwd=python.parent, check=False
        )
        missing = done.stdout.split()
        if missing:
            raise NoEnvironment(
                f"{python}, which has torch {build.version}, lacks {', '.join(missing)}:"
                f" {python} -m pip install {' '.join(missing)}"
            )

    def _package_path(self) -> str:
        """Folder to import accel_micro from. An installed package lies among others, torch too, so it gets a link."""
        package = Path(accel_micro.__file__).resolve().parent
        if str(package.parent) not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            return str(package.parent)
        name = hashlib.sha256(str(package).encode()).hexdigest()[:12]
        link = self._store.folder / _PACKAGE / name / package.name
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=link.parent) as folder:
                (Path(folder) / package.name).symlink_to(package, target_is_directory=True)
                (Path(folder) / package.name).replace(link)
        return str(link.parent)

    def _keep_below_limit(self, run: state.Run | None) -> None:
        try:
            done = prune(self._store, limit_bytes())
        except ValueError as error:
            raise WrongUse(str(error)) from None
        except UvError as error:
            log.warning(f"uv could not clean its cache: {error}")
            return
        if done.removed:
            names = ", ".join(removed.version for removed in done.removed)
            say(f"Removed environments not used for longest: torch {names}")
        if (
            run is not None
            and run.ahead is not None
            and run.ahead.lost(removed.name for removed in done.removed)
        ):
            run.expected = ()  # or each would be made twice
            say("The limit on disk has no room for builds that are made ahead; each is made in its turn")
        if done.after_bytes > done.limit_bytes:
            log.warning(
                f"Environments in use take {human_bytes(done.after_bytes)},"
                f" more than the limit of {human_bytes(done.limit_bytes)}"
            )


def _note_defect(ledger: Ledger, wheel: Wheel, error: NotInstalled) -> None:
    if isinstance(error, DefectiveWheel) and ledger.wheel(wheel.file_name) is not None:
        ledger.mark_broken(wheel.file_name, str(error))


def _note_facts(ledger: Ledger, wheel: Wheel, facts: Facts) -> None:
    """What installing showed: that the wheel is sound, and its commit."""
    if wheel.broken is not None:
        ledger.mark_broken(wheel.file_name, None)
    if wheel.git_version is None and facts.git_version is not None:
        with contextlib.suppress(ChangedFile, OSError):
            ledger.remember_all([replace(wheel, git_version=facts.git_version)])


def say(line: str, how: Callable[[str], None] | None = None) -> None:
    """Tell the user, by `log.info` unless said otherwise."""
    # asv is told to be quiet while it installs, but a download of gigabytes should not look like a hang.
    with log.set_level("INFO"):
        (how or log.info)(line)


def _retry() -> bool:
    return os.environ.get(RETRY_VARIABLE, "").lower() not in ("", "0", "no", "false")


def _project(name: str) -> str:
    return name.removeprefix("pip+").lower()


def _tags(file_name: str) -> str:
    return "-".join(file_name.removesuffix(".whl").split("-")[-3:])
