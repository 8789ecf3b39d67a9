"""Does this backend's spin spin, and its graph replay? Shown by time, where no one has shown it on such a card before.

On ROCm `torch.cuda._sleep` counts ticks of a constant clock on some cards and of the cores' clock on others (PyTorch,
aten/src/ATen/cuda/Sleep.cu), and has been said to do nothing on some. What the clocks behind a busy queue need is only
that twice the ticks take twice as long, that the host does not wait meanwhile, and that a graph of two spins takes
twice as long as a graph of one. A proof is remembered for the card and torch; a failure is not, since a busy card fails
too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from accel_micro.devices import store

if TYPE_CHECKING:
    from accel_micro.devices.cuda import Cuda

_STORE: Final = "proofs"
_TICKS: Final = 1_000_000
_LEAD_TICKS: Final = 100_000
_READINGS: Final = 5
_LOW, _HIGH = 1.8, 2.2
_SHORTEST_SECONDS: Final = 20e-6
"""A spin of a million ticks takes 0.4 ms at 2.5 GHz and 10 ms at 100 MHz; one that takes less did not spin."""


@dataclass(frozen=True)
class Proof:
    """Why the spin and the graph cannot be relied on; None where they can."""

    spin: str | None
    graph: str | None


def of(device: "Cuda") -> Proof:
    """The proof for this card, made now where it was not made before."""
    import torch

    key = f"{device.describe().get('model')} {device.card()} / torch {torch.__version__} / hip {torch.version.hip}"
    if store.load(_STORE).get(key):
        return Proof(None, None)
    with torch.cuda.device(device.index), torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        found = prove(torch.cuda, device.now)
    if found == Proof(None, None):
        store.update(_STORE, lambda data: data.update({key: True}))
    return found


def prove(cuda: Any, now: Callable[[], float]) -> Proof:
    """Try it on the current device. What is raised is a reason too.

    Args:
        cuda: `torch.cuda`. now: the host clock, seconds.
    """
    if not hasattr(cuda, "_sleep"):
        missing = "this torch has no torch.cuda._sleep to keep the queue busy with"
        return Proof(missing, missing)
    try:
        spin = _prove_spin(cuda, now)
    except RuntimeError as error:
        spin = f"torch.cuda._sleep fails: {_line(error)}"
    if spin is not None:
        return Proof(spin, spin)
    try:
        return Proof(None, _prove_graph(cuda))
    except RuntimeError as error:
        return Proof(None, f"graphs fail: {_line(error)}")


def _prove_spin(cuda: Any, now: Callable[[], float]) -> str | None:
    once = _seconds(cuda, lambda: cuda._sleep(_TICKS))
    twice = _seconds(cuda, lambda: cuda._sleep(2 * _TICKS))
    if once < _SHORTEST_SECONDS or not _LOW <= twice / once <= _HIGH:
        return (
            f"twice the ticks of torch.cuda._sleep take {twice / max(once, 1e-12):.2g} times as long here "
            f"({1e6 * once:.3g} µs for a million)"
        )
    cuda.synchronize()
    start = now()
    cuda._sleep(2 * _TICKS)
    waited = now() - start
    cuda.synchronize()
    return "the host waits while torch.cuda._sleep spins" if waited > 0.5 * twice else None


def _prove_graph(cuda: Any) -> str | None:
    times = []
    for count in (1, 2):
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, stream=cuda.current_stream()):
            for _ in range(count):
                cuda._sleep(_TICKS)
        times.append(_seconds(cuda, graph.replay))
    once, twice = times
    if once < _SHORTEST_SECONDS or not _LOW <= twice / once <= _HIGH:
        return f"a graph of two spins takes {twice / max(once, 1e-12):.2g} times as long as a graph of one"
    return None


def _seconds(cuda: Any, work: Callable[[], None]) -> float:
    """The least of some readings by events, behind a short spin: an idle device stamps before the work arrives."""
    times = []
    for _ in range(_READINGS):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda._sleep(_LEAD_TICKS)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e-3 * start.elapsed_time(end))
    return float(min(times))


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:120] or type(error).__name__
