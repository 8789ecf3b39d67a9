"""Rules about what changes the machine's pace: load, memory, clocks, heat, power, neighbours."""

from collections.abc import Iterator

from accel_micro.doctor.finding import Finding, Rule, View, counted, ghz, gib

_BUSY, _VERY_BUSY = 0.1, 0.5
_STOLEN, _MUCH_STOLEN = 0.02, 0.2
_WAITING = 0.2
_SWAPPED_BYTES = 1 << 20
_HOT_CELSIUS = 90
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")


def busy(host: View, torch: View) -> Iterator[Finding]:
    """Other processes take cores, caches and memory bandwidth."""
    share = host.number("load.busy_elsewhere")
    if share is not None and share >= _BUSY:
        processes = [
            f"{process.text('name')} (pid {process.number('pid'):.0f}) {process.number('cores'):.2f} cores"
            for process in host.views("load.processes")
            if process.text("name")
            and process.number("pid") is not None
            and process.number("cores") is not None
        ]
        named = f": {', '.join(processes[:3])}" if processes else "; they are not visible from here"
        yield Finding(
            "busy machine",
            "problem" if share >= _VERY_BUSY else "warning",
            f"Other processes use {share:.0%} of the CPU time{named}.",
            "End or pause them, then measure again.",
        )
        return
    average, allowed = host.number("load.average"), host.number("cpu.logical_cores")
    if average is not None and allowed is not None and average > allowed:
        yield Finding(
            "busy a moment ago",
            "note",
            f"The load average of the last minute is {average:g} on {counted(allowed, 'CPU')}.",
            "Wait a minute and look again.",
        )


def waiting_for_cpu(host: View, torch: View) -> Iterator[Finding]:
    """Pressure counts what a busy share cannot show: ready tasks that got no core."""
    share = host.number("load.cpu_pressure")
    if share is not None and share >= _WAITING:
        yield Finding(
            "tasks wait for a core",
            "warning",
            f"In {share:.0%} of the last ten seconds some task was ready to run and had no core.",
            "Use fewer threads, or end what else is running.",
        )


def steal(host: View, torch: View) -> Iterator[Finding]:
    """Time that the hypervisor gave to other guests; nothing inside this one can win it back."""
    share = host.number("load.steal")
    if share is not None and share >= _STOLEN:
        yield Finding(
            "stolen CPU time",
            "problem" if share >= _MUCH_STOLEN else "warning",
            f"The hypervisor gave {share:.1%} of the CPU time to other guests.",
            "Use a machine with dedicated cores, or take more processes and compare interleaved.",
        )


def memory(host: View, torch: View) -> Iterator[Finding]:
    """A page that comes from swap costs as much as a million additions."""
    swapped, pressure = host.number("memory.swapped_bytes"), host.number("load.memory_pressure")
    # Of the machine both: how much of a control group's limit is left is not known.
    total, available = host.number("memory.total_bytes"), host.number("memory.available_bytes")
    if swapped is not None and swapped >= _SWAPPED_BYTES:
        yield Finding(
            "swapping",
            "problem",
            f"{swapped / (1 << 20):.0f} MiB moved between memory and swap while looking.",
            "Close programs until nothing is swapped; timings wait for the disk.",
        )
    elif (available is not None and total and available < 0.1 * total) or (
        pressure is not None and pressure >= 0.05
    ):
        left = f"{gib(available)} of {gib(total)}" if available is not None and total else "little memory"
        waited = (
            ""
            if pressure is None
            else f", and tasks waited for memory in {pressure:.0%} of the last ten seconds"
        )
        yield Finding(
            "short of memory",
            "warning",
            f"{left} is free{waited}.",
            "Close programs, or leave out the large cases.",
        )


def governor(host: View, torch: View) -> Iterator[Finding]:
    """Every governor but `performance` lowers the clock whenever there is a pause."""
    name = host.text("cpu.governor")
    if name and name != "performance":
        now, most = host.number("cpu.frequency_now_hertz"), host.number("cpu.frequency_maximum_hertz")
        clock = f" (now {ghz(now)} of {ghz(most)})" if now and most else ""
        yield Finding(
            "clock follows the load",
            "warning",
            f"The frequency governor is {name}{clock}: the clock climbs while the first samples are taken.",
            "sudo cpupower frequency-set -g performance",
        )


