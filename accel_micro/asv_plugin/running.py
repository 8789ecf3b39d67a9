"""`asv run` as it should behave: results are saved, with samples, as those of the installed build; and a range of
builds is run with an environment for each.

With an existing environment plain asv measures, prints and forgets everything unless `--set-commit-hash` is
given, and it runs once for each branch of the configuration.
"""

import copy
from collections.abc import Callable
from typing import Any, Final

import asv.environment
import asv.repo
import asv.util
from asv.commands.find import Find
from asv.commands.run import Run
from asv.console import log
from asv.repo import NoSuchNameError
from asv.util import UserError

from accel_micro.asv_plugin import choosing, patching, state
from accel_micro.asv_plugin.environment import TorchEnvironment, say
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.repo import HEAD, TorchRepo
from accel_micro.asv_plugin.state import TOOL
from accel_micro.asv_plugin.syncing import sync
from accel_micro.builds.ahead import Ahead

_MAY_SKIP: Final = ("skip_successful", "skip_failed", "skip_existing_commits")
"""Options of asv's with which it leaves builds out, so that they would be made ahead for nothing."""


def install() -> None:
    """Replace the commands `run` and `find`."""
    takes = (
        "conf",
        "range_spec",
        "env_spec",
        "set_commit_hash",
        "dry_run",
        "quick",
        "pull",
        "interleave_rounds",
    )
    patching.replace(Run, "run", _run, takes=takes)
    patching.replace(Find, "run", _find, takes=("conf", "range_spec", "bench", "env_spec"))


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(cls: Any, conf: Any, range_spec: Any = None, **options: Any) -> Any:
        if conf.dvcs != TorchRepo.dvcs:
            return original(cls, conf, range_spec=range_spec, **options)
        with state.running() as live:
            try:
                conf, range_spec, options = _prepared(live, conf, range_spec, options)
                code = original(cls, conf, range_spec=range_spec, **options)
            except (KeyboardInterrupt, UserError) as error:
                if live.stopped or isinstance(error, KeyboardInterrupt):
                    live.stopped = True
                    raise UserError(f"interrupted; {_counted(live.saved)} saved") from None
                return _exit_code(live, error)
            _report_unmeasured(live)
            return code

    return run


def _find(original: Callable[..., Any]) -> Callable[..., Any]:
    def find(cls: Any, conf: Any, range_spec: Any, bench: Any, **options: Any) -> Any:
        if conf.dvcs != TorchRepo.dvcs:
            return original(cls, conf, range_spec, bench, **options)
        if is_installed_only(conf, options.get("env_spec")):
            if options.get("env_spec"):
                raise EnvironmentLacks(
                    "asv find needs an environment for each build; this one has the installed torch only"
                )
            options["env_spec"] = [TOOL]
        pythons = [spec.partition(":")[2] for spec in options.get("env_spec") or () if ":" in spec]
        if pythons:  # of others than the configuration's, asv does not know when it pulls
            sync(conf, asv.repo.get_repo(conf).ledger, pythons)
        conf = copy.copy(conf)
        conf.branches = []  # of which asv would install the newest where the first of the range fails
        with state.running() as live:
            try:
                code = original(cls, conf, range_spec, bench, **options)
            except UserError as error:
                return _exit_code(live, error)
            _report_unmeasured(live)
            return code

    return find


def _prepared(
    live: state.Run, conf: Any, range_spec: Any, options: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """The arguments with which asv does what is meant: on the installed torch, or on builds of a range."""
    if is_installed_only(conf, options.get("env_spec")):
        chosen = options.get("env_spec") or options.get("set_commit_hash")
        if chosen or choosing.is_installed(conf, asv.repo.get_repo(conf), range_spec):
            return _for_installed(conf, range_spec, options)
        options = {**options, "env_spec": [TOOL]}
    environments = list(asv.environment.get_environments(conf, options.get("env_spec")))
    if not environments:
        raise EnvironmentLacks("there is no environment to run in")
    if not all(isinstance(environment, TorchEnvironment) for environment in environments):
        return conf, range_spec, options
    return _for_builds(live, conf, environments, range_spec, options)


def _for_builds(
    live: state.Run, conf: Any, environments: Any, range_spec: Any, options: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    if options.get("set_commit_hash"):
        raise WrongUse("--set-commit-hash is for an existing environment; name the build instead")
    compared = isinstance(range_spec, list)  # by `asv continuous`
    quick = bool(options.get("quick"))
    if quick and compared:
        raise WrongUse("a quick run is not saved, so there is nothing to compare")
    repo = asv.repo.get_repo(conf)
    if options.get("pull", True) and not compared:
        sync(conf, repo.ledger, [environment.interpreter for environment in environments])
    ids = choosing.choose(
        conf, repo, environments, range_spec, date_period=options.get("date_period"), all_needed=compared
    )
    conf = copy.copy(conf)
    conf.branches = []
    options = {**options, "pull": False, "date_period": None}
    if quick:
        options.update(dry_run=True, interleave_rounds=False)  # see `_for_installed`
    if options.get("interleave_rounds") is None:
        options["interleave_rounds"] = not options.get("dry_run")
    live.interleaved = options["interleave_rounds"]
    if len(ids) > 1 and not any(options.get(name) for name in _MAY_SKIP):
        steps = options.get("steps")
        live.expected = tuple(asv.util.pick_n(list(ids), steps) if steps else ids)
        live.ahead = Ahead(say)
        live.at_end.callback(live.ahead.close)
    if not options.get("dry_run"):
        repo.ledger.remember_all([repo.build(build_id) for build_id in ids])
    return conf, ids, options


def _exit_code(live: state.Run, error: UserError) -> int:
    """What a command ends with when it could not be done; asv itself ends with 1, whatever it was."""
    if live.unmeasured and "Failed to build the project" in str(error):
        error = EnvironmentLacks(f"no build could be run: {next(iter(live.unmeasured.values()))}")
    code = getattr(error, "exit_code", None)
    if live.embedded or code is None:
        raise error
    log.error(str(error))
    return int(code)


def _report_unmeasured(live: state.Run) -> None:
    for why in live.unmeasured.values():
        log.error(f"Not measured: {why}")


def _counted(cases: int) -> str:
    return "1 case is" if cases == 1 else f"{cases} cases are"


def is_installed_only(conf: Any, env_spec: Any) -> bool:
    """Whether all environments are interpreters that have their torch already."""
    environments = list(asv.environment.get_environments(conf, env_spec, verbose=False))
    return bool(environments) and bool(asv.environment.is_existing_only(environments))


def _for_installed(conf: Any, range_spec: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    repo = asv.repo.get_repo(conf)
    name = options.get("set_commit_hash") or HEAD
    try:
        build = repo.build(name)
        # `asv continuous` hands over a list of ids.
        asked = [repo.build(n) for n in ([range_spec] if isinstance(range_spec, str) else range_spec or [])]
    except NoSuchNameError as error:
        raise WrongUse(str(error)) from None
    if any(other != build for other in asked):
        others = ", ".join(str(other) for other in asked if other != build)
        raise EnvironmentLacks(f"{others} is not the installed torch, which is {build.version}")
    conf = copy.copy(conf)
    conf.branches = [HEAD]  # asv would run once for each
    if options.get("quick"):
        # asv says that quick results are not saved, and saves them. One sample a process cannot be told
        # apart from twenty.
        options = {**options, "dry_run": True}
    if not options.get("dry_run"):
        repo.remember(build.id)
    return conf, None, {**options, "set_commit_hash": name, "pull": False}
