"""The life of a process: one model under one setting, its whole steps and its ops in place, in turns.

    python -m accel_micro.explain.capturing.process < job.json

It writes what it measured to the file that the job names, or one sentence of why it could not.
"""

import gc
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from accel_micro.explain.capturing.counting import Counts, finite
from accel_micro.explain.capturing.turns import FEWEST_OF_LONG, TURNS, Block, Turn, chosen, in_place
from accel_micro.explain.capturing.watching import Bracketed, Profiled, Watched
from accel_micro.explain.setting import Setting
from accel_micro.measure import throttling

_WARM_STEPS: Final = 3
_LONG_STEP_SECONDS: Final = 10.0  # beside it what a first step pays and a core's changes of speed are small
_BLOCK_SECONDS: Final = 50e-3
_MOST_STEPS: Final = 50
_REPLAY_BYTES_SHARE: Final = 0.25
_MOST_ROWS: Final = 20_000
_BUSY_STEPS: Final = 3
REPLAY_SECONDS: Final = {False: 30.0, True: 120.0}
"""For replays and checks, by whether the device works on its own: there each call waits behind a spin."""


def main() -> None:
    """Read a job from standard input, run it, and write the result."""
    job = json.load(sys.stdin)
    try:
        result = run(job)
    except Exception as error:
        result = {"error": _sentence(error), "kind": type(error).__name__}
        if job.get("traceback"):
            traceback.print_exc()
    Path(job["out"]).write_text(json.dumps(result), encoding="utf-8")


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def run(job: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a job, see `taking.job`."""
    from accel_micro.explain.capturing import target
    from accel_micro.measure.sampling import opened

    setting = Setting.parse(job["setting"])
    target.prepare({name: value for name, value in setting.switches.items() if name == "flush_denormal"})
    with opened(setting.device) as device:
        target.prepare(setting.switches)
        return _Process(job, setting, device).run()


class _Process:
    def __init__(self, job: Mapping[str, Any], setting: Setting, device: Any) -> None:
        from accel_micro.devices import full_speed
        from accel_micro.explain.capturing import target

        self.job, self.setting, self.device = job, setting, device
        self.problems: list[str] = []
        self._rates: list[float] = []
        self._importance: list[float] = []
        self._counts = Counts()
        self._key = full_speed.host_key()
        self.reference = full_speed.establish(self._key, device.probe_host_speed, device.now)
        self.model = target.load(job["model"], device.name, setting.switches.get("dtype", "float32"))
        target.change(self.model, setting.switches)
        self.training: bool = job["training"]
        assert setting.batch is not None
        self.batch = target.changed(self.model.batch(setting.batch), setting.switches)

    def _snapshot(self) -> Any:
        from accel_micro.explain.capturing.target import Snapshot

        return Snapshot(self.model, self.device.free_memory_bytes(), self.device.lazy)

    def step(self) -> Any:
        """A whole step, as it is timed."""
        run = self.model.training_step if self.training else self.model.inference_step
        return run(self.batch)

    def run(self) -> dict[str, Any]:
        from accel_micro.devices import full_speed

        with self._counts.warnings():
            first = self._timed(1)
        if self.job.get("only_rows"):
            structure = self._structure()
            return {
                "rows": [] if structure is None else self._rows(structure, None),
                "problems": self.problems,
            }
        for _ in range(_WARM_STEPS):
            if (last := self._timed(1)) > _LONG_STEP_SECONDS:
                break
        structure = self._structure() if self.job["ops"] else None
        with _collector_paused():
            if last <= _LONG_STEP_SECONDS:
                last = min(last, *(self._timed(1) for _ in range(2)))
            snapshot = self._snapshot() if self.training else None
            reading = self._turns(structure, snapshot, last)
        self._importance = reading.get("ops", [])
        full_speed.contribute(self._key, self._rates)
        reading["first_step_seconds"] = first
        if self.job.get("loader"):
            reading["fed"] = self._fed()
        found = {
            "reading": reading,
            "rows": None if structure is None else self._rows(structure, snapshot),
            "sequence": [] if structure is None else [n for n in structure.sequence if n >= 0],
            "problems": self.problems,
            "facts": self._facts(),
        }
        if self.job.get("detail"):
            found["peaks"] = self._peaks()
        return found

    # Whole steps

    def _timed(self, steps: int) -> float:
        """Seconds of a step, over that many between two synchronisations."""
        device = self.device
        device.synchronize()
        start = perf_counter()
        for _ in range(steps):
            device.mark_step(self.step())
        device.synchronize()
        return (perf_counter() - start) / steps

    def _enqueued(self, steps: int) -> float:
        """Seconds until an idle queue has been given a step."""
        device, seconds = self.device, 0.0
        for _ in range(steps):
            device.synchronize()
            start = perf_counter()
            device.mark_step(self.step())
            seconds += perf_counter() - start
        device.synchronize()
        return seconds / steps

    def _turns(self, structure: Any, snapshot: Any, step_seconds: float) -> dict[str, Any]:
        """Blocks of plain steps, of watched ones and of steps that are only enqueued, by turns, and what they tell."""
        steps = max(1, min(_MOST_STEPS, math.ceil(_BLOCK_SECONDS / step_seconds)))
        by_profiler = not self.device.asynchronous
        added = self._event_seconds() if structure is not None and by_profiler else 0.0
        plain: list[Block] = []
        turns: list[Turn] = []
        enqueued: list[Block] = []
        end = perf_counter() + self.job["budget_seconds"]
        least, most = TURNS
        if step_seconds > _LONG_STEP_SECONDS:
            least = FEWEST_OF_LONG
        while len(plain) < most and (len(plain) < least or perf_counter() < end):
            with self._counts.block(self.device, steps):
                plain.append(self._block(snapshot, lambda: self._timed(steps)))
            if structure is not None and added is not None:
                watched = Profiled(structure) if by_profiler else Bracketed(structure)
                turns.append(self._watched(snapshot, plain[-1], watched, steps))
            if self.device.asynchronous:
                enqueued.append(self._block(snapshot, lambda: self._enqueued(steps)))
        if any(turn.watched.changed for turn in turns):
            self.problems.append("its ops change from step to step, so only whole steps were timed")
            turns = []
        busy = self._busy_seconds()  # last: a profiler that was used once makes every launch a little slower
        kept, samples = chosen(plain, busy or 0.0)  # a faster host would not make the device faster
        found: dict[str, Any] = {
            "steps": samples,
            "raw_steps": [block.seconds for block in kept],
            "speeds": [block.speed for block in kept],
            "waiting": median(block.waiting for block in plain),
            "device_seconds": busy,
            "block_speeds": [block.speed for block in plain],
            "block_hertz": [block.hertz for block in plain if block.hertz is not None],
            "held": sorted({reason for block in plain for reason in block.held}),
            "finite": finite(self.step()),
        } | self._counts.facts()
        if enqueued:
            found["host_seconds"] = median(chosen(enqueued)[1])
        if turns:
            calls = [float(call.count) for call in structure.calls]
            found |= in_place(turns, median(samples), found.get("host_seconds"), calls, added or 0.0)
        return found

    def _event_seconds(self) -> float | None:
        """What the profiler adds for an event at full speed; None where it cannot be used."""
        from accel_micro.explain.capturing.watching import event_seconds

        before = self.device.probe_host_speed()
        try:
            added = event_seconds()
        except RuntimeError as error:
            self.problems.append(
                f"the profiler cannot be used ({_sentence(error)}), so only whole steps were timed"
            )
            return None
        after = self.device.probe_host_speed()
        speed = 2.0 / (self.reference / before + self.reference / after)
        return float(added * speed)

    def _block(self, snapshot: Any, time: Callable[[], float]) -> "Block":
        device = self.device
        if snapshot is not None:
            snapshot.restore()
        before = device.probe_host_speed()
        watch = device.watch
        state = None if watch is None else watch.read()
        waited, start = device.waited_seconds(), perf_counter()
        seconds = time()
        lasted = max(perf_counter() - start, 1e-9)
        waiting = (device.waited_seconds() - waited) / lasted
        after = device.probe_host_speed()
        self._rates += [before, after]
        alone = self.device.on_cpu and self.device.precision().get("threads") == 1
        block = Block(seconds, before / self.reference, after / self.reference, waiting, alone)
        if watch is not None and state is not None:
            now = watch.read()
            block.hertz, block.held = now.hertz, throttling.reasons(state, now, lasted)
        return block

    def _watched(self, snapshot: Any, plain: Block, watched: Watched, steps: int) -> Turn:
        def time() -> float:
            start = perf_counter()
            watched.run(self.step, steps, self.device.synchronize)
            return (perf_counter() - start) / steps

        return Turn(plain, watched, self._block(snapshot, time))

    # Ops

    def _structure(self) -> Any:
        from accel_micro.explain.capturing.recording import record

        if self.device.lazy:
            self.problems.append("a lazy device runs a step as one program, so its ops were not timed")
            return None
        try:
            structure = record(self.step, self.model.module)
        except Exception as error:
            self.problems.append(
                f"its ops cannot be recorded ({_sentence(error)}), so only whole steps were timed"
            )
            return None
        if len(structure.calls) > _MOST_ROWS:
            self.problems.append(
                f"a step has more than {_MOST_ROWS} kinds of calls, so only whole steps were timed"
            )
            return None
        return structure

    def _rows(self, structure: Any, snapshot: Any) -> list[dict[str, Any]]:
        """The rows as plain data, with replays and checks where this process is to make them."""
        rows = [
            {
                "op": str(call.func),
                **{name: getattr(call, name) for name in
                   ("phase", "module", "module_class", "inputs", "scalars", "count", "backend", "crossing", "flops",
                   "bytes")},
            }
            for call in structure.calls
        ]  # fmt: skip
        if self.job.get("detail"):
            self._device_seconds(structure, rows)
            try:
                self._detail(structure, rows, snapshot)
            except Exception as error:  # memory, mostly: what was timed is worth more
                self.problems.append(f"its ops could not be replayed: {_sentence(error)}")
        return rows

    def _device_seconds(self, structure: Any, rows: list[dict[str, Any]]) -> None:
        """How long the device works for a call of each row, where a profiler tells."""
        from accel_micro.explain.capturing.profiling import device_seconds

        if "device" not in self.device.clocks:
            return
        try:
            found = device_seconds(self.step, structure)
        except RuntimeError as error:
            self.problems.append(f"the profiler cannot tell its ops' device time: {_sentence(error)}")
            return
        if found is None:
            self.problems.append("its ops change from step to step, so the profiler cannot tell them apart")
            return
        for row, seconds in zip(rows, found, strict=True):
            row["device_seconds"] = seconds

    def _detail(self, structure: Any, rows: list[dict[str, Any]], snapshot: Any) -> None:
        from accel_micro.explain.capturing.checking import check
        from accel_micro.explain.capturing.keeping import Keeper, made
        from accel_micro.explain.capturing.recording import record
        from accel_micro.explain.capturing.replaying import Replayed, Replayer
        from accel_micro.host.processor import last_level_cache_bytes

        if snapshot is not None:
            snapshot.restore()
        free = self.device.free_memory_bytes() or 1 << 32
        keeper = Keeper(_REPLAY_BYTES_SHARE * free)
        looked = record(self.step, self.model.module, keeper, look=True)
        if [str(call.func) for call in looked.calls] != [str(call.func) for call in structure.calls]:
            self.problems.append("its ops change from step to step, so they were not replayed")
            return
        for row, call in zip(rows, looked.calls, strict=True):
            row |= {"subnormal": call.subnormal, "non_finite": call.non_finite}
        kinds: dict[Any, list[int]] = {}
        for number, call in enumerate(looked.calls):
            kinds.setdefault(call.kind, []).append(number)
        importance = self._importance or [float(call.count) for call in looked.calls]
        order = sorted(kinds.values(), key=lambda numbers: -sum(importance[n] for n in numbers))
        replayer = Replayer(self.device, self.reference, last_level_cache_bytes() or 32 << 20)
        modes = self.device.precision()
        given = self.job["replay_seconds"]
        end = perf_counter() + (REPLAY_SECONDS[self.device.asynchronous] if given is None else given)
        for numbers in order:
            if perf_counter() > end:
                self.problems.append("replays and checks ended before all ops had their turn; raise --replay")
                break
            kept = next((looked.calls[n].kept for n in numbers if looked.calls[n].kept is not None), None)
            if kept is None:
                continue
            func = looked.calls[numbers[0]].func
            convolves = "conv" in str(func) or "rnn" in str(func)
            checked = check(func, made(kept), bool(modes.get("cudnn_tf32" if convolves else "matmul_tf32")))
            try:
                replayed = replayer.replay(func, made(kept))
            except Exception:  # an op that cannot be made alone has its time in place
                replayed = Replayed()
            for n in numbers:
                looked.calls[n].kept = None
                rows[n] |= {name: value for name, value in vars(replayed).items() if value is not None}
                rows[n] |= {"error": checked.error, "tolerance": checked.tolerance, "check": checked.problem}

    # The rest

    def _busy_seconds(self) -> float | None:
        """For which the device works for a step, by its profiler."""
        if "device" not in self.device.clocks:
            return None
        from accel_micro.devices.cuda_profiler import kernel_seconds

        try:
            return kernel_seconds(self.step, _BUSY_STEPS)
        except RuntimeError as error:
            self.problems.append(f"the profiler cannot be used: {_sentence(error)}")
            return None

    def _fed(self) -> dict[str, Any]:
        from accel_micro.explain.capturing.feeding import feed

        assert self.setting.batch is not None
        return feed(
            self.model,
            self.job["loader"],
            self.device,
            self.training,
            self.setting.switches,
            self.setting.batch,
        )

    def _peaks(self) -> dict[str, Any]:
        from accel_micro.devices import peaks

        dtype = self.setting.switches.get("dtype", "float32")
        ladder = {
            str(1 << power): peaks.bytes_per_second(self.device, 1 << power) for power in range(16, 31, 2)
        }
        return {
            "flops_per_second": peaks.flops_per_second(self.device, dtype),
            "bytes_per_second": {size: rate for size, rate in ladder.items() if rate},
        }

    def _facts(self) -> dict[str, Any]:
        import torch

        parameters = [p for p in self.model.module.parameters() if p.requires_grad]
        return {
            "torch": torch.__version__,
            "parameters": sum(p.numel() for p in parameters),
            "tensors": len(parameters),
            "modes": self.device.precision(),
            "device": {name: str(value) for name, value in self.device.describe().items()},
        }


@contextmanager
def _collector_paused() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
