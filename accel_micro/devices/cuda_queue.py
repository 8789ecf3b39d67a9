"""CUDA's dispatch and device clocks.

Both are read behind a queue that a spinning kernel keeps busy. Dispatch: the host enqueues calls and never waits.
Device: a CUDA graph of some calls, replayed between two events, so that no launch shows: times of it repeat best. But
they are not quite those of the calls. From kernel to kernel the device needs up to a microsecond (measured on an H100:
3 to 6 % of calls whose kernels take 10 to 25 µs); the graph's results lie at other addresses (a depthwise convolution
took 0.96 of its time so); and a graph copies in another way (clones of two and four megabytes took 2.1 and 3.3 µs in a
graph, 3.6 and 4.4 µs back to back, one of 154 MB with a sum behind it 178 µs instead of 154). So replays are scaled by
what the profiler reads of the calls themselves, enqueued behind a spin, in turns with replays. For calls that cannot be
captured the profiler reads each block; events around such calls would count the gaps between kernels (8 % too much for
Adam over four large tensors, 80 % for two hundred small ones).
The event recorded behind the spin must still be pending when enqueueing ends: that proves the queue never ran dry.
"""

import math
import warnings
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from accel_micro.devices.base import Call, QueueTooShort
from accel_micro.devices.cuda_profiler import busy_seconds, kernel_seconds

if TYPE_CHECKING:
    from accel_micro.devices.cuda import Cuda

_MOST_CALLS = 500  # the launch queue holds about a thousand
_MOST_REPLAYS = 50
_GRAPH_SECONDS = 0.5e-3
_GRAPH_MOST_CALLS = 50
_LONGEST_SPIN_SECONDS = 0.4
_BLOCKED_TIMES = 3
_RETRIES = 2
_PROFILED_CALLS = 3
_PROFILED_MOST_CALLS = 100
_NOTHING_SECONDS = 10e-6
_SHARE_READINGS = 5
_SHARE_SECONDS = 2e-3
_LEAST_SHARE = 0.2  # less, and the profiler has lost events


