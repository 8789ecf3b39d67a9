"""The plugin that teaches asv about torch builds, devices, clocks and records. Nothing else here knows asv.

asv imports this package because `asv.conf.json` lists it, and calls `setup`. Benchmark processes import only
`timing`, where asv itself need not be installed; so nothing is imported here.

    timing      in benchmark processes: the benchmark type that measures with accel_micro
    prepare     in an environment: what torch and which devices it has
    repo        builds of torch as asv's commits; syncing fills its ledger
    choosing    which builds a range means, and which can be had here
    environment the environment of whichever build is asked for; installs records what became of it
    switching   from build to build within a run
    selection   which cases are run: no process is started for one that a profile or a device excludes
    launching   how a process is started; serving: by a server that says first what its environment has
    processes   a case's process: its record, several clocks from one, interrupts; failures: why it died
    saving      results are on disk, whole, after each benchmark; headers: what held for a session
    running     `asv run` itself; locking: one run at a time per device
    machine     the machine file, without questions
    tables      what `asv run`, `show` and `compare` print
    pages       `asv publish`, for pages that need no internet
    state       what one run shares; events: what it tells its listeners; errors: with their exit codes
    patching    the one guarded way to replace a part of asv
    session     run and publish from Python; config: with which configuration; embedding: asv inside this process
    interleaving  one process of one case on one of several builds at a time; opening: what makes them ready
"""


def setup() -> None:
    """Install everything into the running asv; asv calls this. Doing so twice is harmless.

    Raises:
        IncompatibleAsv: this asv lacks something the plugin builds on; the message says what.
    """
    from accel_micro.asv_plugin import (
        launching,
        machine,
        pages,
        processes,
        repo,
        running,
        saving,
        selection,
        switching,
        tables,
    )

    for part in (repo, launching, machine, saving, selection, processes, switching, running, tables, pages):
        part.install()
