"""An op's definition, a few lines under benchmarks/, and what it tells of its cases before any is run."""

import ast
import contextlib
import hashlib
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from accel_micro.device_names import kind_of
from accel_micro.dtypes import DTYPES, FLOATS, ITEMSIZE
from accel_micro.shapes import CACHE, hot, is_cold, parse_shape
from accel_micro.sweep import Sweep

if TYPE_CHECKING:
    from accel_micro.measure.inputs import Inputs

CPU_MOST_FLOPS: Final = 3e11
"""Forward work above which a shape is for accelerators: half a minute a call on cores of 10 GFLOP/s."""

CPU_MOST_FLOPS_WIDENED: Final = 1e9
"""The same where the CPU has no fast kernel for the dtype: 0.4 GFLOP/s was seen for float16 products."""

HEAVY_FLOPS: Final = 1.5e9
"""Forward work above which a shape that quick does not have is left out of standard on CPUs: 30 ms on two cores."""

COLD: Final = "cold"
"""The list of an op's cold shapes."""

PROTOCOL_VERSION: Final = 2
"""Part of every benchmark's version: raised when the way of measuring changes, so histories do not mix."""

Definition = Callable[..., Any]
WorkFunction = Callable[..., float]


@dataclass(frozen=True)
class Op:
    """An op's definition and what the suite must know about it. Made by the decorator `accel_micro.suite.op`.

    The functions below are called with those of the shape's arguments that they name; where the shape leaves
    one out it is the definition's default.

    Attributes:
        definition: called with `Inputs` and the shape's arguments; returns the call to time, or a `Timed`.
        shapes: profile name → shapes, from launch-bound to compute-bound; `cold` → those of them that are measured
            with cold inputs too, ending in `cache=cold`.
        dtypes: dtypes the op exists in.
        backward: the op can be differentiated, and its backward is timed too.
        flops: forward FLOPs; None asks torch's counter.
        backward_flops: the same for backward; a number is a factor on `flops`.
        bytes: bytes a forward call reads and writes at least; may name `itemsize` too, an element's bytes.
            None counts inputs and outputs.
        saving: factor ≥ 1 by which the fastest known algorithm (Winograd) needs fewer FLOPs; None is 1.
        terms: most terms that are summed into one number of the result, in forward or backward; the tolerance of the
            comparison with float64 grows with their square root. None takes them from the FLOPs.
        tolerance: factor on that tolerance.
        unsupported: gives the reason why a case does not exist, or None; may name `device` (its kind, `cuda` for
            `cuda:1`) and `dtype` too.
        link: its bytes cross a link between devices, whose peak is not that of the device's memory.
        swept: a shape with ranges, see `Sweep`: the sizes over which two devices or dtypes are compared. No profile
            runs them. Where it is left out and the shapes have one number alone, that is what is swept.

    Raises:
        ValueError: a shape cannot be parsed, a dtype is unknown, a shape does not fit the definition, or the op cannot
            have cold inputs.
    """

    name: str
    definition: Definition
    shapes: Mapping[str, tuple[str, ...]]
    dtypes: tuple[str, ...] = FLOATS
    backward: bool = True
    flops: WorkFunction | None = None
    backward_flops: WorkFunction | float | None = None
    bytes: WorkFunction | None = None
    saving: WorkFunction | None = None
    terms: WorkFunction | None = None
    tolerance: float = 1.0
    unsupported: Callable[..., str | None] | None = None
    link: bool = False
    swept: str | None = None

    def __post_init__(self) -> None:
        unknown = set(self.dtypes) - set(DTYPES)
        if unknown:
            raise ValueError(f"{self.name}: unknown dtypes {sorted(unknown)}; known: {', '.join(DTYPES)}")
        if not self.all_shapes:
            raise ValueError(f"{self.name}: no shapes")
        ends = (self.sweep.shape(self.sweep.low), self.sweep.shape(self.sweep.high)) if self.sweep else ()
        for shape in (*self.all_shapes, *ends):
            try:
                for direction in ("forward", "backward"):
                    self.stated_work(direction, self.dtypes[0], shape)
            except TypeError as error:
                raise ValueError(
                    f"{self.name}: shape {shape!r} does not fit the definition: {error}"
                ) from None
        misplaced = [shape for shape in (*self.hot_shapes, *ends) if is_cold(shape)]
        if misplaced:
            raise ValueError(
                f"{self.name}: {misplaced[0]!r} is a cold shape; list it under cold, without {CACHE}"
            )
        if self.cold_shapes:
            self._require_cold()

    def _require_cold(self) -> None:
        """Raise ValueError unless the cold shapes mean something."""
        for shape in self.cold_shapes:
            if not is_cold(shape) or hot(shape) not in self.hot_shapes:
                raise ValueError(f"{self.name}: the cold shape {hot(shape)!r} is none of its other shapes")
        if CACHE in inspect.signature(self.definition).parameters:
            raise ValueError(f"{self.name}: {CACHE} is what cold shapes say, and cannot be an argument")
        if self.link:
            raise ValueError(f"{self.name}: what crosses a link between devices is not bound by a cache")
        if any("compile" in _names(function.__code__) for function in _functions(self.definition)):
            raise ValueError(f"{self.name}: compiled code would be compiled anew for each set of cold inputs")

    @cached_property
    def source(self) -> str:
        """The definition's text, and that of the functions of its module which it calls; no decorators."""
        return "\n\n\n".join(_sources(self.definition))

    @property
    def all_shapes(self) -> tuple[str, ...]:
        """Every shape, quick ones first, cold ones last."""
        return (*self.hot_shapes, *dict.fromkeys(self.cold_shapes))

    @property
    def hot_shapes(self) -> tuple[str, ...]:
        """Every shape but the cold ones, quick ones first."""
        lists = (shapes for name, shapes in self.shapes.items() if name != COLD)
        return tuple(dict.fromkeys(shape for shapes in lists for shape in shapes))

    @property
    def cold_shapes(self) -> tuple[str, ...]:
        """Those that are measured with inputs that no cache holds."""
        return self.shapes.get(COLD, ())

    @cached_property
    def sweep(self) -> Sweep | None:
        """The sizes over which sides are compared: those that are stated, else those that the shapes span."""
        if self.swept is not None:
            return Sweep.parse(self.swept)
        return Sweep.over_only_number(parse_shape(shape) for shape in self.hot_shapes)

    @property
    def lists(self) -> dict[str, tuple[str, ...]]:
        """The lists that profiles choose among: those of `shapes`, with `heavy` for what standard has of too much work.

        On a CPU such a call takes so long that twenty samples of it would cost more than ten other cases.
        """
        quick, standard = self.shapes.get("quick", ()), self.shapes.get("standard", ())
        heavy = [
            shape for shape in standard if shape not in quick and self._forward_flops(shape) > HEAVY_FLOPS
        ]
        return {
            **self.shapes,
            "standard": tuple(s for s in standard if s not in heavy),
            "heavy": tuple(heavy),
        }

    def _forward_flops(self, shape: str) -> float:
        return self.stated_work("forward", self.dtypes[0], shape).get("flops", 0.0)

    @property
    def smallest_shape(self) -> str:
        """The shape whose numbers have the smallest product."""
        return min(self.hot_shapes, key=self._size)

    @property
    def variants(self) -> tuple[str, ...]:
        """The smallest shape of each combination of arguments that are no numbers, such as names of functions."""
        smallest: dict[tuple[tuple[str, Any], ...], str] = {}
        for shape in sorted(self.hot_shapes, key=self._size):
            words = (item for item in self.arguments(shape).items() if isinstance(item[1], (str, bool)))
            smallest.setdefault(tuple(words), shape)
        return tuple(shape for shape in self.hot_shapes if shape in smallest.values())

    def _size(self, shape: str) -> float:
        numbers = [n for n in self.arguments(shape).values() if isinstance(n, (int, float)) and n is not True]
        return math.prod(n for n in numbers if n > 0)

    @property
    def version(self) -> str:
        """Changes when the definition or the way of measuring does, and not with shapes or docstrings."""
        source = "\n".join(_sources(self.definition, docstrings=False))
        return hashlib.sha256(f"{PROTOCOL_VERSION}\n{source}".encode()).hexdigest()

    def arguments(self, shape: str) -> dict[str, Any]:
        """The shape's arguments, and the definition's defaults for the others.

        Raises:
            TypeError: the shape does not fit the definition.
        """
        bound = inspect.signature(self.definition).bind(None, **parse_shape(shape))
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def stated_work(self, direction: str, dtype: str, shape: str) -> dict[str, float]:
        """Those of `flops`, `bytes`, `saving` and `terms` that the op states for a case."""
        flops, factor = self._flops_of(direction)
        functions = {
            "flops": flops,
            "bytes": self.bytes if direction == "forward" else None,
            "saving": self.saving,
            "terms": self.terms,
        }
        arguments, extra = self.arguments(shape), {"itemsize": ITEMSIZE[dtype]}
        work = {key: float(_ask(f, arguments, extra)) for key, f in functions.items() if f is not None}
        if "flops" in work:
            work["flops"] *= factor
        return work

    def _flops_of(self, direction: str) -> tuple[WorkFunction | None, float]:
        """The function that states the FLOPs of a direction, and a factor on what it gives."""
        if direction == "forward":
            return self.flops, 1.0
        if self.backward_flops is None or callable(self.backward_flops):
            return self.backward_flops, 1.0
        return self.flops, float(self.backward_flops)

    def why_unsupported(self, device: str, dtype: str, shape: str) -> str | None:
        """Why the case does not exist on that kind of device or would take far too long there, else None."""
        kind = kind_of(device)
        if dtype not in self.dtypes:
            return f"{self.name} does not exist in {dtype}"
        if self.unsupported is not None:
            reason = _ask(self.unsupported, self.arguments(shape), {"device": kind, "dtype": dtype})
            if reason is not None:
                return str(reason)
        if kind == "mps" and dtype == "float64":
            return "MPS has no float64"
        return self.why_too_long_on_cpu(dtype, shape) if kind == "cpu" else None

    def why_too_long_on_cpu(self, dtype: str, shape: str) -> str | None:
        """Why a device that computes on the host's cores would take far too long for the case, else None."""
        return _too_long_on_cpu(dtype, self.stated_work("forward", dtype, shape).get("flops", 0.0))

    def build(
        self, inputs: "Inputs", arguments: Mapping[str, Any], stack: contextlib.ExitStack | None = None
    ) -> Any:
        """What the definition returns, a call or a `Timed`, such that it runs in the contexts it asked for.

        Args:
            stack: enters the contexts for good, so that they cost the timed call nothing. Without one, and
                for the reference, every call enters them.
        """
        built = self.definition(inputs, **arguments)
        if stack is None or inputs.reference:
            return _inside(built, inputs.contexts)
        for context in () if inputs.further else inputs.contexts:
            stack.enter_context(context())
        return built


