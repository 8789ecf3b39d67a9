"""Which cases are run: those that the profile, the devices asked for and this machine's devices allow.

asv starts a process for every parameter combination to find out that it is skipped. Here one process an
environment says which devices there are, and the rest is decided before anything is started.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from asv.benchmarks import Benchmarks
from asv.console import log
from asv.environment import ExistingEnvironment
from asv.util import UserError

import accel_micro
from accel_micro import profiles
from accel_micro.asv_plugin import patching, prepare, state
from accel_micro.asv_plugin.environment import IMPORT_VARIABLE, TorchEnvironment
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.state import OP_KEY

_PATIENCE_SECONDS: Final = 300


def install() -> None:
    """Select cases when asv discovers benchmarks, and let environments import this very accel_micro."""
    home = Path(accel_micro.__file__).resolve().parent.parent
    # asv drops PYTHONPATH. A checkout is handed on; an installed package is left to the environment, since
    # its neighbours are another torch.
    if str(home) not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        paths = [str(home), *filter(None, os.environ.get(IMPORT_VARIABLE, "").split(os.pathsep))]
        os.environ[IMPORT_VARIABLE] = os.pathsep.join(dict.fromkeys(paths))
    patching.replace(
        Benchmarks, "discover", _select_after, takes=("conf", "environments", "commit_hash", "regex", "check")
    )


def report_of(environment: Any) -> Mapping[str, Any]:
    """What `prepare` says about an environment; asked once a run.

    Raises:
        EnvironmentLacks: it cannot import torch or accel_micro.
    """
    run = state.current()
    key = state.report_key(environment)
    if key not in run.reports:
        process = run.asking.pop(key, None) or ask(environment)
        try:
            output, errors = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise EnvironmentLacks(
                f"environment {_called(environment)} did not say within {_PATIENCE_SECONDS} s which devices it has"
            ) from None
        finally:
            state.end(process)
        report = prepare.read(output.decode(errors="replace"))
        if report is None:
            last = (errors + output).decode(errors="replace").strip().splitlines() or ["no output"]
            raise EnvironmentLacks(
                f"environment {_called(environment)} did not say which devices it has: {last[-1]}"
            )
        run.reports[key] = report
    return run.reports[key]


def _called(environment: Any) -> str:
    return environment.described if isinstance(environment, TorchEnvironment) else str(environment.name)


def ask(environment: Any) -> "subprocess.Popen[bytes]":
    """Start asking an environment; `report_of` takes the answer from what is put into the run's `asking`."""
    variables = {**os.environ, **environment.env_vars}
    paths = [variables.get(IMPORT_VARIABLE, ""), variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    process: subprocess.Popen[bytes] = environment.run(
        ["-m", "accel_micro.asv_plugin.prepare"], env=variables, cwd=sys.prefix, return_popen=True
    )
    return process


def why_skipped(benchmark: Mapping[str, Any], index: int, report: Mapping[str, Any]) -> str | None:
    """None when this run measures the case in an environment with this report, else the reason."""
    run = state.current()
    case = state.case_of(benchmark, index)
    return profiles.why_skipped(
        run.profile, benchmark[OP_KEY], case.device, case.dtype, case.shape, run.devices(report)
    )


def select(benchmarks: Any, reports: Sequence[Mapping[str, Any]]) -> Any:
    """The benchmarks with a case that one of the environments runs, and the selection narrowed to those
    cases.

    Raises:
        EnvironmentLacks, WrongUse: nothing is left; the message counts the reasons.
    """
    reasons: Counter[str] = Counter()
    empty: list[str] = []
    for name, benchmark in benchmarks.items():
        if OP_KEY not in benchmark:
            continue
        kept = []
        for index in benchmarks.benchmark_selection[name]:
            why = [why_skipped(benchmark, index, report) for report in reports]
            if None in why:
                kept.append(index)
            else:
                reasons[str(why[0])] += 1
        benchmarks.benchmark_selection[name] = kept
        if not kept:
            empty.append(name)
    left = benchmarks.filter_out(empty)
    if benchmarks and not left:
        devices = [facts for report in reports for facts in state.current().devices(report).values()]
        raise _nothing_left(reasons, {str(facts["unavailable"]) for facts in devices if facts["unavailable"]})
    return left


def _nothing_left(reasons: Counter[str], absent: Container[str] = ()) -> UserError:
    """What is told where no case is left.

    Args:
        absent: reasons why devices are not here. They are told only where nothing was left out for another reason.
    """
    told = {why: count for why, count in reasons.items() if not why.endswith("was not asked for")} or reasons
    told = {why: count for why, count in told.items() if why not in absent} or told
    clocks = re.compile(r"has no \w+ clock$|does not read the \w+ clock$")
    told = {why: count for why, count in told.items() if not clocks.search(why)} or told
    counted = "; ".join(f"{why} ({count:,} cases)" for why, count in Counter(told).most_common(6))
    if not any(why.startswith("profile ") for why in told):
        return EnvironmentLacks(f"no case to run: {counted}")
    known = (
        f"Profiles: {', '.join(profiles.PROFILES)}, chosen by --profile or {profiles.ENVIRONMENT_VARIABLE}"
    )
    return WrongUse(f"no case to run: {counted}. {known}")


def _mark_discovered(environments: Iterable[Any]) -> None:
    for environment in environments:
        if isinstance(environment, TorchEnvironment):
            environment.discovered = True


def _patterns(regex: Any) -> list[str]:
    """Those that asv was given.

    Raises:
        WrongUse: one is none.
    """
    if not regex or regex == ["just-discover"]:
        return []
    patterns = [regex] if isinstance(regex, str) else list(regex)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise WrongUse(f"{pattern!r} is no regular expression: {error}") from None
    return patterns


def _unmatched(patterns: Sequence[str], names: Iterable[str]) -> WrongUse:
    """What to say where nothing matches, with the ops whose names are near."""
    from accel_micro.catalogue.choosing import like

    ops = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
    near = list(dict.fromkeys(name for pattern in patterns for name in like(pattern, ops)))
    return WrongUse(
        f"no benchmark matches {' or '.join(patterns)}"
        + (f"; the nearest names are {', '.join(near)}" if near else "")
        + "; `accel-micro ops` lists the ops, and a benchmark's whole name is such as "
        "matmul.mm.time_forward('cpu', 'float32', 'm=64 k=64 n=64')"
    )


def was_ctrl_c(error: UserError) -> bool:
    """Whether asv made an error like any other of Ctrl-C, as it does while it lists benchmarks."""
    return isinstance(error.__context__, KeyboardInterrupt)


def _select_after(original: Callable[..., Any]) -> Callable[..., Any]:
    def discover(
        cls: Any, conf: Any, repo: Any, environments: Iterable[Any], commit_hash: Any, **options: Any
    ) -> Any:
        environments = list(environments)
        patterns = _patterns(options.get("regex"))
        with state.running() as run:
            if not options.get("check") and environments and isinstance(environments[0], ExistingEnvironment):
                # It imports torch, and so does the discovery: let both do so at once.
                run.asking[state.report_key(environments[0])] = ask(environments[0])
            commits = list(commit_hash)

            def listed(**more: Any) -> Any:
                try:
                    return original(cls, conf, repo, environments, commits, **{**options, **more})
                except UserError as error:
                    run.stopped = run.stopped or was_ctrl_c(error)
                    raise

            while True:
                benchmarks = listed()
                if not benchmarks and patterns:
                    raise _unmatched(patterns, listed(regex=None))
                if options.get("check") or not any(OP_KEY in benchmark for benchmark in benchmarks.values()):
                    _mark_discovered(environments)
                    return benchmarks
                try:
                    # Only the first environment is known to exist by now: asv imported the suite there.
                    report = report_of(environments[0])
                    break
                except EnvironmentLacks as error:
                    build = environments[0].installed_commit_hash
                    if len(commits) < 2 or build not in commits:
                        raise
                    # A build on which the suite can be imported and nothing else: that costs this build alone.
                    log.error(str(error))
                    run.unmeasured[build] = str(error)
                    commits.remove(build)
            left = select(benchmarks, [report])
            _mark_discovered(environments)
        cases = sum(len(left.benchmark_selection[name] or [0]) for name in left)
        log.info(f"Profile {run.profile.name}: {cases} of the suite's cases and clocks run here")
        return left

    return discover
