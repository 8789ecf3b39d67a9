"""From an op's definition, a few lines under benchmarks/, to the class that asv runs.

    @op(
        quick=["m=64 k=64 n=64", "m=1024 k=1024 n=1024"],
        full=["m=8192 k=8192 n=8192"],
    )
    def mm(t, m, k, n):
        a, b = t(m, k), t(k, n)
        return lambda: torch.mm(a, b)

The class times forward and backward with every clock, counts FLOPs and bytes, and checks the result against float64.
"""

import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from accel_micro import profiles
from accel_micro.measure import CLOCKS
from accel_micro.measure.records import Case, Record

DEVICES: Final = ("cpu", "cuda", "mps", "xla", "xpu")
"""Values of the parameter `device`, the same on every machine, so that merged results line up."""

FLOATS: Final = ("float32", "bfloat16", "float16", "float64")

PROTOCOL_VERSION: Final = 1
"""Part of every benchmark's version: raised when the way of measuring changes, so that histories do not mix."""

Definition = Callable[..., Any]
ShapeFunction = Callable[..., float]


def parse_shape(text: str) -> dict[str, Any]:
    """The keyword arguments that a shape such as `"vgg16.0: n=1 c=3 layout=channels_last"` stands for.

    A name before a colon is for the reader. Values are int, float, True, False or else text.

    Raises:
        ValueError: a word is not of the form key=value.

    >>> parse_shape("first: n=32 p=0.5 causal=True layout=nhwc")
    {'n': 32, 'p': 0.5, 'causal': True, 'layout': 'nhwc'}
    """
    arguments: dict[str, Any] = {}
    for word in text.rpartition(": ")[2].split():
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"shape {text!r}: {word!r} is not key=value")
        arguments[key] = _parse_value(value)
    return arguments


def _parse_value(text: str) -> int | float | bool | str:
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Op:
    """An op's definition and what the suite must know about it. Made by the decorator `op`.

    Attributes:
        definition: called with `Inputs` and the shape's arguments; returns the call to time, or a `Timed`.
        shapes: profile name → shapes, from launch-bound to compute-bound.
        dtypes: dtypes the op exists in.
        backward: the op can be differentiated, and its backward is timed too.
        flops: forward FLOPs from the shape's arguments; None asks torch's counter.
        backward_flops: the same for backward.
        bytes: bytes a forward call reads and writes at least; None counts inputs and outputs.
        saving: factor ≥ 1 by which the fastest known algorithm (Winograd) needs fewer FLOPs; None is 1.
        tolerance: factor on the tolerance of the comparison with float64.
        unsupported: gives the reason why a case does not exist, or None.
    """

    name: str
    definition: Definition
    shapes: Mapping[str, tuple[str, ...]]
    dtypes: tuple[str, ...] = FLOATS
    backward: bool = True
    flops: ShapeFunction | None = None
    backward_flops: ShapeFunction | None = None
    bytes: ShapeFunction | None = None
    saving: ShapeFunction | None = None
    tolerance: float = 1.0
    unsupported: Callable[..., str | None] | None = None
    source: str = field(default="", compare=False)

    @property
    def all_shapes(self) -> tuple[str, ...]:
        """Every shape, quick ones first."""
        return tuple(dict.fromkeys(shape for shapes in self.shapes.values() for shape in shapes))

    @property
    def version(self) -> str:
        """Changes when the definition or the way of measuring does, and not when a shape is added."""
        return hashlib.sha256(f"{PROTOCOL_VERSION}\n{self.source}".encode()).hexdigest()


