"""From an op's definition, a few lines under benchmarks/, to the class that asv runs.

    @op(
        quick=["m=64 k=64 n=64", "m=1024 k=1024 n=1024"],
        full=["m=8192 k=8192 n=8192"],
    )
    def mm(t, m, k, n):
        a, b = t(m, k), t(k, n)
        return lambda: torch.mm(a, b)

The class times forward and backward with every clock, counts FLOPs and bytes, and checks the result
against float64.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from accel_micro import profiles
from accel_micro import shapes as shape_texts
from accel_micro.definition import COLD, Definition, Op, WorkFunction
from accel_micro.dtypes import FLOATS
from accel_micro.measure import CLOCKS
from accel_micro.measure.records import Case, Record, method_name

DEVICES: Final = ("cpu", "cuda", "mps", "xla", "xpu")
"""Values of the parameter `device`, the same on every machine, so that merged results line up."""


def op(
    *,
    quick: Sequence[str] = (),
    standard: Sequence[str] = (),
    full: Sequence[str] = (),
    cold: Sequence[str] = (),
    dtypes: Sequence[str] = FLOATS,
    backward: bool = True,
    flops: WorkFunction | None = None,
    backward_flops: WorkFunction | float | None = None,
    bytes: WorkFunction | None = None,
    saving: WorkFunction | None = None,
    terms: WorkFunction | None = None,
    tolerance: float = 1.0,
    unsupported: Callable[..., str | None] | None = None,
    link: bool = False,
    sweep: str | None = None,
) -> Callable[[Definition], type["OpBenchmark"]]:
    """Turn a definition into the benchmark class of that op. See `Op` for the arguments.

    Args:
        cold: those of the shapes that are measured with inputs that no cache holds as well, in standard and full.

    Raises:
        ValueError: a shape cannot be parsed, a dtype is unknown, a shape does not fit the definition, or the op cannot
            have cold inputs.
    """

    def decorate(definition: Definition) -> type[OpBenchmark]:
        family = definition.__module__.rpartition(".")[2]
        shapes = {"quick": tuple(quick), "standard": tuple(standard), "full": tuple(full)}
        if cold:
            shapes[COLD] = tuple(map(shape_texts.cold, cold))
        made = Op(
            name=f"{family}.{definition.__name__}",
            definition=definition,
            shapes=shapes,
            dtypes=tuple(dtypes),
            backward=backward,
            flops=flops,
            backward_flops=backward_flops,
            bytes=bytes,
            saving=saving,
            terms=terms,
            tolerance=tolerance,
            unsupported=unsupported,
            link=link,
            swept=sweep,
        )
        return _benchmark_class(made, definition)

    return decorate


class OpBenchmark:
    """Base of the classes that `op` makes. asv reads the attributes; the timing type calls `run`."""

    op: ClassVar[Op]
    params: ClassVar[list[list[str]]]
    param_names: ClassVar[list[str]] = ["device", "dtype", "shape"]
    version: ClassVar[str]
    pretty_source: ClassVar[str]
    rounds: ClassVar[int]

    def setup(self, device: str, dtype: str, shape: str) -> None:
        """Skip what this machine or the profile does not have.

        Raises:
            NotImplementedError: asv's way to skip; the message is the reason.
        """
        from accel_micro import devices
        from accel_micro.devices.chosen import name_of

        chosen = devices.get(name_of(device))
        reason = chosen.unavailable() or self.op.why_unsupported(device, dtype, shape)
        if reason is None and chosen.on_cpu:
            reason = self.op.why_too_long_on_cpu(dtype, shape)
        if reason is not None:
            raise NotImplementedError(reason)

    @classmethod
    def case(cls, direction: str, device: str, dtype: str, shape: str) -> Case:
        """The case that these parameters name."""
        return Case(op=cls.op.name, direction=direction, device=device, dtype=dtype, shape=shape)

    def run(
        self,
        direction: str,
        device: str,
        dtype: str,
        shape: str,
        *,
        clocks: Sequence[str] = ("throughput",),
        samples: int | None = None,
        budget_seconds: float | None = None,
    ) -> Record:
        """Measure one case in this process with the given clocks. A failure is in the record, not raised."""
        from accel_micro.devices.chosen import name_of
        from accel_micro.measure import SAMPLES
        from accel_micro.measure.case import measure_case

        arguments = self.op.arguments(shape)
        with contextlib.ExitStack() as stack:
            return measure_case(
                self.case(direction, device, dtype, shape),
                lambda inputs: self.op.build(inputs, arguments, stack),
                device=name_of(device),
                clocks=clocks,
                samples=samples or SAMPLES,
                budget_seconds=budget_seconds or profiles.get().budget_seconds,
                stated=self.op.stated_work(direction, dtype, shape),
                tolerance=self.op.tolerance,
                link=self.op.link,
            )

    def check(self, direction: str, device: str, dtype: str, shape: str) -> Record:
        """Compare one case with float64 in this process and time nothing. A failure is in the record, not raised."""
        from accel_micro.devices.chosen import name_of
        from accel_micro.measure.case import check_case

        arguments = self.op.arguments(shape)
        with contextlib.ExitStack() as stack:
            return check_case(
                self.case(direction, device, dtype, shape),
                lambda inputs: self.op.build(inputs, arguments, stack),
                device=name_of(device),
                stated=self.op.stated_work(direction, dtype, shape),
                tolerance=self.op.tolerance,
            )


def _benchmark_class(made: Op, definition: Definition) -> type[OpBenchmark]:
    namespace: dict[str, Any] = {
        "__doc__": definition.__doc__,
        "__module__": definition.__module__,
        "op": made,
        "params": [list(DEVICES), list(made.dtypes), list(made.all_shapes)],
        "version": made.version,
        "pretty_source": made.source,
        "rounds": profiles.get().rounds,
    }
    for direction in ("forward", "backward") if made.backward else ("forward",):
        for clock in CLOCKS:
            name = method_name(direction, clock)
            namespace[name] = _time_method(made, name, direction, clock)
    return type(definition.__name__, (OpBenchmark,), namespace)


def _time_method(made: Op, name: str, direction: str, clock: str) -> Callable[..., None]:
    def time_op(self: OpBenchmark, device: str, dtype: str, shape: str) -> None:
        self.run(direction, device, dtype, shape, clocks=(clock,))

    time_op.__name__ = name
    time_op.__qualname__ = f"{made.definition.__name__}.{name}"
    time_op.__doc__ = f"{clock} of {made.name}, {direction}, seconds per call."
    # asv writes a function's attributes into its list of benchmarks, where its own process reads them.
    time_op.accel_micro = {  # type: ignore[attr-defined]
        "op": made.name,
        "direction": direction,
        "clock": clock,
        "shapes": {key: list(value) for key, value in made.lists.items()},
        "dtypes": list(made.dtypes),
        "sweep": made.sweep.text if made.sweep else None,
        "sweep_stated": made.swept is not None,
    }
    return time_op
