"""Events of torch's profiler, on paper."""

from dataclasses import dataclass
from typing import Any

from torch.autograd import DeviceType


@dataclass
class Event:
    """As Kineto gives them.

    Attributes:
        number: of an event of the host its own, of one of the device that of its launch. link: of the latter, the
            number of the host's innermost event around that.
    """

    of: str
    start: int
    length: int
    kind: str = "kernel"
    device: Any = DeviceType.CUDA
    number: int = 0
    link: int = 0
    thread: int = 0

    def name(self) -> str:
        return self.of

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.length

    def activity_type(self) -> str:
        return self.kind

    def device_type(self) -> Any:
        return self.device

    def correlation_id(self) -> int:
        return self.number

    def linked_correlation_id(self) -> int:
        return self.link

    def start_thread_id(self) -> int:
        return self.thread
