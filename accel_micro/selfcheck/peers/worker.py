"""A fresh interpreter that imports torch and forks a process for each reading.

`python -m accel_micro.selfcheck.peers.worker`. A line of JSON in (`op`, `repeats`, `method`, `device`), a line out
(`samples`, seconds per call, and `seconds` that the process took; or `failure`). An op is called `repeats` times in a
call, so that two more in a hundred are 2 % more work of the very same kind.
"""

import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

OPS: Final = ("mm 64×64", "softmax 64×256", "conv2d 8×8")
"""What is timed: small real ops, bound by overhead, by memory, and by arithmetic."""

BASE: Final = 100
"""Calls of the op in a call. Two more are +2 %."""

OURS, ASV, TIMER, DO_BENCH = "ours", "asv time_", "torch.utils.benchmark", "triton do_bench"
OURS_BUDGET_SECONDS: Final = 0.3


def build(op: str, device: str) -> Callable[[], Any]:
    """The op as a call, its inputs from a fixed seed.

    Raises:
        ValueError: there is none of that name.
    """
    import torch

    torch.manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(shape).to(device)

    if op == OPS[0]:
        a, b = normal(64, 64), normal(64, 64)
        return lambda: torch.mm(a, b)
    if op == OPS[1]:
        x = normal(64, 256)
        return lambda: torch.softmax(x, dim=1)
    if op == OPS[2]:
        image, weight = normal(1, 8, 8, 8), normal(8, 8, 3, 3)
        return lambda: torch.nn.functional.conv2d(image, weight, padding=1)
    raise ValueError(f"no op {op!r}")


def repeated(call: Callable[[], Any], repeats: int) -> Callable[[], Any]:
    """A call that makes so many of them."""

    def many() -> Any:
        for _ in range(repeats):
            last = call()
        return last

    return many


def read(op: str, repeats: int, method: str, device: str = "cpu") -> list[float]:
    """Samples of one process, seconds per call, as the method takes them."""
    import torch

    from accel_micro.measure.sampling import Sampler, opened
    from accel_micro.selfcheck.peers import stopwatches

    with torch.inference_mode(), opened(device) as open_device:
        call = repeated(build(op, device), repeats)
        call()
        if method == OURS:
            clock = "device" if "device" in open_device.clocks else "throughput"
            return list(Sampler(open_device, call, OURS_BUDGET_SECONDS).read(clock).samples)
        if method == ASV:
            return stopwatches.asv_process(call)[0]
        if method == TIMER:
            return [stopwatches.by_timer(call)]
        if method == DO_BENCH:
            return [stopwatches.by_do_bench(call)]
        raise ValueError(f"no method {method!r}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is written for a line."""
    start = perf_counter()
    try:
        samples = read(**request)
    except Exception as error:  # one reading must not end the rest
        return {"failure": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return {"samples": samples, "seconds": perf_counter() - start}


def main() -> None:
    """Answer line by line until the input ends."""
    import torch

    import accel_micro.selfcheck.peers.stopwatches  # noqa: F401 - imported once, not in each process
    from accel_micro.measure import sampling  # noqa: F401

    torch.set_num_threads(1)  # a forked process has no pool of threads
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if not hasattr(os, "fork"):
            print(json.dumps(answer(request)), flush=True)
            continue
        child = os.fork()
        if child == 0:
            code = 1
            try:
                print(json.dumps(answer(request)), flush=True)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status != 0:
            print(json.dumps({"failure": f"the process ended with status {status}"}), flush=True)


if __name__ == "__main__":
    main()
