"""What this machine can do at most, measured once and remembered: FLOP/s by arithmetic, bytes/s by working set.

Specification sheets are not used: they give boost clocks, sparse rates and memory that no program reaches. The peak is
the best rate seen over several kernels, so that no ordinary op beats it; it serves two ends, the share of peak that
reports show and the rejection of times that cannot be true.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import sleep
from typing import Any, Final

from accel_micro.devices import full_speed, store
from accel_micro.devices.base import Call, Device, Queue, QueueTooShort, repeat
from accel_micro.devices.waiting import LITTLE_WAITING, share_taken_off

_STORE: Final = "peaks"
_PROTOCOL: Final = 1

ARITHMETICS: Final = ("float64", "float32", "tf32", "bfloat16", "float16", "int8", "float8_e4m3fn")
"""Kinds of arithmetic with a peak of their own. `tf32` is float32 data multiplied in TF32."""

_CPU_SIDES: Final = (512, 1024)
_ACCELERATOR_SIDES: Final = (2048, 4096, 8192)
_CPU_BYTES: Final = (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
_ACCELERATOR_BYTES: Final = (1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30)
_SECONDS_PER_KERNEL: Final = 0.12
_BLOCK_SECONDS: Final = 2e-3
_BLOCK_TRIES: Final = 4
_LEAST_OF_BLOCK: Final = 0.1
_OVERTIME: Final = 3.0
"""Times as long as usual a kernel is tried while its thread has waited for a core in every block."""
_MOST_TAKEN_OFF: Final = 0.5
_SLOWEST_CALL_SECONDS: Final = 0.5
_MOST_HELD: Final = 1.5
_BURSTS: Final = 4
_BURST_SECONDS: Final = 0.5e-3
"""Short for the loop that holds the power down, and long for events."""
_REST_SECONDS: Final = 0.05


def machine_key(device: Device) -> str:
    """What peaks depend on: the device's model and, of several, the card, the threads, and the torch that drives it."""
    import torch

    facts = device.describe()
    threads = f" / {torch.get_num_threads()} threads" if device.on_cpu else ""
    card = f" {device.card()}" if device.card() else ""
    return f"{device.kind} {facts.get('model', '')}{card}{threads} / torch {torch.__version__} / {_PROTOCOL}"


def flops_per_second(device: Device, arithmetic: str, *, again: bool = False) -> float | None:
    """Most FLOP/s of that arithmetic on this device; None where torch cannot multiply in it. Inside a session.

    With `again` it is measured once more, and the better of the two is remembered: a peak from a busy moment would
    call honest results impossible.

    Raises:
        ValueError: no such arithmetic.
    """
    if arithmetic not in ARITHMETICS:
        raise ValueError(f"unknown arithmetic {arithmetic!r}; known: {', '.join(ARITHMETICS)}")
    if arithmetic == "tf32" and "matmul_tf32" not in device.precision():
        arithmetic = "float32"
    rate = _remembered(
        device, f"flops {arithmetic}", lambda: _measure_flops(device, arithmetic), _better, again
    )
    return None if rate is None else float(rate)


def bytes_per_second(device: Device, working_set_bytes: float, *, again: bool = False) -> float | None:
    """Most bytes/s that can be read and written over a working set of that size, caches included. Inside a session.

    The best rate at any measured size from a quarter of the working set upwards: a smaller one sits nearer. `again`
    as above.
    """
    ladder = _remembered(device, "bytes", lambda: _measure_bytes(device), _better_ladder, again)
    if not ladder:
        return None
    sizes = {int(size): float(rate) for size, rate in ladder.items()}
    large = [rate for size, rate in sizes.items() if 4 * size >= working_set_bytes]
    return max(large) if large else sizes[max(sizes)]


def bytes_per_second_cold(device: Device, working_set_bytes: float, *, again: bool = False) -> float | None:
    """Most bytes/s over a working set that goes round and is too large for a cache. Inside a session.

    That of the power of two below its size, or of a larger one: it is measured by going round too, so whatever of it a
    cache keeps, it keeps no less of it than of the working set. A quarter of the working set, as in `bytes_per_second`,
    might fit the cache.
    """
    size = 1 << max(0, int(working_set_bytes).bit_length() - 1)
    rung = _remembered(
        device, f"bytes {size}", lambda: _measure_bytes(device, (size,)), _better_ladder, again
    )
    ladder = _remembered(device, "bytes", lambda: _measure_bytes(device), _better_ladder, again)
    rates = (float(rate) for known in (ladder, rung) for each, rate in known.items() if int(each) >= size)
    return max(rates, default=None)


