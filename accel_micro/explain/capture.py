"""What a capture holds: the clocks of whole steps, and the ops of a step with their times in place and replayed.

A capture is a file of JSON, so that one from a Mac and one from a GPU server can be held against each other. All times
are seconds, of one step, corrected to the machine's full speed where the machine was slower.
"""

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final, Literal

SCHEMA: Final = 1

Phase = Literal["forward", "backward", "optimizer"]
_BLOCKED: Final = 4.0
"""Times its dispatch clock that a call may take in place, where caches are cold. More: the launch queue was full."""

PHASES: Final[tuple[Phase, ...]] = ("forward", "backward", "optimizer")

Crossing = Literal["", "on host", "to host", "to device"]
"""Of a call in a step that runs on an accelerator: empty where it works there, `on host` where all its tensors lie on
the CPU (an optimizer's counts of steps), else the way that its numbers take."""

_SYNCHRONISING: Final = frozenset(
    {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "unique_dim", "_unique2", "masked_select"}
)
"""Operators that need a number of the device on the host."""


@dataclass(frozen=True)
class Row:
    """Calls of one operator with the same kind of arguments, in one phase of a step and one module.

    Attributes:
        op: operator with its overload, such as `aten.convolution.default`.
        module: path of the module whose forward made the call, or the forward that this is the backward of.
        module_class: name of that module's class.
        inputs: each tensor as `float32[4,64,56,56]`, with its layout where that is not contiguous.
        scalars: the other arguments as text, shortened.
        count: calls in a step.
        backend: which implementation torch chose, where it tells (convolutions).
        crossing: where its tensors lie, if the step runs elsewhere than on the CPU; see `Crossing`.
        flops, bytes: of one call: products and sums as torch's counter has them; tensors in and out, once each.
        hot_seconds, cold_seconds: one call replayed, its inputs in the cache or not. None: not replayed.
        dispatch_seconds: one call by the dispatch clock, where the device has one. device_seconds: for which the
            device works for one call, in place.
        error, tolerance: relative error against float64, and what rounding explains. None: not checked.
        check: why it is wrong, or was not checked; empty when right.
        non_finite: a call that was given finite numbers made some that are not.
        subnormal: largest share of numbers in a tensor that are too small for the format to hold in full.
    """

    op: str
    phase: Phase
    module: str = ""
    module_class: str = ""
    inputs: tuple[str, ...] = ()
    scalars: str = ""
    count: int = 1
    backend: str = ""
    crossing: Crossing = ""
    flops: float = 0.0
    bytes: float = 0.0
    hot_seconds: float | None = None
    cold_seconds: float | None = None
    dispatch_seconds: float | None = None
    device_seconds: float | None = None
    error: float | None = None
    tolerance: float | None = None
    check: str = ""
    non_finite: bool = False
    subnormal: float = 0.0

    @property
    def operator(self) -> str:
        """Name without namespace and overload: `convolution_backward`."""
        return self.op.removeprefix("aten.").rpartition(".")[0] or self.op

    @property
    def waits(self) -> bool:
        """The host waits in it for the device: it needs a number from there, or takes a tensor to the CPU."""
        return self.crossing == "to host" or (self.crossing == "" and self.operator in _SYNCHRONISING)

    def host_seconds(self, in_place: float) -> float:
        """What a call takes the host: the time in place, but where it waited there for a place in the queue."""
        blocked = self.dispatch_seconds is not None and in_place > _BLOCKED * self.dispatch_seconds
        return self.dispatch_seconds if blocked and self.dispatch_seconds is not None else in_place

    @property
    def is_wrong(self) -> bool:
        """Its result is farther from float64 than rounding explains."""
        return self.error is not None and bool(self.check)


