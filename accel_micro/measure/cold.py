"""Inputs that no cache holds: so many sets of them that more than twice the cache lies between two uses of one.

A loop over one set finds it in the cache, where it fits; a network seldom does, since other ops ran in between. So a
cold case has k sets with the same values in memory of their own, and each call takes the next. Their results are kept
as long: a result that is dropped at once leaves its memory, still in the cache, to the next call. Of a set only what a
call reads or overwrites counts; rows of a table that no index names lie in no cache's way.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from accel_micro.devices.base import Device
from accel_micro.devices.tensors import storage_address
from accel_micro.measure.counting import bytes_of, moved_by_backward
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.prepared import Prepared
from accel_micro.measure.records import Cold

TIMES_CACHE: Final = 2.0
"""More than that much of the cache lies between two uses: of a smaller set a cache that does not evict the least
recently used keeps a part."""

MOST_SETS: Final = 4096
"""To make more takes seconds, and of Python itself less and less stays in the cache."""

MOST_BYTES: Final = 4 << 30
"""To draw more takes a CPU ten seconds."""

_SHARE_OF_FREE_MEMORY: Final = 0.5


class NotCold(RuntimeError):
    """The inputs cannot be kept out of the cache here; the message says why."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of one input set: what a call reads or overwrites of it, and all that is held for it, results included."""

    read_bytes: float
    held_bytes: float

    @classmethod
    def of(
        cls, prepared: Prepared, inputs: Inputs, outputs: Sequence[Any], stated: Mapping[str, float]
    ) -> "Footprint":
        """That of the set with which a call was prepared and made its first outputs.

        Args:
            stated: `bytes` where the op states what a call reads and writes.
        """
        if prepared.forward is not None:
            read, _ = moved_by_backward(prepared, outputs)
            held = [*inputs.made, *read, *prepared.upstream, *prepared.outputs]
            return cls(bytes_of(read), bytes_of(held) + 2 * bytes_of(outputs))
        # In whole, since views of one input are one: every second column of a matrix is in each of its cache lines.
        own = {storage_address(tensor): tensor for tensor in inputs.made}
        made = [tensor for tensor in outputs if storage_address(tensor) not in own]
        all_of_it, written = bytes_of([*own.values()]), bytes_of(made)
        read_bytes = all_of_it if "bytes" not in stated else min(all_of_it, stated["bytes"] - written)
        # Twice the results: a graph of CUDA's keeps its own.
        return cls(max(0.0, read_bytes), all_of_it + 2 * written)


def plan(footprint: Footprint, device: Device) -> Cold:
    """How many input sets of that footprint exceed twice the cache of a device.

    Raises:
        NotCold: nothing is known of the cache, or that many sets do not fit here.
    """
    cache = device.last_level_cache()
    if cache is None:
        raise NotCold(
            f"nothing tells how large the caches of {device.name} are, so no inputs can be called cold"
        )
    if footprint.read_bytes < 1:
        raise NotCold("a call reads nothing of its inputs, so that they are cold makes no difference")
    sets = max(2, math.floor(TIMES_CACHE * cache.bytes / footprint.read_bytes) + 1)
    needed = f"to exceed {TIMES_CACHE:g} × {_binary(cache.bytes)} of cache takes {sets} input sets"
    if sets > MOST_SETS:
        raise NotCold(f"{needed}, and {MOST_SETS} are the most: it would need a larger shape")
    free = device.free_memory_bytes()
    most = MOST_BYTES if free is None else min(MOST_BYTES, _SHARE_OF_FREE_MEMORY * free)
    if sets * footprint.held_bytes > most:
        together = _binary(sets * footprint.held_bytes)
        raise NotCold(f"{needed}, {together} with their results, and {_binary(most)} are the most here")
    return Cold(sets, footprint.read_bytes, cache.bytes, cache.source, cache.assumed)


def _binary(size: float) -> str:
    """`48.8 KiB`, `32 MiB`, `4 GiB`: caches come in powers of two."""
    power, unit = next(
        (p, unit) for p, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if size >= 1 << p or p == 10
    )
    return f"{size / (1 << power):.3g} {unit}"
