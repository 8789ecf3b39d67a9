"""Steps whose ops are timed in place: by torch's profiler on a processor, under a mode where a device works on its own.

The profiler adds about a microsecond to an op, in C++; a mode of Python adds 4 to 17 (two cores of an AMD EPYC), since
what an op leaves in the cache is not Python. But a profiler that was used once makes every launch to a GPU slower; and
there the host's time for a step is known anyway, so what a mode adds can be taken off.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final

import torch

from accel_micro.devices.profiling import events_of, interval
from accel_micro.explain.capturing.describing import is_view
from accel_micro.explain.capturing.recording import Structure, Timing

_MARK: Final = "accel_micro step"
_CHUNK: Final = 300
_AHEAD: Final = 100
_WINDOW: Final = 20
"""Calls that are aligned at once, further ones that are looked at meanwhile, and events for each of both."""
_MOST_INSIDE: Final = 64
"""Calls that a wanted call makes and that are looked at; where it makes more, none of them is."""
_OP: Final = 10_000
_VIEW: Final = 20
"""What finding a call is worth, in events that are left out for it."""
_READINGS: Final = 7
_STEPS: Final = 10


class Bracketed:
    """Steps under a mode that takes the time before and after each op's own call.

    Attributes:
        ops, gaps: of each step the seconds of each row, and before it, with what the mode adds; the tail comes last.
        changed: a step called other ops than the structure has.
        events: what the profiler has noted of a step within each row's calls, and in the gap before each.
    """

    events: tuple[Sequence[float], Sequence[float]] | None = None

    def __init__(self, structure: Structure) -> None:
        self._funcs = structure.funcs
        self._numbers = structure.sequence
        self._rows = len(structure.calls)
        self.changed = False
        self.ops: list[list[float]] = []
        self.gaps: list[list[float]] = []

    def run(self, step: Callable[[], Any], steps: int, synchronize: Callable[[], None]) -> None:
        """Run steps and add what they took."""
        for _ in range(steps):
            synchronize()
            mode = Timing()
            with mode:
                start = perf_counter()
                step()
                end = perf_counter()
            if self.changed or mode.funcs != self._funcs:
                self.changed = True
                continue
            stamps = iter(mode.stamps)
            spans = [(begun, ended) for begun, ended in zip(stamps, stamps, strict=True)]
            ops, gaps = self._of_rows(start, end, spans)
            self.ops.append(ops)
            self.gaps.append(gaps)
        synchronize()

    def _of_rows(
        self, start: float, end: float, spans: Sequence[tuple[float, float]]
    ) -> tuple[list[float], list[float]]:
        ops, gaps = [0.0] * self._rows, [0.0] * (self._rows + 1)
        before = start
        for number, (begun, ended) in zip(self._numbers, spans, strict=True):
            if number < 0:  # what marks a place belongs to the gap
                continue
            ops[number] += ended - begun
            gaps[number] += begun - before
            before = ended
        gaps[-1] = end - before
        return ops, gaps


class Profiled:
    """Steps under torch's profiler, read when they are over.

    An op's time is that of its call as autograd sees it, notes for the backward included; the mode of `Bracketed` is
    called below autograd. Both have what the profiler adds for each of its `events`.

    Attributes:
        ops, gaps, changed, events: as those of `Bracketed`.
    """

    events: tuple[Sequence[float], Sequence[float]] | None = None

    def __init__(self, structure: Structure) -> None:
        kept = [(f, n) for f, n in zip(structure.funcs, structure.sequence, strict=True) if n >= 0]
        self._names = [name_of(func) for func, _ in kept]
        self._worth = [_VIEW if is_view(func) else _OP for func, _ in kept]
        self._numbers = [number for _, number in kept]
        self._rows = len(structure.calls)
        self._known: tuple[list[str], list[int]] | None = None
        self.changed = False
        self.ops: list[list[float]] = []
        self.gaps: list[list[float]] = []

    def run(self, step: Callable[[], Any], steps: int, synchronize: Callable[[], None]) -> None:
        """Run steps and add what they took.

        Raises:
            RuntimeError: the profiler cannot be used.
        """
        for events in profiled(step, steps):
            self._add(events)

    def _add(self, events: "Events") -> None:
        import numpy as np

        if self._known is None:
            places = looked_at(events, self._names)
            found = aligned(self._names, [events.names[place] for place in places], self._worth)
            self._known = events.names, [places[each] if each >= 0 else -1 for each in found]
        stand = np.array(self._known[1])
        seen = stand >= 0
        missing = [self._names[n] for n in np.flatnonzero(~seen) if self._worth[n] > _VIEW]
        if self.changed or events.names != self._known[0] or missing or not seen.any():
            self.changed = True
            return
        here, numbers = stand[seen], np.array(self._numbers)[seen]
        starts, ended = np.sort(events.starts), np.array(events.ends)[here]
        last = np.concatenate(([events.start], ended[:-1]))
        # A call may have made others before its own kernel, such as a copy of what it changes: they have their own row.
        begun = np.maximum(np.array(events.starts)[here], last)
        ops, gaps = np.zeros(self._rows), np.zeros(self._rows + 1)
        inside, between = np.zeros(self._rows), np.zeros(self._rows + 1)
        np.add.at(ops, numbers, ended - begun)
        np.add.at(gaps, numbers, begun - last)
        here_begun = np.searchsorted(starts, begun, side="right")
        np.add.at(inside, numbers, np.searchsorted(starts, ended) - here_begun)
        np.add.at(between, numbers, here_begun - np.searchsorted(starts, last))  # with the op's own
        gaps[-1], between[-1] = events.end - ended[-1], len(starts) - np.searchsorted(starts, ended[-1])
        self.ops.append(list(ops))
        self.gaps.append(list(gaps))
        self.events = list(inside), list(between)


Watched = Bracketed | Profiled


@dataclass(frozen=True)
class Events:
    """Calls that the profiler saw in a step, in the order of their end, what was called before what called it.

    That is the order in which a mode sees them: the copy that an op makes of what it changes is made below autograd
    before the op itself is.

    Attributes:
        start, end: of the step. starts, ends: of the calls, seconds by the same clock.
    """

    start: float
    end: float
    names: list[str]
    starts: list[float]
    ends: list[float]


def name_of(func: Any) -> str:
    """How the profiler calls an operator."""
    schema = getattr(func, "_schema", None)
    return str(func) if schema is None else str(schema.name)


def profiled(step: Callable[[], Any], steps: int) -> list[Events]:
    """Events of each of some steps.

    Raises:
        RuntimeError: the profiler cannot be used, or has lost a step.
    """
    from torch.profiler import ProfilerActivity

    def run() -> None:
        for _ in range(steps):
            with _mark():
                step()

    found = sorted(
        (
            (*interval(event), str(event.name()), event.start_thread_id())
            for event in events_of(run, ProfilerActivity.CPU)
            if event.device_type() == torch._C._autograd.DeviceType.CPU
        ),
        key=lambda each: (each[1], -each[0]),
    )
    marks = [each for each in found if each[2] == _MARK]
    if len(marks) != steps:
        raise RuntimeError(f"it has {len(marks)} of {steps} steps")
    split: list[Events] = []
    place = 0
    for begun, ended, _, thread in marks:
        inside = []
        while place < len(found) and found[place][1] <= ended:
            start, _, name, whose = each = found[place]
            if start >= begun and name != _MARK and whose == thread:
                inside.append(each)
            place += 1
        split.append(
            Events(
                1e-9 * begun,
                1e-9 * ended,
                [name for _, _, name, _ in inside],
                [1e-9 * start for start, *_ in inside],
                [1e-9 * end for _, end, *_ in inside],
            )
        )
    return split


def _mark() -> AbstractContextManager[Any]:
    """What tells steps apart; the fast kind where this torch has it."""
    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    mark: AbstractContextManager[Any] = torch.profiler.record_function(_MARK) if fast is None else fast(_MARK)
    return mark


def looked_at(events: Events, wanted: Sequence[str]) -> list[int]:
    """The events among which the wanted calls are: those of their operators, and not what a wanted call is made of.

    A convolution in groups without oneDNN makes thousands of calls, a foreach one for each tensor. Where a call makes a
    few only, these stay: the copy that it makes of what it changes is wanted too.
    """
    known = {name.rstrip("_") for name in wanted}
    places = [place for place, name in enumerate(events.names) if name.rstrip("_") in known]
    within: list[int] = []
    made: Counter[int] = Counter()
    open_calls: list[int] = []
    for place in reversed(places):  # what ends last comes first, so a call comes before those inside of it
        while open_calls and events.starts[open_calls[-1]] >= events.ends[place]:
            open_calls.pop()
        within.append(open_calls[0] if open_calls else -1)
        made[within[-1]] += 1
        open_calls.append(place)
    kept = zip(places, reversed(within), strict=True)
    return [place for place, outer in kept if outer < 0 or made[outer] <= _MOST_INSIDE]


def aligned(wanted: Sequence[str], seen: Sequence[str], worth: Sequence[int] | None = None) -> list[int]:
    """Where each wanted name stands in `seen`, in order: as many as can be with few left out between; -1 for none.

    The profiler sees calls within calls too. A step under a mode detaches some tensors that a plain one does not, and
    adds gradients out of place where a plain one adds in place: so a last underscore does not count.

    Args:
        worth: of each wanted name: names of `seen` that may be left out for its sake.
    """
    wanted, seen = ([name.rstrip("_") for name in names] for names in (wanted, seen))
    worth = [_OP] * len(wanted) if worth is None else worth
    found: list[int] = []
    place = 0
    while len(found) < len(wanted):
        some = slice(len(found), len(found) + _CHUNK + _AHEAD)
        window = seen[place : place + _WINDOW * max(_CHUNK, len(wanted[some]))]
        places = _best(wanted[some], window, worth[some])
        last = len(wanted) - len(found) <= _CHUNK + _AHEAD
        kept = places if last else places[:_CHUNK]
        found += [place + each if each >= 0 else -1 for each in kept]
        place += max((each + 1 for each in kept), default=0)
    return found


def _best(wanted: Sequence[str], seen: Sequence[str], worth: Sequence[int]) -> list[int]:
    """As `aligned`, by what is best for all that is left, from each pair of places.

    That names are left out costs a little: of equal layers the call of one is not to be taken for that of the next.
    """
    import numpy as np

    codes = {name: code for code, name in enumerate(dict.fromkeys([*wanted, *seen]))}
    those = np.array([codes[name] for name in seen], dtype=np.int64)
    left = np.zeros((len(wanted) + 1, len(seen) + 1), dtype=np.int64)
    ahead = np.arange(len(seen) + 1)
    for row in range(len(wanted) - 1, -1, -1):
        best = left[row + 1].copy()
        matched = np.where(those == codes[wanted[row]], left[row + 1, 1:] + worth[row], 0)
        best[:-1] = np.maximum(best[:-1], matched)
        left[row] = np.maximum.accumulate((best - ahead)[::-1])[::-1] + ahead
    following: dict[str, list[int]] = {}
    for place, name in enumerate(seen):
        following.setdefault(name, []).append(place)
    found, place = [], 0
    for row, name in enumerate(wanted):
        places = following.get(name, [])
        cursor = bisect_left(places, place)
        found.append(-1)
        if cursor < len(places):
            there = places[cursor]
            if worth[row] + left[row + 1, there + 1] - (there - place) >= left[row + 1, place]:
                found[-1] = there
                place = there + 1
    return found


def event_seconds() -> float:
    """What the profiler adds for an event, on this machine now: of the step of a tiny network; takes half a second.

    Of both kinds of steps the least reading counts, since whatever disturbs one makes it longer.

    Raises:
        RuntimeError: the profiler cannot be used.
    """
    width = 16
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(width, width) for _ in range(4)]
        net = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.Tanh())))
        x = torch.randn(2, width)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-6, foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    def bare() -> float:
        start = perf_counter()
        step()
        return perf_counter() - start

    for _ in range(3):
        step()
    added = []
    for _ in range(_READINGS):
        plain = median(bare() for _ in range(_STEPS))
        events = profiled(step, _STEPS)
        watched = median(each.end - each.start for each in events)
        added.append((watched - plain) / max(1, len(events[0].names)))
    return max(0.0, median(added))
