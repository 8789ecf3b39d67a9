"""Rules about the interpreter, the environment's variables and the torch build."""

from collections.abc import Iterator

from accel_micro.doctor.finding import Finding, Rule, View

_FASTER = 1.25
"""Another library is worth a warning when it is this many times as fast."""


def translated_python(host: View, torch: View) -> Iterator[Finding]:
    """Rosetta runs x86 code on Apple silicon: no MPS, no AMX, about half the speed."""
    if host.flag("python.translated") or (
        host.text("system.architecture") == "arm64" and host.text("python.architecture") == "x86_64"
    ):
        yield Finding(
            "emulated Python",
            "problem",
            "This Python is x86_64, translated by Rosetta on an arm64 machine; it has no MPS.",
            "Install an arm64 Python and its arm64 torch.",
        )


def slow_python(host: View, torch: View) -> Iterator[Finding]:
    """Whatever watches each call slows the host's side of every op."""
    if host.flag("python.debug_build"):
        yield Finding(
            "debug build of Python",
            "problem",
            "This Python was built for debugging; every call costs several times as much.",
            "Use a release build of Python.",
        )
    observers = host.texts("python.observers")
    if observers:
        yield Finding(
            "Python is being watched",
            "problem",
            f"Every call is observed by {', '.join(observers)}.",
            "Run without coverage, debugger, profiler and PYTHONDEVMODE.",
        )


def allocator(host: View, torch: View) -> Iterator[Finding]:
    """A preloaded allocator changes every op that makes a new tensor on the CPU."""
    name = host.text("python.allocator")
    if name:
        yield Finding(
            "other allocator",
            "note",
            f"Memory comes from {name}, preloaded in place of the system's allocator.",
            "Compare only with runs that preload it too.",
        )


def torch_missing(host: View, torch: View) -> Iterator[Finding]:
    """Without torch there is nothing to measure here; builds have environments of their own."""
    reason = torch.text("unread.build")
    if reason and not torch.text("build.version"):
        yield Finding(
            "torch cannot be imported",
            "problem",
            f"import torch failed: {reason}.",
            "Install it again into this Python (pip install --force-reinstall torch).",
        )


def debug_torch(host: View, torch: View) -> Iterator[Finding]:
    """A debug build checks every access."""
    build_type = torch.text("libraries.build_type")
    if torch.flag("build.debug") or build_type.lower() == "debug":
        yield Finding(
            "debug build of torch",
            "problem",
            f"torch {torch.text('build.version')} is a debug build (BUILD_TYPE={build_type or 'unknown'}).",
            "Install a release wheel, or build with BUILD_TYPE=Release.",
        )


def mkl_on_amd(host: View, torch: View) -> Iterator[Finding]:
    """MKL picks its kernels by the maker of the processor.

    Up to 2020.0 it ran SSE code on AMD unless MKL_DEBUG_CPU_TYPE=5 forced AVX2. 2020.1 removed the variable;
    2020.2 began to add kernels for Zen, double-precision products first (pytorch/builder issue 504). In torch
    2.13, which links MKL 2024.2, a float32 product on Zen 4 runs `mkl_blas_def_sgemm_kernel_0_zen`. How that
    compares with others differs by processor and product, so the doctor measures it.
    """
    if host.text("cpu.vendor") != "AMD" or torch.text("libraries.blas") != "MKL":
        return
    version = torch.text("libraries.mkl")
    mine, other = (torch.number(f"product_flops_per_second.{name}") for name in ("torch", "numpy"))
    if mine and other:
        library = "OpenBLAS" if _numpy_has_openblas(torch) else "BLAS"
        figures = (
            f"{mine / 1e9:.0f} GFLOP/s a thread in a 512×512 float32 product, NumPy's {library} "
            f"{other / 1e9:.0f} ({other / mine:.2f} times)"
        )
        severity = "warning" if other > _FASTER * mine else "note"
        advice = (
            "Compare with a torch on OpenBLAS (conda-forge has one)" if severity == "warning" else "Leave it"
        )
    else:
        figures, severity, advice = (
            "not compared with another library here",
            "note",
            "Compare before you blame it",
        )
    yield Finding(
        "MKL on AMD",
        severity,
        f"torch multiplies through MKL {version} on an AMD processor: {figures}.",
        f"{advice}; MKL has kernels for Zen since 2020.2, MKL_DEBUG_CPU_TYPE does nothing any more, and "
        "convolutions and bfloat16 use oneDNN.",
    )


