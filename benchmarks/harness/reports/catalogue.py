"""The twenty public reports, in order."""

from typing import Final

from benchmarks.harness.reports.row import Report


def _report(number: int, issues: str, said: str) -> Report:
    """Issues as `owner/repository#number`, separated by blanks; they are shown without the owner."""
    addresses = {}
    for issue in issues.split():
        repository, _, digits = issue.partition("#")
        addresses[f"{repository.rpartition('/')[2]}#{digits}"] = (
            f"https://github.com/{repository}/issues/{digits}"
        )
    return Report(number, addresses, said)


REPORTS: Final = {
    report.number: report
    for report in (
        _report(1, "TristanBilot/mlx-benchmark#21", "CUDA not synchronised: a product in 0.03 ms, 1.36 in truth"),
        _report(2, "mag-/gpu_benchmark#3", "17 PFLOP/s on an M2 Ultra"),
        _report(3, "pytorch/pytorch#152199", "22.8 or 245 µs on MPS, by whether the timer synchronises"),
        _report(
            4,
            "pytorch/pytorch#162872 pytorch/pytorch#193578",
            "MPS: waiting for an event and then reading it never returns",
        ),
        _report(5, "pytorch/pytorch#196395", "events of MPS are jittery and run backwards"),
        _report(6, "pytorch/pytorch#124056", "4.5 ms on a busy MPS, some 15 ms after sleeps"),
        _report(7, "pytorch/pytorch#148219", "MPS: 21 µs for the root of one number, 20.7 of them dispatch"),
        _report(8, "scverse/scvi-tools#3981", "the fallback of MPS hides that ops run on the CPU"),
        _report(9, "pytorch/xla#6464", "a product is there at once"),
        _report(10, "pytorch/xla#2288", "100 products, executed only one time"),
        _report(11, "pytorch/xla#8858", "a sync that does not wait gives the time of tracing"),
        _report(12, "pytorch/xla#1368", "compiles again in each step"),
        _report(13, "triton-lang/triton#2306", "25 ms of warm-up: 11.23 ms where it is 8.79"),
        _report(
            14,
            "triton-lang/triton#10149",
            "256³: 5.5 TFLOP/s with a flushed cache and launches, 15 from a graph without a flush",
        ),
        _report(15, "NVIDIA/nvbench#316", "the same build against itself: many SLOW and FAST"),
        _report(16, "NVIDIA/nvbench#231", "samples of a throttled GPU are dropped, until none is left"),
        _report(17, "flashinfer-ai/flashinfer#2899", "the clock falls from 1965 to 1580 MHz within 100 calls: −15 %"),
        _report(18, "NVIDIA/cutlass#2004", "326 or 305 TFLOP/s on an H100, by the bits of the input"),
        _report(19, "ROCm/rocBLAS#1486", "ones are multiplied faster than random numbers"),
        _report(
            20,
            "pytorch/torchdynamo#224 pytorch/pytorch#119000 pytorch/pytorch#118349",
            "the default of TF32 changed, looked like a regression and cost days",
        ),
    )
}  # fmt: skip