@dataclass(frozen=True)
class Fed:
    """What a loader costs, seconds a batch.

    Attributes:
        loader_seconds: the loader alone. transfer_seconds: batch to the device, waited for.
        step_seconds: steps that take their batches from the loader.
        prefetches: workers load while the step runs.
        fetch_seconds, transform_seconds, collate_seconds: of a batch that this process loads by itself, where the
            loader is torch's over a dataset with places: its examples without their transform, that, and making one
            batch of them. None: they cannot be told apart.
        transform: name of the transform.
    """

    loader_seconds: float
    transfer_seconds: float
    step_seconds: float
    prefetches: bool
    fetch_seconds: float | None = None
    transform_seconds: float | None = None
    collate_seconds: float | None = None
    transform: str = ""


@dataclass(frozen=True)
class Reading:
    """What one process measured.

    Attributes:
        steps: seconds of a whole step, one a block, corrected to full speed. raw_steps: the same uncorrected.
        speeds: of the machine during each block, 1 is full speed.
        first_step_seconds: with all initialisation, compilation and choice of algorithms.
        ops: seconds in place of all calls of each row. Empty: the ops could not be timed.
        ops_errors: standard error of each, from its scatter over steps.
        gaps: seconds of Python and autograd before the calls of each row, less what watching costs.
        tail_seconds: the same after the last call.
        host_seconds: until an idle device's queue has been given a step; None where the device is synchronous.
        device_seconds: in which the device was busy with a step, by its profiler.
        waiting: seconds that threads waited for a core, per second.
        compilations, compile_seconds: of each steady step, where the backend or torch.compile counts them.
        on_host: ops that ran on the CPU since the device has no kernel for them.
        block_speeds: of the host during each block of plain steps, in the order of time; 1 is full speed.
        block_hertz: clock of the device after each of them, where it can be asked.
        held: why the driver held the clock down.
        finite: the last step's result has neither NaN nor infinity.
    """

    steps: tuple[float, ...]
    raw_steps: tuple[float, ...]
    speeds: tuple[float, ...]
    first_step_seconds: float
    ops: tuple[float, ...] = ()
    ops_errors: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    tail_seconds: float = 0.0
    host_seconds: float | None = None
    device_seconds: float | None = None
    waiting: float = 0.0
    fed: Fed | None = None
    compilations: float = 0.0
    compile_seconds: float = 0.0
    on_host: tuple[str, ...] = ()
    block_speeds: tuple[float, ...] = ()
    block_hertz: tuple[float, ...] = ()
    held: tuple[str, ...] = ()
    finite: bool = True

    @property
    def step_seconds(self) -> float:
        """Median of the steps."""
        return median(self.steps)

    @property
    def framework_seconds(self) -> float:
        """Python and autograd between the ops of a step."""
        return sum(self.gaps) + self.tail_seconds

    @property
    def total_seconds(self) -> float:
        """What is explained: a step, with loading and transfer where a loader feeds it."""
        return self.fed.step_seconds if self.fed else self.step_seconds


@dataclass(frozen=True)
class Capture:
    """A model's step on one device under one setting.

    Attributes:
        model: name, or `package.module:function`.
        setting: as `setting.Setting` writes it.
        parameters: numbers that are trained. tensors: that hold them.
        sequence: the rows in the order in which a step calls them.
        readings: one a process.
        machine: facts about machine and torch, as short texts.
        modes: of torch that change speed or precision, and the number of threads.
        flops_per_second, bytes_per_second: what this machine was measured to reach, the latter by size in bytes.
        problems: what could not be captured, in sentences.
    """

    model: str
    setting: str
    device: str
    batch: int
    training: bool
    torch: str
    started: str
    parameters: int = 0
    tensors: int = 0
    rows: tuple[Row, ...] = ()
    sequence: tuple[int, ...] = ()
    readings: tuple[Reading, ...] = ()
    machine: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str | int | float | bool] = field(default_factory=dict)
    flops_per_second: float | None = None
    bytes_per_second: dict[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def step_seconds(self) -> float:
        """Mean over processes of their median step."""
        return fmean(reading.step_seconds for reading in self.readings)

    @property
    def is_queued(self) -> bool:
        """A device works the calls off by itself, and its seconds of each are known."""
        return any(row.device_seconds is not None for row in self.rows)

    @property
    def has_ops(self) -> bool:
        """Every process timed the ops."""
        return bool(self.rows) and all(reading.ops for reading in self.readings)
