"""The doctor's report for people (rich) and for programs (plain data)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from accel_micro.doctor.finding import Finding, View, counted, ghz, gib

_STYLES: Final = {"problem": "bold red", "warning": "yellow", "note": "cyan"}
_UNITS: Final = (
    ("_bytes_per_second", 1e9, "GB/s"),
    ("_flops_per_second", 1e9, "GFLOP/s"),
    ("_spins_per_second", 1.0, "spins/s"),
    ("_seconds", 1.0, "s"),
    ("_bytes", float(1 << 30), "GiB"),
    ("_hertz", 1e9, "GHz"),
    ("_celsius", 1.0, "°C"),
    ("_watts", 1.0, "W"),
)
_LABEL_WIDTH: Final = 18

Row = tuple[str, str]


def render(
    facts: Mapping[str, Any],
    torch_facts: Mapping[str, Any] | None,
    findings: Sequence[Finding],
    console: Console,
    speed: Mapping[str, Any] | None = None,
) -> None:
    """Print facts by group, then findings, worst first, then one line that sums up.

    Args:
        speed: figures measured on this machine, by name with its SI unit (`host_flops_per_second`); texts are
            printed as they are.
    """
    host, torch = View(facts), View(torch_facts)
    _print_group(console, "Processor", _processor(host))
    _print_group(console, "System", _system(host))
    _print_group(console, "Right now", _load(host))
    for device in host.views("gpu.devices"):
        _print_group(console, f"GPU {device.number('index') or 0:g}", _gpu(device))
    _print_group(console, "torch", _torch(torch))
    measured = (speed or {}).items()
    _print_group(
        console, "Measured speed", ((_label(name), _figure(name, value)) for name, value in measured)
    )
    _print_group(console, "Environment", (("", variable) for variable in _environment(host)))
    _print_findings(console, findings)


def to_json(
    facts: Mapping[str, Any],
    torch_facts: Mapping[str, Any] | None,
    findings: Sequence[Finding],
    speed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report as plain data: `host`, `torch`, `speed` and `findings`."""
    return {
        "host": dict(facts),
        "torch": dict(torch_facts or {}),
        "speed": dict(speed or {}),
        "findings": [asdict(finding) for finding in findings],
    }


def _print_group(console: Console, title: str, rows: Iterable[Row]) -> None:
    filled = [(label, value) for label, value in rows if value]
    if not filled:
        return
    console.print(Text(title, style="bold"))
    for label, value in filled:
        before = Text(f"  {label:<{_LABEL_WIDTH}}  ", style="dim") if label else Text("  ")
        print_hanging(console, before, Text(value))
    console.print()


def _print_findings(console: Console, findings: Sequence[Finding]) -> None:
    for finding in findings:
        console.print(
            Text(f"{finding.severity}: ", style=_STYLES[finding.severity]) + Text(finding.name, style="bold")
        )
        print_hanging(console, Text("  "), Text(finding.what))
        print_hanging(console, Text("  → "), Text(finding.remedy, style="italic"))
        console.print()
    print_hanging(console, Text(), Text(summary(findings)))


def print_hanging(console: Console, before: Text, text: Text) -> None:
    """Print a text behind what comes before it, its further lines under the first. No line ends in blanks."""
    for line in text.wrap(console, max(20, console.width - len(before))):
        line.rstrip()
        console.print(before + line, soft_wrap=True)
        before = Text(" " * len(before))


def summary(findings: Sequence[Finding]) -> str:
    """One sentence: how many findings there are and what they mean for timings."""
    counts = {severity: sum(f.severity == severity for f in findings) for severity in _STYLES}
    listed = ", ".join(counted(count, severity) for severity, count in counts.items() if count)
    if counts["problem"]:
        return f"{listed}. Timings taken now mean nothing: solve the problems first."
    if counts["warning"]:
        return f"{listed}. Timings can be taken; small differences may be noise."
    return (
        f"{listed}. This machine is fit for timing."
        if listed
        else "Nothing found. This machine is fit for timing."
    )


def _processor(host: View) -> Iterator[Row]:
    kinds = ("physical", "performance", "efficiency", "logical", "allowed")
    cores = [f"{count:g} {kind}" for kind in kinds if (count := host.number(f"cpu.{kind}_cores")) is not None]
    quota, cache = host.number("cpu.quota_cores"), host.number("cpu.last_level_cache_bytes")
    yield "model", host.text("cpu.model")
    yield "cores", ", ".join(cores)
    yield "affinity", host.text("cpu.affinity")
    yield "quota", f"{quota:g} cores" if quota is not None else ""
    yield "memory nodes", _number(host, "cpu.numa_nodes")
    yield (
        "clock",
        _clock(host, "cpu.frequency_now_hertz", "cpu.base_frequency_hertz", "cpu.frequency_maximum_hertz"),
    )
    yield "governor", _texts(host, "cpu.governor", "cpu.frequency_driver", "cpu.energy_preference")
    yield "turbo", _on_off(host.flag("cpu.boost"))
    yield "SMT", _on_off(host.flag("cpu.smt"))
    yield "last-level cache", f"{cache / (1 << 20):.0f} MiB" if cache else ""
    yield "instruction sets", " ".join(host.texts("cpu.instruction_sets"))


