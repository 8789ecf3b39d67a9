"""Rules about GPUs: whether torch can use them, who else does, and what holds their clocks down."""

from collections.abc import Iterator

from accel_micro.doctor.finding import Finding, Rule, View, gib, whole

_USED, _MUCH_USED = 0.05, 0.5
_HOT_CELSIUS = 85
_DELIBERATE = ("idle", "application clocks set", "sync boost", "display clocks")
"""Throttle reasons that are no trouble: the GPU has nothing to do, or somebody set its clocks."""
_BUILDS = {
    "NVIDIA": ("cuda", "a CUDA build (+cu…)"),
    "AMD": ("hip", "a ROCm build (+rocm…)"),
    "Intel": ("xpu", "an XPU build (+xpu)"),
}


def _name(device: View) -> str:
    index = device.number("index")
    return f"GPU {index:g} ({device.text('name')})" if index is not None else device.text("name") or "the GPU"


def build_without_gpu(host: View, torch: View) -> Iterator[Finding]:
    """The wheel decides which maker's GPUs exist for torch."""
    version = torch.text("build.version")
    if not version:
        return
    present = {device.text("vendor"): _name(device) for device in host.views("gpu.devices")}
    for controller in host.views("gpu.pci"):
        # Integrated graphics of older Intel processors have no XPU build to install.
        usable = controller.text("driver") == "xe" or controller.flag("integrated") is False
        if controller.text("vendor") == "Intel" and usable:
            present.setdefault("Intel", "an Intel GPU")
    usable_builds = [
        vendor for vendor in present if vendor in _BUILDS and torch.text(f"build.{_BUILDS[vendor][0]}")
    ]
    for vendor, name in present.items():
        if vendor in _BUILDS and not usable_builds:
            yield Finding(
                "torch build lacks the GPU",
                "warning",
                f"{name} is here, and torch {version} was built without support for it.",
                f"Install {_BUILDS[vendor][1]} from PyTorch's wheel index, or measure the CPU alone.",
            )
    if "Apple" in present and torch.flag("devices.mps_built") is False:
        yield Finding(
            "torch build lacks the GPU",
            "warning",
            f"{present['Apple']} is here, and torch {version} was built without MPS.",
            "Install the arm64 wheel into an arm64 Python.",
        )


def driver_missing(host: View, torch: View) -> Iterator[Finding]:
    """The bus shows a card that no driver answers for."""
    answering = {device.text("vendor") for device in host.views("gpu.devices")}
    on_bus = {card.text("vendor") for card in host.views("gpu.pci")}
    if "NVIDIA" in on_bus - answering:
        yield Finding(
            "GPU without driver",
            "warning",
            "The bus shows an NVIDIA GPU that neither NVML nor nvidia-smi can read.",
            "Install or load NVIDIA's driver; in a container, pass the GPU through (docker: --gpus all).",
        )


def driver_too_old(host: View, torch: View) -> Iterator[Finding]:
    """A driver runs all CUDA of its own major version and none of a newer (CUDA Compatibility guide)."""
    built = torch.text("build.cuda")
    for device in host.views("gpu.devices"):
        runs = device.text("cuda_driver")
        if built and runs and _major(built) > _major(runs) > 0:
            yield Finding(
                "driver too old",
                "warning",
                f"Driver {device.text('driver')} runs CUDA up to {runs}; torch was built for CUDA {built}.",
                f"Update the driver, or install a torch build for CUDA {_major(runs)}.",
            )
            return


def _major(version: str) -> int:
    return whole(version.split(".")[0])


def gpu_unusable(host: View, torch: View) -> Iterator[Finding]:
    """Build and driver fit, and still torch finds no GPU."""
    if any(driver_too_old(host, torch)):
        return
    nvidia = [device for device in host.views("gpu.devices") if device.text("vendor") == "NVIDIA"]
    if nvidia and torch.text("build.cuda") and torch.flag("devices.cuda_available") is False:
        visible = host.get("environment.CUDA_VISIBLE_DEVICES")
        shown = f" (CUDA_VISIBLE_DEVICES={visible!r})" if visible is not None else ""
        yield Finding(
            "torch finds no GPU",
            "warning",
            f"{_name(nvidia[0])} is here and torch.cuda.is_available() is False{shown}.",
            "Read the warning of python -c 'import torch; torch.cuda.init()'; check CUDA_VISIBLE_DEVICES.",
        )
    if torch.flag("devices.mps_built") and torch.flag("devices.mps_available") is False:
        yield Finding(
            "torch finds no GPU",
            "warning",
            "This torch was built with MPS and cannot use it here.",
            "MPS needs macOS 12.3 or newer on Apple silicon, outside of a virtual machine.",
        )


def no_kernels(host: View, torch: View) -> Iterator[Finding]:
    """A GPU older or newer than those a build has kernels for."""
    built = torch.texts("devices.cuda_architectures")
    for device in host.views("gpu.devices"):
        capability = device.text("compute_capability")
        if built and capability and not _has_kernels(built, capability):
            yield Finding(
                "no kernels for the GPU",
                "warning",
                f"{_name(device)} has compute capability {capability}; torch has {', '.join(built)}.",
                "Install a build that lists it, an older torch for an old card, a newer one for a new card.",
            )


