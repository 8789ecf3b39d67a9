"""`asv run` as it should behave: results are saved, with samples, as those of the installed build.

With an existing environment plain asv measures, prints and forgets everything unless `--set-commit-hash` is
given, and it runs once for each branch of the configuration.
"""

import copy
from collections.abc import Callable
from typing import Any

import asv.environment
import asv.repo
from asv.commands.find import Find
from asv.commands.run import Run
from asv.console import log
from asv.repo import NoSuchNameError
from asv.util import UserError

from accel_micro.asv_plugin import patching, state
from accel_micro.asv_plugin.errors import DeviceBusy, EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.repo import HEAD, TorchRepo


def install() -> None:
    """Replace the commands `run` and `find`."""
    takes = ("conf", "range_spec", "env_spec", "set_commit_hash", "dry_run", "quick")
    patching.replace(Run, "run", _run, takes=takes)
    patching.replace(Find, "run", _find, takes=("conf", "range_spec", "bench", "env_spec"))


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(cls: Any, conf: Any, range_spec: Any = None, **options: Any) -> Any:
        if conf.dvcs != TorchRepo.dvcs:
            return original(cls, conf, range_spec=range_spec, **options)
        with state.running() as live:
            if is_installed_only(conf, options.get("env_spec")):
                conf, range_spec, options = _for_installed(conf, range_spec, options)
            try:
                return original(cls, conf, range_spec=range_spec, **options)
            except DeviceBusy as error:
                if live.embedded:
                    raise
                log.error(str(error))
                return error.exit_code
            except (KeyboardInterrupt, UserError) as error:
                if live.stopped or isinstance(error, KeyboardInterrupt):
                    live.stopped = True
                    raise UserError(f"interrupted; {_counted(live.saved)} saved") from None
                raise

    return run


def _find(original: Callable[..., Any]) -> Callable[..., Any]:
    def find(cls: Any, conf: Any, range_spec: Any, bench: Any, **options: Any) -> Any:
        if conf.dvcs == TorchRepo.dvcs and is_installed_only(conf, options.get("env_spec")):
            raise EnvironmentLacks(
                "asv find needs an environment for each build; this one has the installed torch only"
            )
        with state.running():
            return original(cls, conf, range_spec, bench, **options)

    return find


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
    return conf, None, {**options, "set_commit_hash": name}