def _remembered(
    device: Device, what: str, measure: Callable[[], Any], better: Callable[[Any, Any], Any], again: bool
) -> Any:
    key = machine_key(device)
    known = store.load(_STORE).get(key, {})
    if what in known and not again:
        return known[what]
    value = better(known.get(what), measure())

    def change(data: dict[str, Any]) -> None:
        data.setdefault(key, {})[what] = value

    store.update(_STORE, change)
    return value


def _better(one: float | None, other: float | None) -> float | None:
    return max((rate for rate in (one, other) if rate is not None), default=None)


def _better_ladder(one: dict[str, float] | None, other: dict[str, float]) -> dict[str, float]:
    return {size: max(rate, (one or {}).get(size, 0.0)) for size, rate in other.items()}


def _best_rate(device: Device, call: Call, amount: float) -> float | None:
    """Best of several blocks, in amount per second at the host's full speed; None when one call is too slow."""
    if device.lazy:  # the first run of a program compiles it
        repeat(device, call, 1)
    once = _seconds_of(device, call, 1)
    if once > _SLOWEST_CALL_SECONDS:  # the first may load a library or compile a kernel
        once = _seconds_of(device, call, 1)
    if once > _SLOWEST_CALL_SECONDS:
        return None
    if "device" in device.clocks:
        queue = device.queue(call)
        try:
            return amount / _shortest(device, queue)
        except QueueTooShort:
            pass
    if not device.on_cpu:
        return _rate_of_slope(device, call, amount)
    calls = max(1, round(_BLOCK_SECONDS / once))
    reference = full_speed.establish(full_speed.host_key(), device.probe_host_speed, device.now)
    clean = disturbed = 0.0
    begin = device.now()
    while device.now() < begin + _SECONDS_PER_KERNEL * (1.0 if clean else _OVERTIME) or not (
        clean or disturbed
    ):
        before = device.probe_host_speed()
        waited, own = device.waited_seconds(), device.own_waited_seconds()
        lasted = max(_seconds_of(device, call, calls), 1e-9)
        own = max(0.0, device.own_waited_seconds() - own) / lasted
        waited = max(0.0, device.waited_seconds() - waited) / lasted
        # A peak seen in a slow moment would call honest results impossible: take it to full speed, never below.
        speed = min(1.0, max(before, device.probe_host_speed()) / reference)
        rate = amount * calls / lasted / speed
        if waited <= LITTLE_WAITING:
            clean = max(clean, rate)
        else:  # as off samples, but for what a block of two milliseconds cannot tell
            disturbed = max(disturbed, rate / (1.0 - min(share_taken_off(waited, own), _MOST_TAKEN_OFF)))
    return clean or disturbed