class CudaQueue:
    """Reads one call. See `base.Queue`. Must be used inside the device's session."""

    def __init__(self, device: "Cuda", call: Call, period: int = 1) -> None:
        import torch

        self._torch = torch
        self._call = call
        self._period = period
        self._hertz = device.probe_device_speed() or device.spin_hertz()
        self._enqueue_seconds = 1e-3  # last known host seconds to enqueue one block; the spin outlasts it
        self._fitting: tuple[int, float] | QueueTooShort | None = None
        self._graph: Any = None
        self._graph_calls = 1
        self._replays = 1  # as many as are known to fit the queue
        self._graph_prepared = False
        self._device_seconds: float | None = None
        self.device_flags: tuple[tuple[str, str], ...] = ()

    def dispatch_calls(self) -> int:
        return self._longest_block()[0]

    def dispatch(self, calls: int) -> float:
        # The first third is not counted: the first calls after a wait are slower, and throughput's slope drops them.
        skipped = calls // 3
        third = 0.0

        def enqueue(count: int) -> None:
            nonlocal third
            start = perf_counter()
            self._repeat(skipped)
            third = perf_counter() - start
            self._repeat(count - skipped)

        host_seconds, _ = self._again_if_too_short(enqueue, calls)
        return (host_seconds - third) / (calls - skipped)

    def device_at_most(self) -> float:
        return self._longest_block()[1]

    def device_calls(self, block_seconds: float) -> int:
        if not self._graph_prepared:
            self._prepare_graph()
        if not self._device_seconds:
            raise QueueTooShort("the call launches no kernel")
        per_call = self._device_seconds
        if self._graph is None:
            return self._profiled_calls(block_seconds)
        replays = max(1, min(_MOST_REPLAYS, round(block_seconds / (per_call * self._graph_calls))))
        while True:  # a graph of many nodes takes more of the queue than a kernel does
            try:
                self._behind_spin(self._replay, replays)
            except QueueTooShort:
                if replays == 1:
                    raise
                replays //= 2
            else:
                self._replays = replays
                return replays * self._graph_calls

    def device(self, calls: int) -> float:
        if self._graph is not None:
            _, device_seconds = self._again_if_too_short(self._replay, calls // self._graph_calls)
            return device_seconds / calls
        return self._by_profiler(calls)

    def _by_profiler(self, calls: int) -> float:
        """Behind a spin where that many calls fit the queue: copies that start on an idle device take longer."""
        fitting = 0 if isinstance(self._fitting, QueueTooShort) or not self._fitting else self._fitting[0]
        if calls > fitting:
            return kernel_seconds(self._call, calls)

        def behind_spin(count: int) -> None:
            # Launches are slower while a profiler looks on; a spin that ends too soon costs little here.
            self._torch.cuda._sleep(int((4 * self._enqueue_seconds + 1e-3) * self._hertz))
            self._repeat(count)

        return busy_seconds(behind_spin, calls)

    def busy_share(self) -> float | None:
        if self._graph is None or not self._device_seconds:
            return 1.0  # the profiler has read each block
        wanted = max(1, round(_SHARE_SECONDS / (self._device_seconds * self._graph_calls)))
        replays = min(wanted, self._replays)
        shares = []
        try:
            for _ in range(_SHARE_READINGS):  # in turns, since the clock of a hot GPU drifts
                busy = self._by_profiler(self._profiled_calls())
                _, elapsed = self._again_if_too_short(self._replay, replays)
                shares.append(busy * replays * self._graph_calls / elapsed)
        except RuntimeError:  # another profiler holds CUPTI, or this user may not use it
            return None
        share = median(shares)
        return share if share > _LEAST_SHARE else None

    def _profiled_calls(self, block_seconds: float = _SHARE_SECONDS) -> int:
        """Calls that one reading of the profiler has: as many as fit behind a spin, if that is enough of them."""
        wanted = max(_PROFILED_CALLS, round(block_seconds / (self._device_seconds or 1.0)))
        fitting = self._fitting[0] if isinstance(self._fitting, tuple) else 0
        wanted = min(_PROFILED_MOST_CALLS, wanted)
        return min(wanted, fitting) if fitting >= _PROFILED_CALLS else wanted

    def _repeat(self, calls: int) -> None:
        call = self._call
        for _ in range(calls):
            call()

    def _replay(self, replays: int) -> None:
        for _ in range(replays):
            self._graph.replay()

    def _behind_spin(self, enqueue: Any, count: int) -> tuple[float, float]:
        """Host seconds to enqueue and device seconds to run `enqueue(count)`, neither waiting for the other.

        Raises:
            QueueTooShort: the spin ended before enqueueing did, however long it was made.
        """
        torch = self._torch
        spin_seconds = 2 * self._enqueue_seconds + 1e-3
        blocked = 0
        while True:
            before, behind, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
            torch.cuda.synchronize()
            cycles = int(spin_seconds * self._hertz)
            before.record()
            torch.cuda._sleep(cycles)
            behind.record()
            start = perf_counter()
            enqueue(count)
            host_seconds = perf_counter() - start
            end.record()
            pending = not behind.query()
            torch.cuda.synchronize()
            spun_seconds = before.elapsed_time(behind) * 1e-3
            # Whatever a host that has no core for a while does to this reading makes the clock look slower than it is,
            # and a spin by it too short; so the fastest reading counts.
            self._hertz = max(self._hertz, cycles / max(spun_seconds, 1e-6))
            if pending:
                self._enqueue_seconds = host_seconds
                return host_seconds, behind.elapsed_time(end) * 1e-3
            # A host that is merely slow, or had no core for a while, needs a longer spin. One that is blocked by a full
            # queue, or by a call that synchronises, goes on just when the spin ends, however long that is.
            blocked = blocked + 1 if host_seconds < 1.2 * spun_seconds + 1e-3 else 0
            if blocked >= _BLOCKED_TIMES or spin_seconds >= _LONGEST_SPIN_SECONDS:
                raise QueueTooShort(f"{count} calls do not fit the launch queue, or the call synchronises")
            spin_seconds = min(_LONGEST_SPIN_SECONDS, 3 * max(spin_seconds, host_seconds))

    def _again_if_too_short(self, enqueue: Any, count: int) -> tuple[float, float]:
        """`_behind_spin` of a count that fitted before: a host that was busy meanwhile must not cost a clock."""
        for _ in range(_RETRIES):
            try:
                return self._behind_spin(enqueue, count)
            except QueueTooShort:
                continue
        return self._behind_spin(enqueue, count)

    def _longest_block(self) -> tuple[int, float]:
        """The most calls up to the limit that fit the launch queue, and their device seconds per call.

        Raises:
            QueueTooShort: not even one fits; looked for once.
        """
        if self._fitting is None:
            try:
                self._fitting = self._find_longest_block()
            except QueueTooShort as reason:
                self._fitting = reason
        if isinstance(self._fitting, QueueTooShort):
            raise self._fitting
        return self._fitting

    def _find_longest_block(self) -> tuple[int, float]:
        calls = 1
        fitting: tuple[int, float] | None = None
        while True:
            try:
                host_seconds, device_seconds = self._behind_spin(self._repeat, calls)
            except QueueTooShort:
                if fitting is not None:
                    return fitting
                raise QueueTooShort(
                    "one call alone does not fit the launch queue, or it synchronises"
                ) from None
            fitting = calls, device_seconds / calls
            if calls >= _MOST_CALLS or max(host_seconds, device_seconds) > 5e-3:
                return fitting
            calls = min(_MOST_CALLS, 2 * calls)

    def _prepare_graph(self) -> None:
        """Capture the call, or else find that the profiler must sum its kernels."""
        torch = self._torch
        self._graph_prepared = True
        try:
            _, by_events = self._longest_block()
        except QueueTooShort:
            by_events = 1e-3
        count = max(1, min(_GRAPH_MOST_CALLS, round(_GRAPH_SECONDS / max(by_events, 1e-7))))
        # Whole rounds, since a part of one would read the same inputs again, and find them in the cache.
        count = self._period * math.ceil(count / self._period)
        if count > _MOST_CALLS:
            self._without_graph(f"a graph does not hold a round of {self._period} input sets")
            return
        graph = torch.cuda.CUDAGraph()
        try:
            with warnings.catch_warnings(), torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                warnings.simplefilter("ignore")  # an empty graph is warned of; the time tells
                self._repeat(count)
            graph.replay()
            torch.cuda.synchronize()
        except Exception as error:  # whatever the op raises under capture, the fallback is the same
            torch.cuda.synchronize()
            self._without_graph(str(error).strip().split("\n")[0][:120])
            return
        self._graph, self._graph_calls = graph, count
        replays = 2 if self._period == 1 else 1
        try:
            _, device_seconds = self._behind_spin(self._replay, replays)
        except QueueTooShort:
            if self._period == 1:
                raise
            self._graph, self._graph_calls = None, 1
            self._without_graph(f"a graph of {count} calls does not fit the launch queue")
            return
        per_call = device_seconds / (replays * count)
        # Two replays of an empty graph take a microsecond or two, and so do the events around them.
        self._device_seconds = (
            per_call if device_seconds > _NOTHING_SECONDS or kernel_seconds(self._call, 1) else 0.0
        )

    def _without_graph(self, why: str) -> None:
        """The profiler sums the kernels of each block."""
        self._device_seconds = kernel_seconds(self._call, _PROFILED_CALLS)
        self.device_flags = (("by profiler", why),)
