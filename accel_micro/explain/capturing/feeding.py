"""What a loader costs: alone, the transfer of its batches, and steps that are fed by it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median
from time import perf_counter
from typing import Any, Final

import torch

from accel_micro.explain.capturing.target import WrongModel, changed, imported
from accel_micro.models.model import Batch, Model

_BATCHES: Final = 40
_SECONDS: Final = 4.0
_SKIPPED: Final = 2


def feed(
    model: Model, name: str, device: Any, training: bool, switches: Mapping[str, str], size: int
) -> dict[str, Any]:
    """Seconds a batch, as `capture.Fed` has them.

    Args:
        name: `package.module:function`, which returns an iterable of (inputs, target) or of `Batch`, such as a
            `torch.utils.data.DataLoader`.
        size: examples in the batch of the step that is explained.

    Raises:
        WrongModel: it gives fewer than four batches, or batches of another size.
    """
    make = imported(name)
    loader: Iterable[Any] = make()
    batches: list[Batch] = []
    loading: list[float] = []
    for seconds, batch in _timed(loader):
        if not loading and (found := _examples(model, batch, size)) not in (None, size):
            raise WrongModel(f"the loader {name} gives batches of {found}, and the step has one of {size}")
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
        **(taken_apart(loader) or {}),
    }


def _examples(model: Model, batch: Batch, size: int) -> int | None:
    """Examples in a loader's batch, by the one dimension that grows with those of the model's own; None: none does."""
    drawn = (torch.Generator().manual_seed(model.seed) for _ in range(2))
    one, two = (model.make_batch(n * size, model.dtype, g).inputs.shape for n, g in enumerate(drawn, start=1))
    grows = [place for place, (some, more) in enumerate(zip(one, two, strict=False)) if some != more]
    if len(grows) != 1 or batch.inputs.dim() != len(one):
        return None
    return int(batch.inputs.shape[grows[0]])


def taken_apart(loader: Any) -> dict[str, Any] | None:
    """Seconds of a batch for examples, their transform and making a batch of them, in this process without workers.

    None: the loader is not torch's over a dataset with places. A transform is the dataset's `transform`, as
    torchvision's have it; without one its seconds are zero, since a dataset's own work cannot be told from reading.
    """
    dataset: Any = getattr(loader, "dataset", None)
    batches = getattr(loader, "batch_sampler", None)
    collate = getattr(loader, "collate_fn", None)
    if batches is None or collate is None or not hasattr(dataset, "__getitem__"):
        return None
    owner = dataset
    while not callable(getattr(owner, "transform", None)) and hasattr(owner, "dataset"):
        owner = owner.dataset  # a Subset of it
    transform = getattr(owner, "transform", None)
    stopwatch = _Stopwatch(transform) if callable(transform) else None
    found: dict[str, list[float]] = {"fetch_seconds": [], "transform_seconds": [], "collate_seconds": []}
    try:
        if stopwatch is not None:
            owner.transform = stopwatch
        begun = perf_counter()
        for number, places in zip(range(_BATCHES), batches, strict=False):
            start, spent = perf_counter(), stopwatch.seconds if stopwatch else 0.0
            examples = [dataset[place] for place in places]
            fetched = perf_counter()
            collate(examples)
            now, transformed = perf_counter(), (stopwatch.seconds if stopwatch else 0.0) - spent
            found["fetch_seconds"].append(fetched - start - transformed)
            found["transform_seconds"].append(transformed)
            found["collate_seconds"].append(now - fetched)
            if now - begun > _SECONDS and number >= _SKIPPED:
                break
    finally:
        if stopwatch is not None:
            owner.transform = transform
    if len(found["fetch_seconds"]) <= _SKIPPED:
        return None
    named = "" if stopwatch is None else getattr(transform, "__name__", type(transform).__name__)
    return {name: median(seconds[_SKIPPED:]) for name, seconds in found.items()} | {"transform": named}


class _Stopwatch:
    """Adds up what calls of a function take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        start = perf_counter()
        try:
            return self._function(*arguments)
        finally:
            self.seconds += perf_counter() - start


def _timed(loader: Iterable[Any]) -> Iterator[tuple[float, Batch]]:
    """Batches with the seconds until each was there; some dozens, or as many as come in some seconds."""
    begun = start = perf_counter()
    for number, value in enumerate(loader):
        now = perf_counter()
        yield now - start, value if isinstance(value, Batch) else Batch(*value)
        start = perf_counter()
        if number + 1 >= _BATCHES or (start - begun > _SECONDS and number > _SKIPPED + 2):
            return
