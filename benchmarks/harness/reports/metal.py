"""MPS, on the simulated GPU of the tests: encoding is lazy, a synchronisation is dear, events stamp the host.

What it costs is made up; how it behaves is what the reports describe. No Mac has run this.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from accel_micro.measure.process import Process
from accel_micro.measure.sampling import Sampler
from accel_micro.report.units import quantity
from benchmarks.harness.reports.row import Attempt, Finding, within
from benchmarks.harness.reports.simulation import simulated_mps

_WHERE: Final = "MPS, simulated"
_BUDGET: Final = 0.5
_SAMPLES: Final = 5
_CALLS: Final = 100
_HANGS_SECONDS: Final = 1.0


def _ours(device: Any, call: Callable[[], Any]) -> tuple[dict[str, Process], Sampler]:
    sampler = Sampler(device, call, _BUDGET)
    processes, _ = sampler.read_together(("throughput", "latency", "dispatch"), _SAMPLES)
    return processes, sampler


def _block(gpu: Any, calls: int, *, wait: bool) -> float:
    """Seconds per call of a loop, the GPU waited for before, and inside the time if asked."""
    gpu.synchronize()
    start = gpu.clock.seconds
    for _ in range(calls):
        gpu.call()
    if wait:
        gpu.synchronize()
    return float((gpu.clock.seconds - start) / calls)


def with_and_without_a_sync() -> Finding:
    """Report 3: a timer that waits or not, by its version."""
    with simulated_mps() as (simulation, gpu, device, _):
        truth = simulation.ENCODE + simulation.GPU
        old, new = _block(gpu, 10, wait=False), _block(gpu, 10, wait=True)
        ours = _ours(device, gpu.call)[0]["throughput"].median_seconds
    word, right = within(ours, truth)
    return Finding(
        tried=f"a call of {quantity(truth, 's')}, {quantity(simulation.GPU, 's')} of them on the GPU; a "
        f"synchronisation costs {quantity(simulation.SYNCHRONISE, 's')}",
        naive=f"{quantity(old, 's')} by a timer that does not wait, {quantity(new, 's')} by one that does: "
        f"{new / old:.1f} times",
        ours=quantity(ours, "s"),
        does=f"{word}: its own synchronisation, whose cost drops out of the slope",
        good=right,
        figures={
            "truth_seconds": truth,
            "unwaited_seconds": old,
            "waited_seconds": new,
            "ours_seconds": ours,
        },
    )


@dataclass
class HostStamp:
    """An event as the reports describe those of MPS: a callback on the host stamps it, sooner or later.

    Attributes:
        late_seconds: how late, at most.
    """

    gpu: Any
    draw: random.Random
    late_seconds: float = 0.0
    stamp: float = 0.0

    def record(self) -> None:
        """Stamped when a callback has come round to it."""
        self.stamp = self.gpu.clock.seconds + self.draw.uniform(0, self.late_seconds)

    def elapsed_seconds(self, end: "HostStamp") -> float:
        """Seconds from here to there."""
        return end.stamp - self.stamp


class NeverReady(HostStamp):
    """Whoever waits for it waits forever."""

    def synchronize(self) -> None:
        """Does not return."""
        threading.Event().wait()


def an_event_that_is_never_ready() -> Finding:
    """Report 4. The naive harness waits in a thread that is left behind: else nothing here would ever end."""
    with simulated_mps() as (simulation, gpu, device, _):
        end = NeverReady(gpu, random.Random(4))

        def naive() -> None:
            gpu.call()
            end.record()
            end.synchronize()

        thread = threading.Thread(target=naive, daemon=True)
        thread.start()
        thread.join(_HANGS_SECONDS)
        hangs = thread.is_alive()
        truth = simulation.ENCODE + simulation.GPU
        ours = _ours(device, gpu.call)[0]["throughput"].median_seconds  # an event that is made raises there
    word, right = within(ours, truth)
    return Finding(
        tried="an event whose synchronize() never returns",
        naive=f"no time: it waits, given up after {_HANGS_SECONDS:g} s" if hangs else "DOES NOT HANG",
        ours=quantity(ours, "s"),
        does=f"{word}: the device is waited for, and no event was made",
        good=right and hangs,
        figures={"truth_seconds": truth, "ours_seconds": ours},
    )


def events_that_lie() -> Finding:
    """Report 5."""
    draw = random.Random(5)
    read = []
    with simulated_mps() as (simulation, gpu, device, _):
        for _ in range(_CALLS):
            start, end = (HostStamp(gpu, draw, 100e-6) for _ in range(2))
            start.record()
            gpu.call()
            end.record()
            gpu.synchronize()
            read.append(start.elapsed_seconds(end))
        _, sampler = _ours(device, gpu.call)
        truth = simulation.GPU
    low, high = sampler.device_interval or (0.0, 0.0)
    backwards = sum(seconds < 0 for seconds in read)
    holds = low <= truth * 1.01 and truth <= high * 1.01
    return Finding(
        tried=f"events that a callback stamps up to 100 µs late, around a call of {quantity(truth, 's')} on the GPU",
        naive=f"{1e6 * min(read):.0f} to {1e6 * max(read):.0f} µs, {backwards} of {len(read)} run backwards",
        ours=f"{quantity(low, 's')} to {quantity(high, 's')} on the GPU",
        does="the interval holds the truth; no event was made" if holds else "THE INTERVAL MISSES THE TRUTH",
        good=holds,
        figures={
            "truth_seconds": truth,
            "naive_least_seconds": min(read),
            "naive_most_seconds": max(read),
            "naive_backwards": backwards,
            "ours_low_seconds": low,
            "ours_high_seconds": high,
        },
    )


def idle_gaps() -> Finding:
    """Report 6: the GPU's clock has fallen after a pause, and comes back as it works."""
    idle_seconds, slower, ramp = 20e-3, 15.0 / 4.5, 10
    with simulated_mps() as (simulation, gpu, device, monkeypatch):
        commit, since = gpu.commit, [ramp]

        def slow_after_a_pause() -> None:
            if gpu.encoded and gpu.clock.seconds - gpu.busy_until > idle_seconds:
                since[0] = 0
            encoded, was = gpu.encoded, gpu.busy_until
            commit()
            for _ in range(encoded):
                if since[0] < ramp:
                    gpu.busy_until += (slower - 1) * simulation.GPU
                    since[0] += 1
            assert gpu.busy_until >= was

        monkeypatch.setattr(gpu, "commit", slow_after_a_pause)
        truth = simulation.ENCODE + simulation.GPU
        paused = []
        for _ in range(20):
            gpu.clock.seconds += 0.1
            start = gpu.clock.seconds
            gpu.call()
            gpu.synchronize()
            paused.append(gpu.clock.seconds - start - simulation.SYNCHRONISE)
        ours = _ours(device, gpu.call)[0]["throughput"].median_seconds
    word, right = within(ours, truth)
    read = median(paused)
    return Finding(
        tried=f"a GPU that is {slower:.1f} times as slow for {ramp} calls after a pause of "
        f"{idle_seconds * 1e3:.0f} ms; a call takes {quantity(truth, 's')}",
        naive=f"{quantity(read, 's')} after pauses of 0.1 s, without what the synchronisation costs",
        ours=quantity(ours, "s"),
        does=f"{word}: no pauses, and calls that do not count before each block",
        good=right,
        figures={"truth_seconds": truth, "naive_seconds": read, "ours_seconds": ours},
    )