def _ask(function: Callable[..., Any], arguments: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
    """Call a function with the arguments that it names."""
    facts = {**arguments, **extra}
    named: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named = {**arguments, **named}
        elif name in facts:
            named[name] = facts[name]
    return function(**named)


def _inside(built: Any, contexts: Sequence[Callable[[], contextlib.AbstractContextManager[Any]]]) -> Any:
    from accel_micro.measure.inputs import Timed

    if not contexts:
        return built
    call = built.call if isinstance(built, Timed) else built

    def call_inside() -> Any:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            return call()

    return Timed(call_inside, built.result) if isinstance(built, Timed) else call_inside


def _too_long_on_cpu(dtype: str, flops: float) -> str | None:
    if flops > CPU_MOST_FLOPS:
        return f"a call is {flops / 1e9:.0f} GFLOP, too long for a CPU; the shape is meant for accelerators"
    if flops > CPU_MOST_FLOPS_WIDENED and dtype in {"bfloat16", "float16"} and not _has_fast_kernels(dtype):
        return (
            f"this CPU has no fast {dtype} kernels, and a call of {flops / 1e9:.1f} GFLOP may take a minute"
        )
    return None


def _has_fast_kernels(dtype: str) -> bool:
    """Whether oneDNN multiplies this narrow dtype here; torch's own loops are some hundred times slower."""
    import torch

    name = {"bfloat16": "_is_mkldnn_bf16_supported", "float16": "_is_mkldnn_fp16_supported"}[dtype]
    try:
        return bool(getattr(torch.ops.mkldnn, name)())
    except (AttributeError, RuntimeError):  # a build without oneDNN, or one that has renamed the question
        return False


def _sources(function: Callable[..., Any], *, docstrings: bool = True) -> Iterator[str]:
    """The text of a function, and of the functions of its module that it calls; decorators are left out."""
    for each in _functions(function):
        try:
            text = textwrap.dedent(inspect.getsource(each))
        except OSError:  # defined at a prompt
            yield each.__qualname__
            continue
        lines, node = text.rstrip().split("\n"), ast.parse(text).body[0]
        if isinstance(node, ast.FunctionDef):
            if not docstrings and ast.get_docstring(node) is not None:
                del lines[node.body[0].lineno - 1 : node.body[0].end_lineno]
            lines = lines[node.lineno - 1 :]
        yield "\n".join(lines)


def _functions(function: Callable[..., Any], seen: set[str] | None = None) -> Iterator[Any]:
    """A function, and the functions of its module that it calls, each once."""
    seen = set() if seen is None else seen
    seen.add(function.__name__)
    yield function
    for name in _names(function.__code__):
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and helper.__module__ == function.__module__ and name not in seen:
            yield from _functions(helper, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
