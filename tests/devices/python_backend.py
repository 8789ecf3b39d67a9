"""A backend outside torch that is real to torch: registered from Python, with tensors of its own and two devices.

Its work is queued on a virtual clock and done on the CPU's memory. Registering cannot be undone, so this runs as a
program: it prints what the device named on the command line measured, as JSON.

    python -m tests.devices.python_backend npu:1
"""

import json
import sys
from typing import Any

import torch
from torch.utils import backend_registration

from tests.fake import Clock, OnPaper

NAME = "npu"
HOST, DEVICE, SYNCHRONISE = 10e-6, 40e-6, 1e-3
COUNT = 2

clock = Clock()
busy_until = [0.0] * COUNT
current = 0
log: list[str] = []


class Module:
    """What `torch.npu` is."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        pass

    def current_device(self) -> int:
        return current

    def device_count(self) -> int:
        return COUNT

    def get_device_name(self, index: int) -> str:
        return f"Paper NPU {index}"

    def mem_get_info(self, index: int) -> tuple[int, int]:
        return 700 + index, 1000


class Offered:
    """`torch.accelerator`, of which torch implements no stream or device for backends made in Python."""

    def is_available(self) -> bool:
        return True

    def current_accelerator(self) -> torch.device:
        return torch.device(NAME)

    def device_count(self) -> int:
        return COUNT

    def current_device_index(self) -> int:
        return current

    def set_device_index(self, index: int) -> None:
        global current
        current = index
        log.append(f"set {index}")

    def synchronize(self, index: int) -> None:
        log.append(f"synchronise {index}")
        clock.seconds = max(clock.seconds, busy_until[index])
        clock.work(SYNCHRONISE)


class Tensor(torch.Tensor):
    """A tensor that torch takes for one of this backend; its values lie in `values`."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor, device: torch.device) -> "Tensor":
        made = torch.Tensor._make_wrapper_subclass(cls, values.size(), dtype=values.dtype, device=device)  # type: ignore[attr-defined]
        made.values = values
        return made  # type: ignore[no-any-return]

    def __init__(self, values: torch.Tensor, device: torch.device) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mine = next(arg for arg in args if isinstance(arg, Tensor))
        bare = [arg.values if isinstance(arg, Tensor) else arg for arg in args]
        clock.work(HOST)
        index = mine.device.index or 0
        log.append(f"call {index}")
        busy_until[index] = max(clock.seconds, busy_until[index]) + DEVICE
        return Tensor(func(*bare, **(kwargs or {})), mine.device)


def main(name: str) -> None:
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    torch.accelerator = Offered()  # type: ignore[assignment]
    from accel_micro import devices
    from accel_micro.devices.accelerator import Accelerator
    from accel_micro.measure.sampling import Sampler

    class OnThis(OnPaper, Accelerator):
        pass

    found = devices.get(name)
    assert type(found) is Accelerator
    device = OnThis(name)
    device.clock = clock
    where = torch.device(name)
    a, b = (Tensor(torch.randn(4, 4), where) for _ in range(2))
    with device.session():
        during = current
        sampler = Sampler(device, lambda: torch.mm(a, b), 0.1)
        log.clear()
        sampler.first_call()
        first = list(log)
        processes, unreadable = sampler.read_together(("throughput", "latency"), 5)
    facts = {
        "kind": torch.mm(a, b).device.type,
        "unavailable": found.unavailable(),
        "beyond": devices.get(f"{NAME}:7").unavailable(),
        "clocks": list(found.clocks),
        "seconds": {clock: process.median_seconds for clock, process in processes.items()},
        "unreadable": unreadable,
        "first": first,
        "devices": sorted({int(each.split()[1]) for each in log if not each.startswith("set")}),
        "during": during,
        "after": current,
        "describe": found.describe(),
        "card": found.card(),
        "free": found.free_memory_bytes(),
        "peak_memory": found.peak_memory_bytes(lambda: None),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1])