def _system(host: View) -> Iterator[Row]:
    total, limit = host.number("memory.total_bytes"), host.number("memory.limit_bytes")
    randomised, without_gil = host.number("system.aslr"), host.flag("python.gil") is False
    python = f"{host.text('python.implementation')} {host.text('python.version')}".strip()
    yield "system", _texts(host, "system.distribution", "system.kernel", "system.architecture")
    yield "virtual machine", host.text("system.virtual_machine")
    yield "container", host.text("system.container")
    yield "memory", _join(gib(total) if total else "", f"{gib(limit)} allowed" if limit else "")
    yield "huge pages", host.text("system.transparent_huge_pages")
    yield "address layout", "" if randomised is None else "randomised" if randomised else "fixed"
    yield "clock source", host.text("system.clock_source")
    yield "Python", _join(python, host.text("python.architecture"), "without GIL" if without_gil else "")


def _load(host: View) -> Iterator[Row]:
    available, swap = host.number("memory.available_bytes"), host.number("memory.swap_used_bytes")
    battery, charge = host.flag("power.on_battery"), host.number("power.battery_percent")
    source = "" if battery is None else "battery" if battery else "mains"
    yield "other processes", _share(host, "load.busy_elsewhere", "of CPU time")
    yield "stolen", _share(host, "load.steal", "of CPU time")
    yield "load average", _number(host, "load.average")
    yield "memory", _join(_unless_none(available, gib, "free"), gib(swap) + " swapped" if swap else "")
    yield "temperature", _number(host, "power.temperature_celsius", "°C")
    yield "power", _join(source, f"{charge:.0f} %" if charge is not None else "")


def _gpu(device: View) -> Iterator[Row]:
    memory, used = device.number("memory_bytes"), device.number("memory_used_bytes")
    cuda, limit = device.text("cuda_driver"), device.number("power_limit_watts")
    usual = device.number("power_default_limit_watts")
    default = f" of {usual:.0f} W by default" if usual and limit and limit != usual else ""
    modes = {"ECC": device.flag("ecc"), "MIG": device.flag("mig"), "persistence": device.flag("persistence")}
    yield "model", device.text("name")
    yield "memory", _join(gib(memory) if memory else "", _unless_none(used, gib, "used"))
    yield "driver", _join(device.text("driver"), f"CUDA up to {cuda}" if cuda else "")
    yield "architecture", _texts(device, "compute_capability", "architecture", "metal")
    yield "clock", _clock(device, "clock_hertz", "", "clock_maximum_hertz")
    yield "held down by", ", ".join(device.texts("throttle_reasons"))
    yield (
        "power",
        _join(_number(device, "power_watts", "W"), f"{limit:.0f} W allowed{default}" if limit else ""),
    )
    yield "temperature", _number(device, "temperature_celsius", "°C")
    yield "busy", _share(device, "utilization", "of the time")
    yield "modes", ", ".join(f"{name} {_on_off(flag)}" for name, flag in modes.items() if flag is not None)


def _torch(torch: View) -> Iterator[Row]:
    versions = {
        "CUDA": torch.text("build.cuda"),
        "ROCm": torch.text("build.hip"),
        "XPU": torch.text("build.xpu"),
    }
    built = [f"{name} {version}" for name, version in versions.items() if version]
    built += ["MPS"] if torch.flag("devices.mps_built") else []
    tf32 = [
        name for name in ("cuda_matmul", "cudnn") if torch.flag(f"precision.{name}_tf32") and versions["CUDA"]
    ]
    shown = f"TF32 in {', '.join(tf32)}" if tf32 else ""
    version = torch.text("build.version")
    yield "version", _join(version, torch.text("build.git")[:10])
    yield "GPU support", ", ".join(built) or ("none" if version else "")
    yield "accelerator", torch.text("devices.accelerator") or ("none usable" if version else "")
    yield "BLAS", f"{torch.text('libraries.blas')} {torch.text('libraries.mkl')}".strip()
    yield "oneDNN", torch.text("libraries.onednn")
    yield "CPU kernels", torch.text("libraries.cpu_capability")
    yield (
        "threads",
        _join(
            _number(torch, "threads.intra_op", "in an op"),
            _number(torch, "threads.inter_op", "between ops"),
            torch.text("threads.backend"),
        ),
    )
    yield "float32 products", _join(torch.text("precision.float32_matmul"), shown)


def _environment(host: View) -> Iterator[str]:
    variables = host.get("environment")
    for name in sorted(variables) if isinstance(variables, Mapping) else ():
        yield f"{name}={variables[name]}"


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _texts(view: View, *names: str) -> str:
    return _join(*(view.text(name) for name in names))


def _number(view: View, name: str, unit: str = "") -> str:
    number = view.number(name)
    return "" if number is None else f"{number:.4g} {unit}".rstrip()


def _share(view: View, name: str, whole: str) -> str:
    share = view.number(name)
    return "" if share is None else f"{share:.1%} {whole}"


def _unless_none(number: float | None, write: Callable[[float], str], after: str) -> str:
    return "" if number is None else f"{write(number)} {after}"


def _clock(view: View, now: str, base: str, most: str) -> str:
    hertz = ((view.number(name), word) for name, word in ((now, "now"), (base, "base"), (most, "at most")))
    return ", ".join(f"{ghz(value)} {word}" for value, word in hertz if value)


def _on_off(flag: bool | None) -> str:
    return "" if flag is None else "on" if flag else "off"


def _label(name: str) -> str:
    unit = next((suffix for suffix, _, _ in _UNITS if name.endswith(suffix)), "")
    return name.removesuffix(unit).replace("_", " ")


def _figure(name: str, value: Any) -> str:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    for suffix, scale, unit in _UNITS:
        if name.endswith(suffix):
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g}"
