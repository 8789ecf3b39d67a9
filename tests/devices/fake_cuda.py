"""A CUDA on paper: a host clock, one stream, a launch queue of so many kernels, and a spin. No torch, no GPU."""

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

HERTZ = 2e9
LAUNCH_SECONDS = 2e-6


class FakeCuda:
    """Time passes where the host works or waits; the device works through its queue in order.

    Attributes:
        now: host time, seconds.
        depth: launches the queue holds; the host waits when it is full.
        hiccup: called before each piece of host work; seconds for which the host has no core.
    """

    def __init__(self, depth: int = 1000) -> None:
        self.now = 0.0
        self.depth = depth
        self.free_at = 0.0
        self.hiccup: Callable[[], float] = lambda: 0.0
        self._ends: deque[float] = deque()

    def work(self, seconds: float) -> None:
        """The host works."""
        self.now += self.hiccup() + seconds

    def launch(self, seconds: float) -> None:
        """The host enqueues a kernel of that length."""
        self.work(LAUNCH_SECONDS)
        while self._ends and self._ends[0] <= self.now:
            self._ends.popleft()
        if len(self._ends) >= self.depth:
            self.now = self._ends.popleft()
        self.free_at = max(self.free_at, self.now) + seconds
        self._ends.append(self.free_at)

    def synchronize(self) -> None:
        """The host waits until the queue is empty."""
        self.now = max(self.now, self.free_at)

    def kernel(
        self, host_seconds: float, device_seconds: float, *, waits: bool = False
    ) -> Callable[[], None]:
        """A call that enqueues one kernel, and perhaps waits for it."""

        def call() -> None:
            self.work(host_seconds)
            self.launch(device_seconds)
            if waits:
                self.synchronize()

        return call

    @property
    def torch(self) -> Any:
        """What `CudaQueue` uses of torch."""
        return SimpleNamespace(
            cuda=SimpleNamespace(
                Event=lambda enable_timing: FakeEvent(self),
                synchronize=self.synchronize,
                _sleep=lambda cycles: self.launch(cycles / HERTZ),
            )
        )


class FakeEvent:
    """Stamped when the work before it is done; an idle device stamps at once."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self._at = 0.0

    def record(self) -> None:
        self._cuda.work(LAUNCH_SECONDS)
        self._at = max(self._cuda.free_at, self._cuda.now)

    def query(self) -> bool:
        return self._at <= self._cuda.now

    def synchronize(self) -> None:
        """The host waits for the stamp."""
        self._cuda.now = max(self._cuda.now, self._at)

    def elapsed_time(self, other: "FakeEvent") -> float:
        """Milliseconds."""
        return 1e3 * (other._at - self._at)
