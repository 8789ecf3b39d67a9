"""How long a call takes by how much data lies between two uses of the same inputs, from none to four times the cache.

What decided that a cold case has more than twice the cache between two uses, and keeps its results. All ways of a shape
are read in turns; of each the least counts, as the machine may have neighbours.
"""

import argparse
import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accel_micro.devices.base import Call, Device, QueueTooShort
from accel_micro.measure.cold import MOST_BYTES, MOST_SETS, Footprint
from accel_micro.measure.correctness import tensors_of
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.prepared import Prepared
from accel_micro.measure.rotation import rotating
from accel_micro.suite import OpBenchmark

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_BLOCK_SECONDS = 5e-3


def cold(options: argparse.Namespace) -> None:
    """A line for each cold shape: the hot time, and how many times as long with more and more input sets."""
    import torch

    from accel_micro.catalogue.loading import load
    from accel_micro.measure.sampling import opened

    with opened(options.device) as device, torch.no_grad():
        cache = device.last_level_cache()
        if cache is None:
            raise SystemExit(f"nothing tells how large the caches of {device.name} are")
        size = f"{cache.bytes / (1 << 20):.4g} MiB"
        print(f"{device.name}: cache of {size}, {cache.source}; least of {options.turns} turns")
        titles = [f"{multiple:g}×" for multiple in MULTIPLES]
        print(f"{'':<58}{'hot µs':>9}" + "".join(f"{title:>7}" for title in titles) + f"{'2× dropped':>12}")
        for cls in load(options.benchmarks):
            if re.search(options.bench, cls.op.name):
                for shape in cls.op.cold_shapes:
                    print(_line(cls, shape, device, cache.bytes, options.turns), flush=True)


def _line(cls: type[OpBenchmark], shape: str, device: Device, cache: int, turns: int) -> str:
    name = f"{cls.op.name} {shape.removesuffix(' cache=cold')}"
    with contextlib.ExitStack() as stack:
        sets = _sets(cls, shape, device, stack)
        footprint, first = next(sets)
        counts = [max(1, math.floor(multiple * cache / footprint.read_bytes) + 1) for multiple in MULTIPLES]
        if max(counts) > MOST_SETS or max(counts) * footprint.held_bytes > 2 * MOST_BYTES:
            return f"{name:<58} too many input sets: {max(counts)}"
        calls = [first, *(call for _, call in itertools.islice(sets, max(counts) - 1))]
        ways = [(1, first), *((count, rotating(calls[:count])) for count in counts)]
        twice = counts[MULTIPLES.index(2.0)]
        ways.append((twice, _dropping(calls[:twice])))
        try:
            readers = [_reader(device, call, count) for count, call in ways]
        except QueueTooShort as reason:
            return f"{name:<58} {reason}"
        rounds = [[read() for read in readers] for _ in range(turns)]
    hot, *others = map(min, zip(*rounds, strict=True))
    *kept, dropped = (each / hot for each in others)
    return f"{name:<58}{1e6 * hot:9.1f}" + "".join(f"{ratio:7.2f}" for ratio in kept) + f"{dropped:12.2f}"


def _sets(
    cls: type[OpBenchmark], shape: str, device: Device, stack: contextlib.ExitStack
) -> Iterator[tuple[Footprint, Call]]:
    """Forward calls in float32, each with inputs of its own; the footprint is that of the first."""
    import torch

    arguments, stated = cls.op.arguments(shape), cls.op.stated_work("forward", "float32", shape)
    footprint: Footprint | None = None
    while True:
        inputs = Inputs(torch.device(device.name), torch.float32, further=footprint is not None)
        prepared = Prepared.of(lambda t: cls.op.build(t, arguments, stack), inputs, backward=False)
        if footprint is None:
            outputs: Sequence[Any] = tensors_of(prepared.result(prepared.call()))
            footprint = Footprint.of(prepared, inputs, outputs, stated)
        yield footprint, prepared.call


def _dropping(calls: Sequence[Call]) -> Call:
    """As `rotating`, but each result is dropped at once."""
    turn = itertools.cycle(calls).__next__
    return lambda: turn()()


def _reader(device: Device, call: Call, count: int) -> Callable[[], float]:
    """Seconds per call of a block that begins after a whole round; by the device clock where there is one."""
    if "device" in device.clocks:
        queue = device.queue(call, count)
        calls = queue.device_calls(_BLOCK_SECONDS)
        return lambda: queue.device(calls)

    def seconds_of(number: int) -> float:
        device.synchronize()
        start = device.now()
        for _ in range(number):
            call()
        device.synchronize()
        return device.now() - start

    seconds_of(count)
    number = count * max(1, math.ceil(_BLOCK_SECONDS / max(seconds_of(count), 1e-7)))

    def read() -> float:
        seconds_of(count)
        return seconds_of(number) / number

    return read