def dispatch_apart() -> Finding:
    """Report 7: 20.7 µs to encode, 0.3 µs on the GPU."""
    with simulated_mps() as (simulation, gpu, device, monkeypatch):
        monkeypatch.setattr(simulation, "ENCODE", 20.7e-6)
        monkeypatch.setattr(simulation, "GPU", 0.3e-6)
        one = _block(gpu, 1000, wait=True)
        processes, sampler = _ours(device, gpu.call)
    seconds = {clock: process.median_seconds for clock, process in processes.items()}
    low, high = sampler.device_interval or (0.0, 0.0)
    word, right = within(seconds["dispatch"], 20.7e-6)
    return Finding(
        tried="a call of 21 µs, 20.7 of them to encode it",
        naive=f"one number: {quantity(one, 's')} (1000 calls and one wait)",
        ours=f"throughput {quantity(seconds['throughput'], 's')}, dispatch {quantity(seconds['dispatch'], 's')}, "
        f"on the GPU between {quantity(low, 's')} and {quantity(high, 's')}",
        does=f"dispatch is told apart, {word}",
        good=right and low <= 0.3e-6 * 1.15,
        figures={
            "naive_seconds": one,
            **{f"ours_{clock}_seconds": value for clock, value in seconds.items()},
            "ours_low_seconds": low,
            "ours_high_seconds": high,
        },
    )


def fallback_to_the_cpu() -> Finding:
    """Report 8: what the device says of itself on a Mac on paper, with the variable set."""
    import platform

    import torch

    from accel_micro.devices.mps import FALLBACK

    with simulated_mps() as (_, _, device, monkeypatch):
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr(platform, "machine", lambda: "arm64")
        monkeypatch.setattr(platform, "mac_ver", lambda: ("14.6.1", ("", "", ""), "arm64"))
        monkeypatch.setattr(torch.backends.mps, "is_built", lambda: True)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        said = {}
        for value in ("1", "0", ""):
            monkeypatch.setenv(FALLBACK, value)
            said[value] = device.unavailable()
    refused, taken = said["1"], said["0"] is None and said[""] is None
    return Finding(
        tried=f"{FALLBACK}=1, 0 and empty on a Mac on paper",
        naive="a time of the CPU under the name of mps (not read here: there is no Mac)",
        ours="no time with 1; the device is taken with 0 or empty"
        if taken
        else "THE DEVICE IS REFUSED WITHOUT IT",
        does=f"refused: {refused}" if refused else "NOT REFUSED",
        good=bool(refused) and taken,
        figures={"said": said},
    )


ATTEMPTS: Final = (
    Attempt(3, "cpu", _WHERE, with_and_without_a_sync),
    Attempt(4, "cpu", _WHERE, an_event_that_is_never_ready),
    Attempt(5, "cpu", _WHERE, events_that_lie),
    Attempt(6, "cpu", _WHERE, idle_gaps),
    Attempt(7, "cpu", _WHERE, dispatch_apart),
    Attempt(8, "cpu", _WHERE, fallback_to_the_cpu),
)
