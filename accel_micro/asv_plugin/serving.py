"""A fork server that first says what its environment has, and then starts the processes of the cases.

Asked for by a process of its own, that takes another import of torch for each build of a range.
"""

import asv.runner
from asv.util import UserError

from accel_micro.asv_plugin import launching, prepare, state
from accel_micro.asv_plugin.environment import TorchEnvironment

_PATIENCE_SECONDS = 300


def ask_server(run: state.Run, environment: TorchEnvironment, benchmark_dir: str, method: str | None) -> None:
    """Have an environment's report, and its server for whoever asks for one next, where forking is the default.

    Without an answer there is no server either, and `selection.report_of` finds out why by a process of its own.

    Args:
        method: how processes are to be started, asv's `--launch-method`.
    """
    key = state.report_key(environment)
    known = key in run.reports or key in run.asking
    # What somebody has installed besides may not survive a fork, as torch_xla does not.
    if known or environment.requirements or launching.is_chosen(method) or launching.method() != "forkserver":
        return
    report = server = None
    try:
        server = asv.runner.get_spawner(environment, benchmark_dir, method)
        if server.preimport()[0]:
            output, _ = server.run(
                prepare.REQUEST, "", "None", "", timeout=_PATIENCE_SECONDS, cwd=str(run.spool)
            )
            report = prepare.read(output)
    except (UserError, OSError, RuntimeError, ValueError):
        pass
    finally:
        if report is None and server is not None:
            server.interrupted = True  # do not print what it said: it is said again
            server.close()
    if report is not None:
        run.reports[key] = report
        run.servers[key] = server
