"""What a loader costs: alone, the transfer of its batches, and steps that are fed by it."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from time import perf_counter
from typing import Any, Final

from accel_micro.explain.capturing.target import WrongModel, changed, imported
from accel_micro.models.model import Batch, Model

_BATCHES: Final = 40
_SECONDS: Final = 4.0
_SKIPPED: Final = 2


def feed(model: Model, name: str, device: Any, training: bool, switches: Mapping[str, str]) -> dict[str, Any]:
    """Seconds a batch, as `capture.Fed` has them.

    Args:
        name: `package.module:function`, which returns an iterable of (inputs, target) or of `Batch`, such as a
            `torch.utils.data.DataLoader`.

    Raises:
        WrongModel: it gives fewer than four batches.
    """
    make = imported(name)
    loader: Iterable[Any] = make()
    batches: list[Batch] = []
    loading: list[float] = []
    for seconds, batch in _timed(loader):
        loading.append(seconds)
        batches = [*batches, batch][-4:]
    if len(loading) <= _SKIPPED + 1:
        raise WrongModel(
            f"the loader {name} gives {len(loading)} batches; at least {_SKIPPED + 2} are needed"
        )
    step = model.training_step if training else model.inference_step

    def moved(batch: Batch) -> Batch:
        there = Batch(batch.inputs.to(model.device), batch.target.to(model.device))
        return changed(there, switches)

    transfers = []
    for batch in batches * 3:
        device.synchronize()
        start = perf_counter()
        moved(batch)
        device.synchronize()
        transfers.append(perf_counter() - start)
    steps = []
    device.synchronize()
    start = perf_counter()
    for _, batch in _timed(make()):  # a new one, since a generator can be used up
        device.mark_step(step(moved(batch)))
        device.synchronize()
        now = perf_counter()
        steps.append(now - start)
        start = now
    return {
        "loader_seconds": median(loading[_SKIPPED:]),
        "transfer_seconds": median(transfers),
        "step_seconds": median(steps[_SKIPPED:]),
        "prefetches": getattr(loader, "num_workers", 0) > 0,
    }


def _timed(loader: Iterable[Any]) -> Iterator[tuple[float, Batch]]:
    """Batches with the seconds until each was there; some dozens, or as many as come in some seconds."""
    begun = start = perf_counter()
    for number, value in enumerate(loader):
        now = perf_counter()
        yield now - start, value if isinstance(value, Batch) else Batch(*value)
        start = perf_counter()
        if number + 1 >= _BATCHES or (start - begun > _SECONDS and number > _SKIPPED + 2):
            return
