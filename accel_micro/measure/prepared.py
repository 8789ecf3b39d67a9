"""A built op: the call that is timed, forward or backward, and how to read its result."""

from collections.abc import Callable, Sequence
from typing import Any

from accel_micro.devices.base import Call
from accel_micro.measure import correctness
from accel_micro.measure.inputs import UPSTREAM_SEED, Inputs, Timed

Build = Callable[[Inputs], Any]


class Prepared:
    """A built op: the call that is timed, and how to read its result.

    Where that is a backward, also the forward before it, its outputs, and the gradients that these are given.
    """

    def __init__(
        self,
        call: Call,
        result: Callable[[Any], Any],
        forward: Call | None = None,
        upstream: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
    ) -> None:
        self.call = call
        self.result = result
        self.forward = forward
        self.upstream = upstream
        self.outputs = outputs

    @classmethod
    def of(cls, build: Build, inputs: Inputs, backward: bool) -> "Prepared":
        import torch

        built = build(inputs)
        call = built.call if isinstance(built, Timed) else built
        if not backward:
            if isinstance(built, Timed):
                # A copy, since later calls may change what it reads.
                return cls(
                    call, lambda _: [t.detach().clone() for t in correctness.tensors_of(built.result())]
                )
            return cls(call, lambda returned: returned)
        outputs = [tensor for tensor in correctness.tensors_of(call()) if tensor.requires_grad]
        if not outputs or not inputs.leaves:
            raise RuntimeError("this op has no backward: its output or its inputs require no gradient")
        generator = torch.Generator().manual_seed(UPSTREAM_SEED)
        upstream = [
            torch.randn(out.shape, generator=generator).to(inputs.dtype).to(out.device, out.dtype)
            for out in outputs
        ]
        leaves = list(inputs.leaves)
        return cls(
            lambda: torch.autograd.grad(outputs, leaves, upstream, retain_graph=True, allow_unused=True),
            lambda gradients: gradients,
            forward=call,
            upstream=upstream,
            outputs=outputs,
        )
