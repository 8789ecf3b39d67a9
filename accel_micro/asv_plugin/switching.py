"""From build to build within a run: a build that cannot be run costs itself, and no result that is there.

asv marks all benchmarks of a commit failed when it cannot be installed, over what was measured before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import asv.runner
from asv.console import log

from accel_micro.asv_plugin import patching, saving, selection, state
from accel_micro.asv_plugin.environment import TorchEnvironment
from accel_micro.asv_plugin.errors import DeviceBusy, EnvironmentLacks, NoEnvironment
from accel_micro.asv_plugin.serving import ask_server
from accel_micro.results import installs


def install() -> None:
    """Replace how asv runs the benchmarks of a build."""
    patching.replace(asv.runner, "run_benchmarks", _run_build, takes=("benchmarks", "env", "results"))


def _run_build(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_benchmarks(benchmarks: Any, env: Any, results: Any = None, **options: Any) -> Any:
        if not isinstance(env, TorchEnvironment) or results is None:
            return original(benchmarks, env, results=results, **options)
        with state.running() as run:
            try:
                env.switch_to(results.commit_hash)  # asv has done so, but with --parallel in another process
                if run.ahead is not None:
                    run.ahead.go_on()
                ask_server(run, env, benchmarks.benchmark_dir, options.get("launch_method"))
                selection.report_of(env)
            except DeviceBusy:
                raise
            except (EnvironmentLacks, NoEnvironment) as error:
                if results.commit_hash not in run.unmeasured:
                    run.unmeasured[results.commit_hash] = str(error)
                    log.error(str(error))
                return _give_up(run, benchmarks, results)
            finally:
                if run.ahead is not None:
                    run.ahead.pause()  # from here on something is timed
            write_installs(run, results)
            return original(benchmarks, env, results=results, **options)

    return run_benchmarks


def _give_up(run: state.Run, benchmarks: Any, results: Any) -> Any:
    write_installs(run, results)
    saving.discard(results)
    why = run.unmeasured.get(results.commit_hash, "it could not be installed")
    for benchmark in benchmarks.values():
        log.step()
        # All of its cases: `asv find` takes a case that was not selected for one that has a time.
        results.add_result(benchmark, asv.runner.fail_benchmark(benchmark, stderr=why), selected_idx=None)
    return results


def write_installs(run: state.Run, results: Any) -> None:
    """Write what became of installations beside the results, unless those are not saved."""
    directory, machine = saving.directory_of(results), results.params.get("machine")
    if directory is not None and machine and run.installs:
        installs.append(Path(directory) / str(machine), run.installs)
        run.installs.clear()