def op(
    *,
    quick: Sequence[str] = (),
    standard: Sequence[str] = (),
    full: Sequence[str] = (),
    dtypes: Sequence[str] = FLOATS,
    backward: bool = True,
    flops: ShapeFunction | None = None,
    backward_flops: ShapeFunction | None = None,
    bytes: ShapeFunction | None = None,
    saving: ShapeFunction | None = None,
    tolerance: float = 1.0,
    unsupported: Callable[..., str | None] | None = None,
) -> Callable[[Definition], type["OpBenchmark"]]:
    """Turn a definition into the benchmark class of that op. See `Op` for the arguments.

    Raises:
        ValueError: a shape cannot be parsed, a dtype is unknown, or the definition lacks an argument of a shape.
    """

    def decorate(definition: Definition) -> type[OpBenchmark]:
        family = definition.__module__.rpartition(".")[2]
        try:
            source = textwrap.dedent(inspect.getsource(definition))
        except OSError:
            source = definition.__qualname__
        made = Op(
            name=f"{family}.{definition.__name__}",
            definition=definition,
            shapes={"quick": tuple(quick), "standard": tuple(standard), "full": tuple(full)},
            dtypes=tuple(dtypes),
            backward=backward,
            flops=flops,
            backward_flops=backward_flops,
            bytes=bytes,
            saving=saving,
            tolerance=tolerance,
            unsupported=unsupported,
            source=source,
        )
        _validate(made)
        return _benchmark_class(made, definition)

    return decorate


def _validate(made: Op) -> None:
    unknown = set(made.dtypes) - set(FLOATS)
    if unknown:
        raise ValueError(f"{made.name}: unknown dtypes {sorted(unknown)}; known: {', '.join(FLOATS)}")
    if not made.all_shapes:
        raise ValueError(f"{made.name}: no shapes")
    signature = inspect.signature(made.definition)
    for shape in made.all_shapes:
        try:
            signature.bind(None, **parse_shape(shape))
        except TypeError as error:
            raise ValueError(f"{made.name}: shape {shape!r} does not fit the definition: {error}") from None


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

        if dtype not in self.op.dtypes:
            raise NotImplementedError(f"{self.op.name} does not exist in {dtype}")
        reason = devices.get(device).unavailable()
        if reason is None and self.op.unsupported is not None:
            reason = self.op.unsupported(device=device, dtype=dtype, **parse_shape(shape))
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
        from accel_micro.measure import SAMPLES
        from accel_micro.measure.case import measure_case

        arguments = parse_shape(shape)
        return measure_case(
            self.case(direction, device, dtype, shape),
            lambda inputs: self.op.definition(inputs, **arguments),
            clocks=clocks,
            samples=samples or SAMPLES,
            budget_seconds=budget_seconds or profiles.get().budget_seconds,
            stated=self._stated_work(direction, arguments),
            tolerance=self.op.tolerance,
        )

    def _stated_work(self, direction: str, arguments: Mapping[str, Any]) -> dict[str, float]:
        flops = self.op.flops if direction == "forward" else self.op.backward_flops
        stated: dict[str, float] = {}
        if flops is not None:
            stated["flops"] = float(flops(**arguments))
        if self.op.bytes is not None and direction == "forward":
            stated["bytes"] = float(self.op.bytes(**arguments))
        if self.op.saving is not None:
            stated["saving"] = float(self.op.saving(**arguments))
        return stated


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
            name = f"time_{direction}" + ("" if clock == "throughput" else f"_{clock}")
            namespace[name] = _time_method(made, name, direction, clock)
    return type(definition.__name__, (OpBenchmark,), namespace)


def _time_method(made: Op, name: str, direction: str, clock: str) -> Callable[..., None]:
    def time_op(self: OpBenchmark, device: str, dtype: str, shape: str) -> None:
        self.run(direction, device, dtype, shape, clocks=(clock,))

    time_op.__name__ = name
    time_op.__qualname__ = f"{made.definition.__name__}.{name}"
    time_op.__doc__ = f"{clock} of {made.name}, {direction}, seconds per call."
    # asv writes attributes of a benchmark function into its list of benchmarks: its own process reads them there.
    time_op.accel_micro = {  # type: ignore[attr-defined]
        "op": made.name,
        "direction": direction,
        "clock": clock,
        "shapes": {key: list(value) for key, value in made.shapes.items()},
        "dtypes": list(made.dtypes),
    }
    return time_op