def _rate_of_slope(device: Device, call: Call, amount: float) -> float:
    """By n and 3n calls, each the best of several blocks, since the wait at the end of a block drops out so.

    It does of throughput too: a peak with the wait in it would reject true times.
    """
    result = call()
    device.mark_step(result)
    most = max(1, (device.most_calls(result) or sys.maxsize) // 3)

    def slope() -> float:
        # A short block that was disturbed would make it absurd.
        return max((long - short) / (2 * calls), _LEAST_OF_BLOCK * long / (3 * calls))

    calls = 1
    for _ in range(_BLOCK_TRIES):  # a block of few calls is mostly the wait
        short, long = (_seconds_of(device, call, n * calls) for n in (1, 3))
        if calls * slope() >= _BLOCK_SECONDS / 2 or calls == most:
            break
        calls = min(most, math.ceil(_BLOCK_SECONDS / slope()))
    begin = device.now()
    short = long = math.inf
    while device.now() < begin + _SECONDS_PER_KERNEL or math.isinf(long):
        short = min(short, _seconds_of(device, call, calls))
        long = min(long, _seconds_of(device, call, 3 * calls))
    return amount / slope()


def _seconds_of(device: Device, call: Call, calls: int) -> float:
    device.synchronize()
    start = device.now()
    repeat(device, call, calls)
    device.synchronize()
    return device.now() - start


def _shortest(device: Device, queue: Queue) -> float:
    """Least seconds per call: of long blocks, taken to the full clock, and of bursts with a rest before each.

    A large product draws more than a card's power at once, and the driver may report the full clock without a reason
    to hold it down meanwhile.
    """
    calls = queue.device_calls(10e-3)
    blocks = min(queue.device(calls) for _ in range(5)) / _full_clock(device)
    calls = queue.device_calls(_BURST_SECONDS)
    bursts = []
    for _ in range(_BURSTS):
        sleep(_REST_SECONDS)
        bursts.append(queue.device(calls))
    return min(blocks, *bursts)


def _full_clock(device: Device) -> float:
    """Full clock ÷ that at which the last blocks ran, where the driver says that it held the clock down.

    Large products draw more power than the card may for long: one in TF32 ran on a hot H100 at 1.05 times the peak
    that the same card had been measured to reach. A peak is what the card can do before that.
    """
    if device.watch is None:
        return 1.0
    state, full = device.watch.read(), device.probe_device_speed()
    if not state.reasons or not state.hertz or not full:
        return 1.0
    return min(_MOST_HELD, max(1.0, full / state.hertz))


def _measure_flops(device: Device, arithmetic: str) -> float | None:
    import torch

    dtype = torch.float32 if arithmetic == "tf32" else getattr(torch, arithmetic)
    has_tf32 = "matmul_tf32" in device.precision()
    allow = torch.backends.cuda.matmul.allow_tf32
    best: float | None = None
    try:
        if has_tf32:
            torch.backends.cuda.matmul.allow_tf32 = arithmetic == "tf32"
        for amount, call in _multiplications(device, dtype):
            try:
                rate = _best_rate(device, call, amount)
            except (RuntimeError, NotImplementedError):
                continue
            if rate is None:
                break
            best = max(best or 0.0, rate)
    finally:
        if has_tf32:
            torch.backends.cuda.matmul.allow_tf32 = allow
    return best


def _multiplications(device: Device, dtype: Any) -> Iterator[tuple[float, Call]]:
    """Kernels that reach the peak, small first: dense products and, by another library, a 1×1 convolution."""
    import torch

    sides = _CPU_SIDES if device.on_cpu else _ACCELERATOR_SIDES
    if dtype.itemsize == 1:
        yield from _narrow_multiplications(device, dtype, sides)
        return
    for side in sides:
        a, b = (torch.randn(side, side, device=device.name).to(dtype) for _ in range(2))
        yield 2.0 * side**3, partial(torch.mm, a, b)
        yield 2.0 * side**3, partial(torch.mm, a, b.t())
    if device.on_cpu:
        x = torch.randn(8, 256, 28, 28, device=device.name).to(dtype)
        w = torch.randn(256, 256, 1, 1, device=device.name).to(dtype)
        yield 2.0 * 8 * 28 * 28 * 256 * 256, partial(torch.conv2d, x, w)


def _narrow_multiplications(device: Device, dtype: Any, sides: Sequence[int]) -> Iterator[tuple[float, Call]]:
    """Products of 8-bit numbers, of which torch has one each."""
    import torch

    one = torch.ones((), device=device.name)
    for side in sides:
        a, b = (torch.randn(side, side, device=device.name).mul(32).to(dtype) for _ in range(2))
        if dtype == torch.int8:
            yield 2.0 * side**3, partial(torch._int_mm, a, b)
            yield 2.0 * side**3, partial(torch._int_mm, a, b.t())
        else:
            yield 2.0 * side**3, partial(torch._scaled_mm, a, b.t(), one, one, out_dtype=torch.bfloat16)


def _measure_bytes(device: Device, sizes: Sequence[int] = ()) -> dict[str, float]:
    """Size in bytes of the working set (as text, for JSON) to the best rate of copying, reading and writing."""
    import torch

    free = device.free_memory_bytes() or 1 << 32
    ladder: dict[str, float] = {}
    for size in sizes or (_CPU_BYTES if device.on_cpu else _ACCELERATOR_BYTES):
        if 4 * size > free:
            break
        elements = size // 8  # two float32 operands make the working set
        x, y = (torch.randn(elements, device=device.name) for _ in range(2))
        z = torch.randn(2 * elements, device=device.name)
        kernels: tuple[tuple[float, Call], ...] = (
            (8.0 * elements, partial(x.copy_, y)),
            (12.0 * elements, partial(x.add_, y)),
            (8.0 * elements, z.sum),
            (8.0 * elements, partial(z.fill_, 1.5)),
        )
        if device.lazy:  # a copy may become another name for the same memory there
            kernels = (
                (16.0 * elements, partial(torch.mul, z, 1.5)),
                (12.0 * elements, partial(torch.add, x, y)),
                (8.0 * elements, z.sum),
            )
        rates = [_best_rate(device, call, amount) for amount, call in kernels]
        known = [rate for rate in rates if rate is not None]
        if not known:  # one call takes too long here, and those of larger sizes take longer
            break
        ladder[str(size)] = max(known)
    return ladder