def _numpy_has_openblas(torch: View) -> bool:
    return any(pool.text("internal_api") == "openblas" for pool in torch.views("threads.pools"))


def two_openmp(host: View, torch: View) -> Iterator[Finding]:
    """Two runtimes keep a pool of threads each, which spin against each other."""
    names = sorted(
        {pool.text("prefix") for pool in torch.views("threads.pools") if pool.text("user_api") == "openmp"}
    )
    if len(names) > 1:
        yield Finding(
            "two OpenMP runtimes",
            "warning",
            f"{' and '.join(names)} are loaded together; their threads compete for the cores.",
            "Install torch and NumPy from one source (both by pip, or both by conda).",
        )


def forced_instructions(host: View, torch: View) -> Iterator[Finding]:
    """Variables that hold kernels below what the processor can do, or that no longer do anything."""
    for variable in (
        "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS",
        "MKL_CBWR",
    ):  # fmt: skip
        if host.variable(variable):
            yield Finding(
                "instruction set is forced",
                "warning",
                f"{variable}={host.variable(variable)} holds kernels to that instruction set.",
                f"Unset {variable}, or compare only with runs that set it alike.",
            )
    if host.variable("MKL_DEBUG_CPU_TYPE"):
        yield Finding(
            "variable without effect",
            "note",
            f"MKL_DEBUG_CPU_TYPE={host.variable('MKL_DEBUG_CPU_TYPE')} does nothing since MKL 2020.1.",
            "Unset it.",
        )


def precision(host: View, torch: View) -> Iterator[Finding]:
    """TF32 makes float32 products several times faster and less exact: never compare across it."""
    override = host.variable("NVIDIA_TF32_OVERRIDE")
    if override:
        yield Finding(
            "TF32 is forced",
            "warning",
            f"NVIDIA_TF32_OVERRIDE={override} overrules what torch sets for float32 products.",
            "Unset NVIDIA_TF32_OVERRIDE.",
        )
    mode = torch.text("precision.float32_matmul")
    if mode and mode != "highest":
        yield Finding(
            "reduced float32 precision",
            "note",
            f"float32 products run at precision `{mode}`, not torch's default `highest`.",
            "Compare only with runs in the same mode.",
        )
    if torch.flag("precision.deterministic"):
        yield Finding(
            "deterministic algorithms",
            "note",
            "torch.use_deterministic_algorithms is on; some ops take a slower way.",
            "Compare only with runs in the same mode.",
        )


def synchronous_launches(host: View, torch: View) -> Iterator[Finding]:
    """With blocking launches, dispatch and device time are one."""
    for variable in ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"):
        if host.variable(variable) not in ("", "0"):
            yield Finding(
                "every launch waits",
                "problem",
                f"{variable}={host.variable(variable)} makes each kernel launch wait for the kernel.",
                f"Unset {variable}.",
            )


def mps_fallback(host: View, torch: View) -> Iterator[Finding]:
    """The fallback hides that an op ran on the CPU."""
    value = host.variable("PYTORCH_ENABLE_MPS_FALLBACK")
    if value not in ("", "0"):
        yield Finding(
            "MPS falls back to the CPU",
            "problem",
            f"PYTORCH_ENABLE_MPS_FALLBACK={value}: ops that MPS lacks run unseen on the CPU.",
            "Unset PYTORCH_ENABLE_MPS_FALLBACK.",
        )


RULES: tuple[Rule, ...] = (
    translated_python, slow_python, allocator, torch_missing, debug_torch, mkl_on_amd, two_openmp,
    forced_instructions, precision, synchronous_launches, mps_fallback,
)  # fmt: skip
