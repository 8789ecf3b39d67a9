"""Rules about cores: how many there are, may be used, and are used by threads."""

from collections.abc import Iterator

from accel_micro.doctor.finding import Finding, Rule, View, counted, whole


def more_threads_than_cores(host: View, torch: View) -> Iterator[Finding]:
    """Threads that share a core wait for each other at the end of every op."""
    allowed = host.number("cpu.allowed_cores")
    if allowed is None:
        return
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        asked = thread_count(host.variable(variable))
        if asked is not None and asked > allowed:
            yield Finding(
                "more threads than cores",
                "problem",
                f"{variable}={asked} on {counted(allowed, 'core')}: threads wait for each other in every op.",
                f"Set {variable}={allowed:g}, or unset it and let accel-micro choose.",
            )
            return
    threads = torch.number("threads.intra_op")
    if threads is not None and threads > allowed:
        yield Finding(
            "more threads than cores",
            "warning",
            f"torch starts {counted(threads, 'thread')} on {counted(allowed, 'core')}; accel-micro uses {allowed:g}.",
            f"Set OMP_NUM_THREADS={allowed:g} for your own programs, or they run slower than measured here.",
        )


def fewer_threads_than_cores(host: View, torch: View) -> Iterator[Finding]:
    """Deliberate or not, the timings are not those of the whole machine."""
    allowed = host.number("cpu.allowed_cores")
    if allowed is None:
        return
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        asked = thread_count(host.variable(variable))
        if asked is not None and asked < allowed:
            yield Finding(
                "fewer threads than cores",
                "note",
                f"{variable}={asked} leaves {counted(allowed - asked, 'core')} of {allowed:g} idle.",
                f"Set {variable}={allowed:g}, or compare only with runs of {counted(asked, 'thread')}.",
            )
            return
    threads = torch.number("threads.intra_op")
    if threads is not None and threads < allowed and not host.variable("OMP_NUM_THREADS"):
        yield Finding(
            "fewer threads than cores",
            "note",
            f"torch starts {counted(threads, 'thread')} by itself; accel-micro uses {allowed:g}.",
            f"Set OMP_NUM_THREADS={allowed:g} for your own programs to get what is measured here.",
        )


def thread_count(value: str) -> int | None:
    """The outermost number of a thread variable (`4`, `4,2`); None when it is not set or not a count."""
    count = whole(value.split(",")[0].strip())
    return count if count > 0 else None


def thread_variables(host: View, torch: View) -> Iterator[Finding]:
    """A thread variable that is no count is ignored by some libraries and read as one by others."""
    variables = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    for variable in variables:
        value = host.variable(variable)
        if value and thread_count(value) is None:
            yield Finding(
                "thread variable is no count",
                "warning",
                f"{variable}={value!r} is not a number of threads; each library makes of it what it likes.",
                f"Unset {variable}, or set it to a whole number from 1.",
            )
    allowed, logical = host.number("cpu.allowed_cores"), host.number("cpu.logical_cores")
    if (
        allowed is not None
        and logical is not None
        and logical > allowed
        and not host.variable("OMP_NUM_THREADS")
    ):
        yield Finding(
            "thread count is not set",
            "note",
            f"OMP_NUM_THREADS is not set; the machine shows {logical:g} CPUs, {allowed:g} should be used.",
            f"accel-micro uses {counted(allowed, 'thread')}; set OMP_NUM_THREADS={allowed:g} for your own programs.",
        )


def cpu_quota(host: View, torch: View) -> Iterator[Finding]:
    """A quota stops all threads of the container for the rest of each period, usually 100 ms."""
    quota = host.number("cpu.quota_cores")
    cores = host.number("cpu.affinity_cores") or host.number("cpu.physical_cores")
    if quota is None or cores is None or quota >= cores:
        return
    throttled = host.number("load.quota_throttled")
    ran_out = f"; it ran out in {throttled:.0%} of the periods so far" if throttled else ""
    yield Finding(
        "CPU quota",
        "warning",
        f"The control group allows {counted(round(quota, 2), 'core')} of time on {cores:g} cores{ran_out}.",
        "Ask for whole cores pinned to this container (docker: --cpuset-cpus) in place of a quota.",
    )


def pinned(host: View, torch: View) -> Iterator[Finding]:
    """The affinity is part of what was measured."""
    mine, physical = host.number("cpu.affinity_cores"), host.number("cpu.physical_cores")
    if mine is not None and physical is not None and mine < physical:
        yield Finding(
            "pinned to some cores",
            "note",
            f"It may use {mine:g} of {counted(physical, 'core')} (CPUs {host.text('cpu.affinity')}).",
            "Compare only with runs that are pinned alike, or start it without taskset or cpuset.",
        )


def hybrid_cores(host: View, torch: View) -> Iterator[Finding]:
    """An op is done when its slowest thread is; work is split evenly."""
    fast, slow = host.number("cpu.performance_cores"), host.number("cpu.efficiency_cores")
    allowed = host.number("cpu.allowed_cores")
    if fast and slow and allowed is not None and allowed > fast:
        yield Finding(
            "cores of two kinds",
            "warning",
            f"{fast:g} fast and {slow:g} slow cores share the work evenly, so the slow ones set the pace.",
            "Start it on the fast cores alone: taskset -c with the list in /sys/devices/cpu_core/cpus.",
        )


def numa_nodes(host: View, torch: View) -> Iterator[Finding]:
    """Memory of another node is farther away, and which node it is changes from process to process."""
    nodes = host.number("cpu.numa_nodes")
    if nodes is not None and nodes > 1 and (host.number("cpu.allowed_cores") or 0) > 1:
        yield Finding(
            "several memory nodes",
            "note",
            f"Memory lies on {nodes:g} nodes; where it is allocated changes from process to process.",
            "For the steadiest timings start it with numactl --cpunodebind=0 --membind=0.",
        )


RULES: tuple[Rule, ...] = (
    more_threads_than_cores, fewer_threads_than_cores, thread_variables, cpu_quota, pinned, hybrid_cores,
    numa_nodes,
)  # fmt: skip