def _has_kernels(built: list[str], capability: str) -> bool:
    major, _, minor = capability.partition(".")
    mine = 10 * whole(major) + whole(minor)
    for name in built:
        kind, _, number = name.partition("_")
        lowest = whole(number.rstrip("af"))
        # Machine code runs on later minor versions of its major one; PTX (compute_) on everything later.
        if not mine or not lowest or (lowest <= mine and (lowest // 10 == mine // 10 or kind == "compute")):
            return True
    return False


def shared(host: View, torch: View) -> Iterator[Finding]:
    """A GPU runs the kernels of its tenants in turns."""
    for device in host.views("gpu.devices"):
        used, total = device.number("memory_used_bytes"), device.number("memory_bytes")
        tenants = [
            f"{process.text('name') or 'process'} (pid {process.number('pid'):.0f}"
            + (f", {gib(memory)})" if (memory := process.number("memory_bytes")) is not None else ")")
            for process in device.views("processes")
            if process.number("pid") is not None
        ]
        busy = device.number("utilization") or 0.0
        used_by = f"used by {', '.join(tenants[:3])}, " if tenants else ""
        if tenants or busy >= _USED:
            yield Finding(
                "GPU is shared",
                "problem" if busy >= _MUCH_USED else "warning",
                f"{_name(device)} is {used_by}{busy:.0%} busy.",
                "End them, or choose another GPU with CUDA_VISIBLE_DEVICES.",
            )
        elif used and total and used > 0.1 * total:
            yield Finding(
                "GPU memory is taken",
                "note",
                f"{gib(used)} of {gib(total)} of {_name(device)} is taken; nobody to be seen from here.",
                "Look on the host or outside the container who holds it.",
            )


def throttled(host: View, torch: View) -> Iterator[Finding]:
    """The driver says why the clock is lower than it could be."""
    for device in host.views("gpu.devices"):
        reasons = [reason for reason in device.texts("throttle_reasons") if reason not in _DELIBERATE]
        now, most = device.number("clock_hertz"), device.number("clock_maximum_hertz")
        clock = f" ({now / 1e6:.0f} of {most / 1e6:.0f} MHz)" if now and most else ""
        if reasons:
            yield Finding(
                "GPU is throttled",
                "warning",
                f"{_name(device)} is held down{clock}: {', '.join(reasons)}.",
                "Cool it, raise the power limit, or fix its clock below the limit (nvidia-smi -lgc).",
            )
        degrees = device.number("temperature_celsius")
        if degrees is not None and degrees >= _HOT_CELSIUS and not reasons:
            yield Finding(
                "GPU is hot",
                "warning",
                f"{_name(device)} is at {degrees:g} °C before anything is measured.",
                "Let it cool down, or improve the airflow.",
            )
        if "application clocks set" in device.texts("throttle_reasons"):
            yield Finding(
                "GPU clock was set",
                "note",
                f"Somebody fixed the clocks of {_name(device)}{clock}.",
                "Good for steady timings; compare only with runs at the same clock (undo: nvidia-smi -rgc).",
            )


def not_watched(host: View, torch: View) -> Iterator[Finding]:
    """Without NVML from Python the probe alone tells that a clock fell, and never why."""
    if host.flag("gpu.clocks_watched") is False:
        yield Finding(
            "GPU clock is not watched",
            "note",
            "nvidia-ml-py is not installed, so runs do not ask the driver why it holds a clock down.",
            "pip install 'accel-micro[nvidia]'",
        )


def power_limit(host: View, torch: View) -> Iterator[Finding]:
    """A lowered limit is part of what was measured."""
    for device in host.views("gpu.devices"):
        limit, default = device.number("power_limit_watts"), device.number("power_default_limit_watts")
        if limit and default and limit < 0.99 * default:
            yield Finding(
                "GPU power is limited",
                "note",
                f"{_name(device)} may draw {limit:.0f} W of its usual {default:.0f} W.",
                "Compare only with runs under the same limit (nvidia-smi -pl sets it).",
            )


def modes(host: View, torch: View) -> Iterator[Finding]:
    """MIG slices a GPU; without persistence the driver is loaded anew for each process."""
    for device in host.views("gpu.devices"):
        if device.flag("mig"):
            yield Finding(
                "GPU is sliced",
                "note",
                f"{_name(device)} runs in MIG mode: a slice has part of its cores and memory bandwidth.",
                "Compare only with slices of the same profile.",
            )
        if device.flag("persistence") is False and host.text("system.os").startswith("Linux"):
            yield Finding(
                "GPU driver is not kept loaded",
                "note",
                f"Persistence mode of {_name(device)} is off: each process waits for the driver to start.",
                "sudo nvidia-smi -pm 1",
            )


RULES: tuple[Rule, ...] = (
    build_without_gpu, driver_missing, driver_too_old, gpu_unusable, no_kernels, shared, throttled,
    not_watched, power_limit, modes,
)  # fmt: skip
