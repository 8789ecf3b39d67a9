"""Several ranks for one case: the process that is timed is rank 0, the others do the same calls until it leaves.

    def all_gather(t, n):
        return together(t, _gather, n, expected=torch.cat)

A rank is a process on this machine: two with gloo on CPUs, one for each GPU with NCCL. The others run `_gather` too, on
numbers of their own, and are ended with the case. One whose rank 0 has died ends by itself.
"""

import contextlib
import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torch

from accel_micro.devices import chosen
from accel_micro.measure.inputs import Inputs, Timed

RANKS_ON_CPU: Final = 2
_TIMEOUT: Final = timedelta(seconds=60)
_DRAWN_A_RANK: Final = 1000
"""Tensors that a rank may draw before it draws those of the next."""

Step = Callable[[torch.Tensor, int], tuple[Callable[[], Any], torch.Tensor]]
"""From a rank's numbers and the number of ranks to the call, and the tensor that it leaves its result in."""


def world_size(device: torch.device) -> int:
    """Ranks that a case on such a device has.

    Raises:
        NotImplementedError: fewer than two can run here; the message says why.
    """
    import torch.distributed as dist

    if not dist.is_available():
        raise NotImplementedError("this torch build has no torch.distributed")
    if device.type == "cpu":
        if not dist.is_gloo_available():
            raise NotImplementedError("this torch build has no gloo")
        return RANKS_ON_CPU
    if device.type != "cuda":
        raise NotImplementedError(f"collectives are not timed on {device.type}: no backend for it was tried")
    if not dist.is_nccl_available():
        raise NotImplementedError("this torch build has no NCCL")
    if ":" in chosen.name_of("cuda"):
        raise NotImplementedError(
            f"collectives use all GPUs, and this run was given {chosen.name_of('cuda')} alone"
        )
    count = torch.cuda.device_count()
    if count < 2:
        raise NotImplementedError("collectives between GPUs need two of them, and this process sees one")
    return count


def together(
    t: Inputs, step: Step, *shape: int, expected: Callable[[Sequence[torch.Tensor]], torch.Tensor]
) -> Timed:
    """A call that all ranks make together, each with a tensor of that shape.

    Args:
        step: a function of a module, since the other ranks import it by name.
        expected: what rank 0 gets, from the numbers of all ranks.

    Raises:
        NotImplementedError: see `world_size`.
    """
    size = world_size(t.device)
    mine = t(*shape)
    if t.reference:
        others = [_numbers(t, rank, shape) for rank in range(1, size)]
        return Timed(lambda: None, lambda: expected([mine, *others]))
    t.within(_joined, t.device, t.dtype, step, shape, size)
    call, result = step(mine, size)
    return Timed(call, lambda: result)


def restarting(
    own: torch.Tensor, call: Callable[[torch.Tensor], Any]
) -> tuple[Callable[[], None], torch.Tensor]:
    """A call that changes its tensor, with what it changes copied anew every 64 calls, before sums overflow."""
    changed, count = own.clone(), itertools.count()

    def step() -> None:
        if next(count) % 64 == 0:
            changed.copy_(own)
        call(changed)

    return step, changed


def _numbers(t: Inputs, rank: int, shape: Sequence[int]) -> torch.Tensor:
    """What another rank draws."""
    theirs = Inputs(t.device, t.dtype, reference=t.reference, reference_device=t.reference_device)
    theirs._drawn = _DRAWN_A_RANK * rank
    return theirs(*shape)


@contextlib.contextmanager
def _joined(
    device: torch.device, dtype: torch.dtype, step: Step, shape: Sequence[int], size: int
) -> Iterator[None]:
    """Inside, this process is rank 0, and the others make the step's call over and over."""
    import torch.distributed as dist

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory(prefix="accel_micro_ranks_") as folder, contextlib.ExitStack() as stack:
        task = {
            "meeting": str(Path(folder) / "meeting"),
            "device": device.type,
            "dtype": str(dtype).removeprefix("torch."),
            "step": f"{step.__module__}:{step.__name__}",
            "shape": list(shape),
            "size": size,
            "parent": os.getpid(),
        }
        for rank in range(1, size):
            command = [sys.executable, "-m", "accel_micro.measure.ranks", json.dumps({**task, "rank": rank})]
            stack.callback(_end, subprocess.Popen(command, env=environment))
        _meet(task["meeting"], device, 0, size)
        try:
            yield
        finally:
            stack.close()  # before the group: the others are in the middle of a call
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _meet(path: Any, device: torch.device, rank: int, size: int) -> None:
    import torch.distributed as dist

    loopback = "lo" if sys.platform == "linux" else "lo0"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)  # all ranks are on this machine
    backend = "gloo" if device.type == "cpu" else "nccl"
    dist.init_process_group(
        backend, init_method=f"file://{path}", rank=rank, world_size=size, timeout=_TIMEOUT
    )


def _follow(task: dict[str, Any]) -> None:
    """The life of another rank."""
    threading.Thread(target=_leave_with, args=(task["parent"],), daemon=True).start()
    rank, size = task["rank"], task["size"]
    device = torch.device(task["device"]) if task["device"] == "cpu" else torch.device(task["device"], rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    module, _, name = task["step"].partition(":")
    step: Step = getattr(importlib.import_module(module), name)
    numbers = _numbers(Inputs(device, getattr(torch, task["dtype"])), rank, task["shape"])
    _meet(task["meeting"], device, rank, size)
    call, _ = step(numbers, size)
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # the others have left
        while True:
            call()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    _follow(json.loads(sys.argv[1]))