def frequency_limit(host: View, torch: View) -> Iterator[Finding]:
    """Someone or something holds the clock below what the processor can do."""
    limit, most = host.number("cpu.frequency_limit_hertz"), host.number("cpu.frequency_maximum_hertz")
    if limit and most and limit < 0.99 * most:
        yield Finding(
            "clock is limited",
            "warning",
            f"The clock may not exceed {ghz(limit)}, and the processor can do {ghz(most)}.",
            "Raise scaling_max_freq, or compare only with runs under the same limit.",
        )


def boost(host: View, torch: View) -> Iterator[Finding]:
    """How far the clock rises above its base depends on heat and on what the other cores do."""
    if host.flag("cpu.boost"):
        base, most = host.number("cpu.base_frequency_hertz"), host.number("cpu.frequency_maximum_hertz")
        figures = f" from {ghz(base)} to {ghz(most)}" if base and most and most > base else " above its base"
        yield Finding(
            "turbo",
            "note",
            f"The clock may rise{figures} while the processor is cool; the speed gate corrects for most.",
            "For the steadiest timings switch turbo off (intel_pstate/no_turbo or cpufreq/boost).",
        )


def power_source(host: View, torch: View) -> Iterator[Finding]:
    """Laptops lower their clocks on battery, and further when it is low."""
    charge = host.number("power.battery_percent")
    if host.flag("power.on_battery"):
        left = f" at {charge:.0f} %" if charge is not None else ""
        yield Finding(
            "on battery",
            "warning",
            f"The machine runs on battery{left} and saves power.",
            "Plug it in and wait a minute.",
        )
    if host.flag("power.low_power_mode"):
        yield Finding(
            "low power mode",
            "warning",
            "Low power mode is on: the clocks are held down.",
            "Switch it off (macOS: sudo pmset -a lowpowermode 0).",
        )


def heat(host: View, torch: View) -> Iterator[Finding]:
    """A hot processor lowers its clock for as long as it stays hot."""
    events, since_start = (
        host.number("power.throttle_events"),
        host.number("power.throttle_events_since_start"),
    )
    degrees, limit = host.number("power.temperature_celsius"), host.number("power.speed_limit_percent")
    if events or (degrees is not None and degrees >= _HOT_CELSIUS) or (limit is not None and limit < 100):
        figures = [f"{events:g} throttle events while looking"] if events else []
        figures += [f"{degrees:g} °C"] if degrees is not None else []
        figures += [f"speed limited to {limit:g} %"] if limit is not None and limit < 100 else []
        yield Finding(
            "too hot",
            "warning",
            f"The processor slows down for heat or power: {', '.join(figures)}.",
            "Let it cool, clear the vents, or lower the number of threads.",
        )
    elif since_start:
        yield Finding(
            "was too hot",
            "note",
            f"The processor has slowed down for heat or power {since_start:.0f} times since it was started.",
            "Watch for the flag `speed-corrected` in long runs; cool it better.",
        )


def clock_source(host: View, torch: View) -> Iterator[Finding]:
    """Reading a clock outside of the processor takes a microsecond, not 20 ns."""
    name = host.text("system.clock_source")
    if name in _SLOW_CLOCKS:
        yield Finding(
            "slow clock",
            "warning",
            f"The kernel reads the time from {name}; one reading takes about a microsecond.",
            "Find out why it distrusts the tsc (dmesg), or start it with clocksource=tsc.",
        )


def virtual_machine(host: View, torch: View) -> Iterator[Finding]:
    """Other guests share caches and memory bandwidth, and no counter shows it."""
    name = host.text("system.virtual_machine")
    if name:
        yield Finding(
            "virtual machine",
            "note",
            f"This is a virtual machine ({name}); neighbours share its caches and memory bandwidth unseen.",
            "Compare builds by several processes of each, taken in turns; a single process proves nothing here.",
        )


RULES: tuple[Rule, ...] = (
    busy, waiting_for_cpu, steal, memory, governor, frequency_limit, boost, power_source, heat, clock_source,
    virtual_machine,
)  # fmt: skip
