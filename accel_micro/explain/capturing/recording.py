"""The ops of a step, as torch dispatches them: what they are, and how long each takes in place."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accel_micro.explain.capture import Crossing, Phase
from accel_micro.explain.capturing.describing import (
    all_finite,
    convolution_backend,
    described,
    draws,
    flops_of,
    is_uninitialised,
    is_view,
    numbers_finite,
    scalars_of,
    subnormal_share,
    tensors_in,
)
from accel_micro.measure.counting import bytes_of

_NO_WORK: Final = ("profiler", "debugprims")
_MOST_TENSORS: Final = 6


@dataclass
class Call:
    """One kind of call, as `capture.Row` describes it, with the operator itself.

    Attributes:
        kept: arguments of the first such call, where they are kept for a replay.
    """

    func: Any
    phase: Phase
    module: str
    module_class: str
    inputs: tuple[str, ...]
    scalars: str
    backend: str = ""
    crossing: Crossing = ""
    flops: float = 0.0
    bytes: float = 0.0
    count: int = 0
    subnormal: float = 0.0
    non_finite: bool = False
    kept: Any = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What calls of one row share."""
        return (str(self.func), self.phase, self.module, self.inputs, self.scalars, self.crossing)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What calls share that can be replayed as one: the module does not matter."""
        return (str(self.func), self.inputs, self.scalars, self.crossing)


@dataclass
class Structure:
    """The calls of a step: kinds in the order of their first call, and the sequence of their numbers.

    In the sequence -1 stands for what only marks a place. `funcs` has all, to hold timed steps against.
    """

    calls: list[Call] = field(default_factory=list)
    sequence: list[int] = field(default_factory=list)
    funcs: list[Any] = field(default_factory=list)


class Timing(TorchDispatchMode):
    """Brackets each op's own call and does nothing else.

    Attributes:
        stamps: before and after each call, seconds. funcs: what was called.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stamps: list[float] = []
        self.funcs: list[Any] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        before = perf_counter()
        out = func(*args, **kwargs) if kwargs else func(*args)
        after = perf_counter()
        self.stamps.append(before)
        self.stamps.append(after)
        self.funcs.append(func)
        return out


class Recording(TorchDispatchMode):
    """Notes what each call is: operator, arguments, phase, module. Slow, so nothing is timed meanwhile.

    Args:
        where: tells the phase and the module of a call.
        keep: takes the arguments of the first call of a kind and returns what to keep of them.
        look: look into the numbers too: which are not finite, or subnormal.
    """

    def __init__(
        self, where: "Where", keep: Callable[[Any, Any, Any], Any] | None = None, look: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.structure = Structure()
        self._where, self._keep, self._look = where, keep, look
        self._on_host = where.device_type == "cpu"
        self._known: dict[tuple[Any, ...], int] = {}
        self._kinds: set[tuple[Any, ...]] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace in _NO_WORK:
            self.structure.funcs.append(func)
            self.structure.sequence.append(-1)
            return func(*args, **kwargs)
        made_of = tensors_in((args, kwargs))
        phase, module, module_class = self._where.now()
        call = Call(
            func,
            phase,
            module,
            module_class,
            tuple(described(tensor) for tensor in made_of[:_MOST_TENSORS])
            + ((f"and {len(made_of) - _MOST_TENSORS} more",) if len(made_of) > _MOST_TENSORS else ()),
            scalars_of(args, kwargs),
            backend=convolution_backend(func, args),
            crossing=self._crossing(func, args, []),
        )
        kept = None
        if self._keep is not None and call.kind not in self._kinds:
            self._kinds.add(call.kind)
            kept = self._keep(func, args, kwargs)
        finite = self._look and all(map(all_finite, made_of)) and numbers_finite((args, kwargs))
        # A tensor that is about to be filled with random numbers holds what memory held before.
        looked = made_of if self._look and not draws(func) else []
        share = max(map(subnormal_share, looked), default=0.0)
        out = func(*args, **kwargs)
        outputs = tensors_in(out)
        if self._look:
            if not is_uninitialised(func):
                share = max(share, max(map(subnormal_share, outputs), default=0.0))
            call.non_finite = finite and not is_uninitialised(func) and not all(map(all_finite, outputs))
        call.crossing = self._crossing(func, args, outputs)
        number = self._known.setdefault(call.key, len(self.structure.calls))
        if number == len(self.structure.calls):
            call.flops = flops_of(func, args, kwargs, out)
            moves = not (is_view(func) or is_uninitialised(func))
            call.bytes = bytes_of([*made_of, *outputs]) if moves else 0.0
            self.structure.calls.append(call)
        known = self.structure.calls[number]
        known.count += 1
        known.subnormal = max(known.subnormal, share)
        known.non_finite |= call.non_finite
        known.kept = kept if kept is not None else known.kept
        self.structure.sequence.append(number)
        self.structure.funcs.append(func)
        return out

    def _crossing(self, func: Any, args: Sequence[Any], outputs: Sequence[torch.Tensor]) -> Crossing:
        """Where the call works, as far as its tensors tell. A tensor that is only written counts as a result."""
        if self._on_host:
            return ""
        copies = func._overloadpacket.__name__ == "copy_"
        given = tensors_in(args[1:] if copies else args)
        from_host = all(tensor.device.type == "cpu" for tensor in given)
        to_host = all(tensor.device.type == "cpu" for tensor in outputs)
        if from_host and given:
            return "on host" if to_host else "to device"
        return "to host" if outputs and to_host else ""


class Where:
    """Phase and module of what runs now, from hooks on modules and optimizers. A context.

    The number that autograd gives the node of a forward call says in the backward which forward it belongs to.

    Attributes:
        device_type: of the weights, and so of the step.
    """

    def __init__(self, root: torch.nn.Module) -> None:
        self._names = {id(module): name for name, module in root.named_modules()}
        self.device_type = next((p.device.type for p in root.parameters()), "cpu")
        self._stack: list[tuple[str, str]] = []
        self._of_node: dict[int, tuple[str, str]] = {}
        self._optimizing = False
        self._hooks = contextlib.ExitStack()

    def __enter__(self) -> "Where":
        from torch.nn.modules import module as modules
        from torch.optim import optimizer as optimizers

        hooks: list[Any] = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
            optimizers.register_optimizer_step_pre_hook(self._optimizer(True)),
            optimizers.register_optimizer_step_post_hook(self._optimizer(False)),
        ]
        for hook in hooks:
            self._hooks.callback(hook.remove)
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.close()

    def now(self) -> tuple[Phase, str, str]:
        """Phase, path of the module, name of its class; empty outside of modules."""
        if self._optimizing:
            return "optimizer", "", ""
        internals: Any = torch._C
        node = internals._current_autograd_node()
        if node is not None:
            return "backward", *self._of_node.get(node._sequence_nr(), ("", ""))
        module = self._stack[-1] if self._stack else ("", "")
        if torch.is_grad_enabled():
            self._of_node.setdefault(internals._autograd._get_sequence_nr() - 1, module)
        return "forward", *module

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        name = self._names.get(id(module), self._stack[-1][0] if self._stack else "")
        self._stack.append((name, type(module).__name__))

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()

    def _optimizer(self, begins: bool) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            self._optimizing = begins

        return hook


def record(
    step: Callable[[], Any],
    root: torch.nn.Module,
    keep: Callable[[Any, Any, Any], Any] | None = None,
    look: bool = False,
) -> Structure:
    """Run a step and say what it calls."""
    with Where(root) as where:
        recording = Recording(where, keep, look)
        with recording:
            step()
    return recording.structure
